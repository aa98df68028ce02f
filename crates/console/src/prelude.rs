//! The names that most pages use.

pub use askama::Template;
pub use axum::extract::State;
pub use polynym_access::Role;
pub use polynym_proto::v1;

pub use crate::change::{Draft, Problem, UserChange, UserForm};
pub use crate::failure::Failure;
pub use crate::form::{Form, Path, Query};
pub use crate::frame::Frame;
pub use crate::render::{Page, redirect, render, render_with_status};
pub use crate::views::{Commands, Pager, Time, Trail, UserView};
pub use crate::visit::Visit;
pub use crate::words::filters;
