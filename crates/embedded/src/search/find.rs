//! Searches and their probes: walks in steps, between which other calls get the thread.

use crate::lookup::snapshot::Snapshot;
use crate::search::walk::WalkSearch;
use crate::store::Embedded;
use polynym_directory::{
    AccessPath, Error, Pace, Position, Scalar, Scanned, SearchedUser, Tenant, View, search::Field,
};

/// The maximum number of entries that a step counts.
const COUNTED_ENTRIES: usize = 512;

impl Embedded {
    /// See [`Search::search`].
    pub(crate) async fn find(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Error> {
        let view = path.view(view);
        if *path == AccessPath::All {
            let scanned = self.scan_users(tenant, after.map(|after| after.id), limit).await?;
            return Ok(scanned.map(|record| SearchedUser::new(record.user, view)).by_id());
        }
        if let AccessPath::Identity(identifiers) = path {
            let after = after.map(|after| after.id);
            return self
                .read_step(|snapshot| snapshot.owners(tenant, identifiers, after, limit, view));
        }

        let (mut found, mut pace) = (Scanned::default(), Pace::default());
        for mut walk in self.read_step(|snapshot| snapshot.walks(tenant, path, after))? {
            loop {
                let search = WalkSearch { tenant, path, view, limit };
                let step =
                    |snapshot: &Snapshot| snapshot.step(&search, &mut walk, &mut found, &pace);
                let is_last = self.read_step(step)?;
                if found.next.is_some() {
                    return Ok(found);
                }
                if is_last {
                    break;
                }
                pace.rest().await;
            }
        }
        Ok(found)
    }

    /// See [`Search::probe`].
    pub(crate) async fn count_entries(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Error> {
        match path {
            AccessPath::All => self.read_step(|snapshot| snapshot.count_users(tenant, limit)),
            AccessPath::Identity(identifiers) => {
                let owners = self.read_step(|snapshot| snapshot.owner_ids(tenant, identifiers))?;
                Ok(owners.len().min(limit))
            }
            _ => {
                let (mut count, mut pace) = (0, Pace::default());
                for mut walk in self.read_step(|snapshot| snapshot.walks(tenant, path, None))? {
                    loop {
                        let step = (limit - count).min(COUNTED_ENTRIES);
                        let counted = self.read_step(|snapshot| snapshot.count(&mut walk, step))?;
                        count += counted;
                        if counted < step || count == limit {
                            break;
                        }
                        pace.rest().await;
                    }
                }
                Ok(count)
            }
        }
    }

    /// See [`Search::known_words`].
    pub(crate) async fn words_of_names(
        &self,
        tenant: &Tenant,
        words: &[String],
    ) -> Result<Vec<String>, Error> {
        let (mut known, mut pace) = (Vec::new(), Pace::default());
        for word in words {
            pace.rest().await;
            let value = Scalar::String(word.clone());
            let path = AccessPath::Equals { field: Field::NameForm, value };
            if self.count_entries(tenant, &path, 1).await? > 0 {
                known.push(word.clone());
            }
        }
        Ok(known)
    }
}
