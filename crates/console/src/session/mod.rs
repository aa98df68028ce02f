//! Sessions: who is signed in, by the id in a cookie. They live in this server's memory.

mod cookies;
mod queries;
mod sessions;

pub use cookies::{SessionCookie, preference, preference_cookie};
pub use queries::ShortId;
pub use sessions::{Session, Sessions};
