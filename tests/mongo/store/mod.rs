//! The store on real servers from outside: `polynym store init`, `status` and `verify`.

mod attributes;
pub mod bulk;
mod damage;
mod histories;
mod init;
mod keys;
mod restored;
mod verify_in_use;
mod verify_part;

use crate::support::output::{stderr, stdout};
use crate::support::scenarios::store_command::{database, json, store};
