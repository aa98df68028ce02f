//! What templates show: messages of the API as texts.

pub mod audit;
pub mod audit_detail;
pub mod audit_row;
pub mod bulk;
pub mod commands;
pub mod delivery;
pub mod duplicates;
pub mod event;
pub mod identity;
pub mod listed;
pub mod pager;
pub mod person;
pub mod policies;
pub mod reading;
pub mod tenant;
pub mod text;
pub mod undoings;
pub mod user;

pub use commands::Commands;
pub use event::EventView;
pub use pager::{Pager, Trail};
pub use polynym_presentation::time::Time;
pub use user::UserView;
