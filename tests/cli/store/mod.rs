//! The embedded store from outside: `polynym store status` and `verify`.

mod attributes;
mod clock;
mod folder;
mod histories;

use crate::err;
use crate::out;
use crate::support::scenarios::store_command::{json, store};
