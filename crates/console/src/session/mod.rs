//! Sessions: who is signed in, by the id in a cookie. They live in this server's memory.

mod queries;
mod sessions;

pub use queries::ShortId;
pub use sessions::{Session, Sessions};
