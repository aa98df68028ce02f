//! Sessions: who is signed in, by the id in a cookie. They live in this server's memory.

mod duplicate_results;
mod kept_forms;
mod messages;
mod providers;
mod queries;
mod seen;
mod sessions;
mod used_forms;

pub use duplicate_results::{Begun, Wanted};
pub use messages::{Message, Messages};
pub use providers::Providers;
pub use sessions::{PersonSession, Session, Sessions};
pub use used_forms::UsedForms;
