//! The embedded store from outside: `polynym store status` and `verify`.

mod attributes;
mod clock;
mod folder;
mod histories;

use crate::stderr;
use crate::stdout;
use crate::support::scenarios::store_command::{json, store};
