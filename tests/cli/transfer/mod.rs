//! Import and export with the real program: bad input, backups, and going on after
//! what broke an import off.

mod backup;
mod bad;
mod resuming;

use crate::support::scenarios::transfer::{
    FILE, broken_off, embedded, export, import, import_file, names_are_limited, sample, start,
};
