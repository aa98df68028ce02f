//! The versions that a store's file has.

use redb::{Database, ReadableDatabase, TableError};

use crate::schema::tables::{META, META_MOVING, META_RULES, META_SCHEMA};
use crate::version::{OLDEST, Supported};
use polynym_directory::StoredRules;
use polynym_identifier::Rules;

/// The damage of a store without versions.
pub const NO_VERSION: &str = "it has no version";

/// The versions of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub schema: u64,
    pub rules: StoredRules,
}

impl Versions {
    pub fn are_supported(self, by: Supported) -> bool {
        (OLDEST..=by.schema).contains(&self.schema)
            && (Rules::OLDEST..=by.rules).contains(&self.decisive_rules())
    }

    /// The rules by which a program may not support the store: the oldest ones, if it does not know
    /// them any more, else the latest.
    pub fn decisive_rules(self) -> u32 {
        let StoredRules { version, next } = self.rules;
        if version < Rules::OLDEST { version } else { next.unwrap_or(version) }
    }
}

/// The versions of the store in a database. None if the database is not a store.
pub fn versions(database: &Database) -> Result<Option<Versions>, redb::Error> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => {
            let version = |name| -> Result<Option<u32>, redb::Error> {
                Ok(meta.get(name)?.map(|rules| rules.value().try_into().unwrap_or(u32::MAX)))
            };
            let rules = StoredRules {
                version: version(META_RULES)?.unwrap_or(Rules::UNNAMED),
                next: version(META_MOVING)?,
            };
            Ok(meta.get(META_SCHEMA)?.map(|schema| Versions { schema: schema.value(), rules }))
        }
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
