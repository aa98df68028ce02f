//! The files of a session.

use std::sync::Arc;

use crate::imports::Upload;
use crate::prelude::*;
use crate::short_id::ShortId;

/// A file of the session, for callers who may import.
pub fn upload(visit: &Visit, tenant: &str, number: ShortId) -> Result<Arc<Upload>, Failure> {
    visit.require(Role::Admin)?;
    visit.session.uploads.get(tenant, number).ok_or(Failure::FileGone)
}

/// The path of a file's page.
pub fn path(visit: &Visit, upload: &Upload) -> String {
    format!("{}/import/{}", visit.frame(&upload.tenant).home(), upload.number)
}
