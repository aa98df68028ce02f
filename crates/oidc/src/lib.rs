//! People sign in by a provider of OpenID Connect: by an authorization code with PKCE, bound to one
//! browser, and an ID token, which is checked.
//!
//! The provider is another program, which may be slow, gone, broken or in other hands: what it
//! answers is bounded in time and bytes, and everything that it says is checked before it counts.

#![forbid(unsafe_code)]

mod claims;
mod exchange;
mod fault;
mod http_client;
mod pending;
mod provider;

pub use claims::{EndSession, Identity};
pub use fault::Fault;
pub use pending::{PENDING_TIME, Pending, Seal};
pub use provider::{Provider, Redirect};
