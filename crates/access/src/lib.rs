//! Access: callers, their rights and their limits.
//!
//! Every call has a [`Caller`] with a [`Role`] and the tenants that it may work in. Callers
//! authenticate with bearer tokens or client certificates, which a credentials file lists.

mod call;
mod caller;
mod caller_state;
mod credentials;
mod expiry;
mod file;
#[cfg(test)]
mod fuzz;
mod permit;
mod rate_limiter;
pub mod reload;
mod role;
mod tally;
mod token;

pub use call::{Call, CallPurpose};
pub use caller::{Caller, Tenants};
pub use caller_state::{BatchShare, CallerState, CallerStates, ComputeLock, MAX_BATCHES};
pub use credentials::{Credential, Credentials, CredentialsError};
pub use expiry::CREDENTIAL_EXPIRES;
pub use file::{Access, CREDENTIALS_BROKEN};
pub use permit::{ActiveCount, MAX_METHODS, MethodCounts, Permit, share_of};
pub use rate_limiter::RateLimits;
pub use role::Role;
pub use tally::{Counts, Metric};
pub use token::{Token, TokenHash, generate as generate_token};
