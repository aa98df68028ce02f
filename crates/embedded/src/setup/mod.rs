//! Work on a folder that no server has open, and copies of one that a server has open.

mod background;
pub mod backup;
mod bulk_check;
mod content_check;
pub mod index_check;
pub mod integrity;
pub mod restore;
pub mod status;
pub mod upgrade;
