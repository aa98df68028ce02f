//! Import and export with the real program: bad input, backups, and resumed imports.

mod backup;
mod bad_input;
mod dirty_cells;
mod earlier_rules;
mod formulas;
mod holds;
mod links;
mod over_http;
mod pasted;
mod resuming;
mod tables;
mod treatments;
mod undoing;

use crate::support::scenarios::transfer::{
    embedded, export, import, import_file, import_with_kills, names_are_limited, sample,
};
