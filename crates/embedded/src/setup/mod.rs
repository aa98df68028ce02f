//! Work on a folder that no server has open, and copies of one that a server has open.

mod background;
pub mod backup;
mod bulk_check;
pub mod compact;
mod content_check;
mod copy;
pub mod index_check;
pub mod integrity;
pub mod restore;
mod scoped;
pub mod status;
pub mod upgrade;
