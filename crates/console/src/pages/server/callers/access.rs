//! The right to change credentials, and whether the server can write the file.

use std::sync::Arc;

use polynym_access::CredentialsFile;
use polynym_access::edits::EditError;
use tokio::task::spawn_blocking;

use crate::console::Shared;
use crate::prelude::*;

/// Checks that the caller may read about credentials: an admin of all tenants.
///
/// # Errors
/// The role is too low, or the caller has some tenants only.
pub fn require_admin(visit: &Visit) -> Result<(), Failure> {
    visit.require(Role::Admin)?;
    visit.require_all_tenants()
}

/// Checks that the caller may change credentials, and that the server can.
///
/// # Errors
/// The caller is no admin of all tenants with a credential, or the file cannot be changed.
pub async fn require_change(shared: &Arc<Shared>, visit: &Visit) -> Result<(), Failure> {
    require_admin(visit)?;
    if visit.session.person().is_some() {
        return Err(Failure::PersonDenied);
    }
    with_file(shared, CredentialsFile::check_writable).await?.map_err(fixed)
}

/// Does something with the credentials file, which may take a while.
///
/// # Errors
/// There is none.
pub async fn with_file<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&CredentialsFile) -> T + Send + 'static,
) -> Result<T, Failure> {
    let access = shared.access.clone();
    let done = spawn_blocking(move || access.file().map(work)).await;
    let done = done.map_err(|_| Failure::Internal("The change failed.".to_owned()))?;
    done.ok_or_else(|| Failure::CredentialsFixed("This server asks for no credentials.".to_owned()))
}

/// The failure of a file that cannot be changed.
pub fn fixed(error: EditError) -> Failure {
    match error {
        EditError::Busy => Failure::Busy,
        other => {
            Failure::CredentialsFixed(format!("The credentials file cannot be changed: {other}."))
        }
    }
}
