//! Searches and their probes: walks in steps, between which other calls get the thread.

use crate::lookup::snapshot::Snapshot;
use crate::store::Embedded;
use polynym_directory::error::Error;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::pace::Pace;
use polynym_directory::search::{AccessPath, Position, SearchedUser};
use polynym_directory::stores::{Search, View};

impl Embedded {
    /// See [`Search::search`].
    pub(crate) async fn find(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        self.check_searchable(path)?;
        let view = path.view(view);
        if *path == AccessPath::All {
            let users = self.scan(tenant, after.map(|after| after.id), limit).await?;
            return Ok(users.into_iter().map(|own| SearchedUser::of(own.user, view)).collect());
        }
        if let AccessPath::Identity(identifiers) = path {
            let mut owners = self.on_snapshot(|snapshot| snapshot.owners(tenant, identifiers))?;
            owners.retain(|owner| after.is_none_or(|after| owner.id > after.id));
            owners.truncate(limit);
            return Ok(owners.into_iter().map(|owner| SearchedUser::of(owner, view)).collect());
        }

        let mut users = Vec::new();
        let mut pace = Pace::default();
        for mut walk in self.on_snapshot(|snapshot| snapshot.walks(tenant, path, after))? {
            loop {
                let step =
                    |snapshot: &Snapshot| snapshot.step(tenant, path, &mut walk, view, &pace);
                let step = self.on_snapshot(step)?;
                users.extend(step.users);
                if users.len() >= limit {
                    users.truncate(limit);
                    return Ok(users);
                }
                if step.is_last {
                    break;
                }
                pace.rest().await;
            }
        }
        Ok(users)
    }

    /// See [`Search::probe`].
    pub(crate) fn count_entries(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Error> {
        self.check_searchable(path)?;
        match path {
            AccessPath::All => self.on_snapshot(|snapshot| snapshot.count_users(tenant, limit)),
            AccessPath::Identity(identifiers) => {
                let owners = self.on_snapshot(|snapshot| snapshot.owners(tenant, identifiers))?;
                Ok(owners.len().min(limit))
            }
            _ => self.on_snapshot(|snapshot| {
                let walks = snapshot.walks(tenant, path, None)?;
                walks
                    .iter()
                    .try_fold(0, |count, walk| Ok(count + snapshot.count(walk, limit - count)?))
            }),
        }
    }

    /// Rejects a search by fields in a store of an older schema, which has no index of them.
    fn check_searchable(&self, path: &AccessPath) -> Result<(), Error> {
        let Some(field) = path.field() else { return Ok(()) };
        let has_elements = self.on_snapshot(|snapshot| {
            Ok(snapshot.has_attribute_index() && snapshot.derived()?.finds(field))
        })?;
        if has_elements { Ok(()) } else { Err(Error::NotSearchable) }
    }
}
