//! What templates show: messages of the API as texts.

pub mod changes;
pub mod commands;
pub mod identity;
pub mod reading;
pub mod time;
pub mod user;

pub use commands::Commands;
pub use time::Time;
pub use user::UserView;
