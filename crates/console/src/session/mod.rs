//! Sessions: who is signed in, by the id in a cookie. They live in this server's memory.

mod finds;
mod queries;
mod sessions;

pub use finds::{Begun, Wanted};
pub use sessions::{Session, Sessions};
