//! Access: callers, their rights and their limits.
//!
//! Every call has a [`Caller`] with a [`Role`] and the tenants that it may work in. Callers
//! authenticate with bearer tokens or client certificates, which a credentials file lists. People
//! sign in by an identity provider, whose groups have roles by the same file.

mod call;
mod caller;
mod caller_state;
mod credential;
mod credentials;
mod edit;
pub mod edits;
mod expiry;
mod file;
#[cfg(test)]
mod fuzz;
mod people;
mod permit;
mod provider;
mod rate_limiter;
pub mod reload;
mod role;
mod tally;
mod token;

pub use call::{Call, CallPurpose};
pub use caller::{Caller, Tenants};
pub use caller_state::{BatchShare, CallerState, CallerStates, ComputeLock, MAX_BATCHES};
pub use credential::Credential;
pub use credentials::{Credentials, CredentialsError};
pub use expiry::CREDENTIAL_EXPIRES;
pub use file::{Access, CREDENTIALS_BROKEN, CredentialsFile};
pub use people::{PERSON, Person, PersonToken, Source, person_name};
pub use permit::{ActiveCount, MAX_METHODS, MethodCounts, Permit, share_of};
pub use provider::{ClaimNames, ClientSecret, Grant, IdentityProvider, is_loopback, is_safe_url};
pub use rate_limiter::RateLimits;
pub use role::Role;
pub use tally::{Counts, Metric};
pub use token::{Token, TokenHash, generate as generate_token};
