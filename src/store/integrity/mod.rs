//! Whether the users and claims of a store fit together: every claim belongs to a user who lists
//! its key, and every identity that a user lists has its claim. And whether attributes have names,
//! and the index of searches the values of all users; and whether histories lead to their users.
//! The user's record is the truth; repairs follow it.
//!
//! Here is what all stores share: what is compared with what, in which order, and what follows from
//! it. How users and claims are read and written is each store's own: see [`CheckableStore`].

mod checkable;
mod diagnosis;
mod duplicate_filter;
mod finding;
mod histories;
mod passes;

pub use checkable::{
    Candidate, CheckableStore, ClaimRow, IndexFault, Moment, Presence, Side, UserClaims, UserRow,
};
pub use diagnosis::{diagnose, plan_repair};
pub use finding::{Finding, Inconsistency, RepairState, Summary};
pub use histories::Past;
pub use passes::{Observer, verify};
