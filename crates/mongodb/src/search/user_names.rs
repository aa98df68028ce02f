//! The names of the attributes of users that were read together: those of all their tenants are
//! known, or read at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::user::StoredUser;
use polynym_directory::{EncodedUser, LogPause, Record};
use polynym_store_common::attribute_names::KnownNames;

/// The pause between two lines of the log about names that cannot be read.
static UNREADABLE_LOG: LogPause = LogPause::new(Duration::from_secs(1));

/// The names of the attributes of some users.
#[derive(Default)]
pub struct UserNames {
    by_tenant: HashMap<String, Arc<KnownNames>>,
    /// The number of finds.
    pub reads: u32,
}

impl UserNames {
    /// Names that cover a user's attributes.
    ///
    /// # Errors
    /// [`Fault::Damaged`]: a name is missing.
    pub fn of(&self, user: &StoredUser) -> Result<Arc<KnownNames>, Fault> {
        if user.attributes.is_empty() {
            return Ok(Arc::default());
        }
        let names = self.by_tenant.get(tenant_of(user)?);
        let complete = names.filter(|names| user.is_named_by(names));
        complete.cloned().ok_or_else(|| Fault::damaged("an attribute has no name"))
    }

    /// A user with its attributes.
    ///
    /// # Errors
    /// [`Fault::Damaged`]: a name is missing.
    pub fn full(&self, user: &StoredUser) -> Result<EncodedUser, Fault> {
        if user.attributes.is_empty() {
            return Ok(user.wire.clone());
        }
        Ok(user.full(&*self.of(user)?))
    }

    /// The record of a user.
    ///
    /// # Errors
    /// [`Fault::Damaged`]: a name is missing, or the user cannot be read.
    pub fn record(&self, user: &StoredUser) -> Result<Record, Fault> {
        user.decode(&*self.of(user)?)
    }
}

impl Collections {
    /// The names of the attributes of these users.
    pub async fn names_of(&self, users: &[StoredUser]) -> Result<UserNames, Fault> {
        let (names, read) = self.known_names_of(users.iter()).await;
        read.map(|()| names)
    }

    /// The names of the attributes of these users, as far as they are known or could be read.
    pub async fn known_names_of(
        &self,
        users: impl Iterator<Item = &StoredUser>,
    ) -> (UserNames, Result<(), Fault>) {
        let (mut names, mut unknown) = (UserNames::default(), BTreeSet::new());
        for user in users.filter(|user| !user.attributes.is_empty()) {
            let Ok(tenant) = tenant_of(user) else { continue };
            if !names.by_tenant.contains_key(tenant) {
                names.by_tenant.insert(tenant.to_owned(), self.names.known(tenant));
            }
            if !names.by_tenant.get(tenant).is_some_and(|known| user.is_named_by(known)) {
                unknown.insert(tenant.to_owned());
            }
        }

        if unknown.is_empty() {
            return (names, Ok(()));
        }
        let unknown: Vec<_> = unknown.iter().map(String::as_str).collect();
        match self.read_names(&unknown).await {
            Ok((read, reads)) => {
                let readable = read.into_iter().filter_map(|(tenant, names)| {
                    let warn = |fault: &Fault| {
                        if UNREADABLE_LOG.is_over() {
                            tracing::error!(%fault, "names of attributes cannot be read");
                        }
                    };
                    Some((tenant, names.inspect_err(warn).ok()?))
                });
                names.by_tenant.extend(readable);
                names.reads = reads;
                (names, Ok(()))
            }
            Err(fault) => (names, Err(fault)),
        }
    }

    /// Names that cover a user's attributes.
    pub async fn names_for(&self, user: &StoredUser) -> Result<Arc<KnownNames>, Fault> {
        self.names_of(std::slice::from_ref(user)).await?.of(user)
    }

    /// The record of a stored user.
    pub async fn record(&self, user: StoredUser) -> Result<Record, Fault> {
        user.decode(&*self.names_for(&user).await?)
    }
}

fn tenant_of(user: &StoredUser) -> Result<&str, Fault> {
    std::str::from_utf8(user.wire.tenant()).map_err(Fault::damaged)
}
