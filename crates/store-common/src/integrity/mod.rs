//! The verification of a store: every claim belongs to a user who lists its key, every identity
//! that a user lists has its claim, attributes have names, the index of searches has the values of
//! all users, histories end in their users, notices have their contents, merged users name each
//! other, and servers find bulk changes when they are due. Repairs follow the user's record.
//!
//! The comparisons and their order are common to all stores. Each store implements the reads and
//! writes: see [`CheckableStore`].

mod batches;
mod bulk_fault;
mod checkable;
mod diagnosis;
mod duplicate_filter;
mod finding;
mod histories;
mod limits;
mod links;
mod own_checks;
mod passes;
mod scope;

pub use bulk_fault::{BulkFault, BulkKey};
pub use checkable::{
    Candidate, CandidateState, CheckableStore, ClaimRow, Presence, Side, UserClaims, UserRow,
};
pub use diagnosis::{diagnose, plan_repair};
pub use finding::{Finding, Inconsistency, IndexFault, NoticeFault, RepairState, Summary};
pub use histories::Past;
pub use links::{index_repair, link_repair};
pub use passes::{Observer, verify, verify_part};
pub use scope::{Sample, Scope};
