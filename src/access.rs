//! Access: who calls, and what they may do.
//!
//! Every call has a [`Caller`] with a [`Role`] and the tenants that it may work in. Callers prove
//! who they are with bearer tokens or client certificates, which a credentials file lists.

mod call;
mod caller;
mod credentials;
mod file;
#[cfg(test)]
mod fuzz;
mod role;
mod tally;
mod token;
mod usage;

pub use call::Call;
pub use caller::{Caller, Tenants};
pub use credentials::{Credential, Credentials, CredentialsError};
pub use file::{Access, CREDENTIALS_BROKEN};
pub use role::Role;
pub use tally::{Counts, Metric};
pub use token::{Token, TokenHash, generate as generate_token};
pub use usage::{Counted, Rate, Usage, Usages};
