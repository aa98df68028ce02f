//! Forms that change something: what was typed, the state that the person saw, and why the change
//! was refused.

mod done;
mod draft;
pub mod identifier_fields;
pub mod problem;
mod submission;
mod user_form;
pub mod value;
mod version;

pub use done::done;
pub use draft::Draft;
pub use problem::Problem;
pub use submission::{OWN_OPERATION, Sent};
pub use user_form::{UserChange, UserForm};
pub use version::Version;
