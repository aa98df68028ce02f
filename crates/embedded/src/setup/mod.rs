//! Work on a folder that no server has open, and copies of one that a server has open.

pub mod backup;
pub mod index_check;
pub mod integrity;
pub mod restore;
pub mod status;
pub mod upgrade;
