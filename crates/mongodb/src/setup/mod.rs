//! The commands of an administrator: init, upgrade, status, verify.

pub mod bulk_check;
pub mod cluster;
pub mod element_check;
pub mod idle_store;
pub mod init;
pub mod inspect;
pub mod integrity;
pub mod notice_check;
pub mod presplit;
pub mod spread;
pub mod status;
pub mod token_key;
pub mod upgrade;
pub mod validators;
pub mod walks;
pub mod zones;
