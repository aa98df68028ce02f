//! `store upgrade` on a folder that no server has open: one transaction takes the store to the
//! newest versions, or none.

use std::path::Path;

use super::audit::CACHE;
use super::error::{Fault, OpenError};
use super::open::{Open, Opener, versions};
use super::schema::{META, META_RULES, META_SCHEMA, VERSION};

/// Takes the store in `folder`, which must be there and not in use, to the versions of this
/// program, and tells `progress` of each step in a sentence. Blocks.
///
/// # Errors
/// [`OpenError`]; the store is then as it was.
pub fn upgrade(folder: &Path, progress: &dyn Fn(&str)) -> Result<(), OpenError> {
    let mut opener = Opener::new(folder, CACHE);
    let open = opener.open_existing()?;
    let fault = |fault: Fault| opener.damaged(fault);
    let found = versions(&open.database).map_err(|error| fault(error.into()))?;
    if let Some(found) = found.filter(|found| found.schema < VERSION) {
        progress(&format!("schema version {}: is taken to {VERSION}", found.schema));
        raise(&open, found.rules).map_err(fault)?;
    }
    let rules = found.map_or_else(Default::default, |found| found.rules);
    let folder = folder.display();
    progress(&format!("{folder} is a store of schema version {VERSION} and rules version {rules} now"));
    Ok(())
}

fn raise(open: &Open, rules: u32) -> Result<(), Fault> {
    let transaction = open.database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_SCHEMA, VERSION)?;
        meta.insert(META_RULES, u64::from(rules))?;
    }
    open.commit(transaction)
}
