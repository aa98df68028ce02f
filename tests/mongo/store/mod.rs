//! The store on real servers from outside: `polynym store init`, `status` and `verify`.

mod attributes;
mod damage;
mod histories;
mod init;
mod keys;
mod moving;

use crate::support::output::{err, out};
use crate::support::scenarios::store_command::{database, json, store};
