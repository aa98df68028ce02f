//! The order of lines about one person: a line waits for the earlier ones in flight that name the
//! same user or identity, so that the later line finds what the earlier one wrote.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message;
use tokio::sync::Notify;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use polynym_directory::Tenant;
use polynym_identifier::{Identifier, IdentityKey};
use polynym_lines::raw_identifier;
use polynym_proto::v1;

/// The hashes of what names persons in the lines in flight.
#[derive(Default)]
pub struct PersonOrder {
    taken: Mutex<HashSet<u64>>,
    freed: Notify,
}

/// The place of a line, until it is dropped.
pub struct Place {
    order: Arc<PersonOrder>,
    names: HashSet<u64>,
}

impl PersonOrder {
    /// Waits until no line in flight names the same person.
    pub async fn take(self: &Arc<Self>, tenant: &Tenant, user: &v1::User) -> Place {
        let names = names(tenant, user);
        loop {
            let freed = self.freed.notified();
            if self.try_take(&names) {
                return Place { order: self.clone(), names };
            }
            freed.await;
        }
    }

    fn try_take(&self, names: &HashSet<u64>) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = taken.is_disjoint(names);
        if is_free {
            taken.extend(names);
        }
        is_free
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.order.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for name in &self.names {
            taken.remove(name);
        }
        drop(taken);
        self.order.freed.notify_waiters();
    }
}

/// The hashes of the user id and the identities of a line.
fn names(tenant: &Tenant, user: &v1::User) -> HashSet<u64> {
    let seed = xxh3_64(tenant.as_str().as_bytes());
    let id = Some(&user.user_id).filter(|id| !id.is_empty());
    let identities = user.identities.iter().filter_map(|identity| identity.identifier.as_ref());
    let identities = identities.flat_map(|message| {
        let parsed = raw_identifier(Some(message)).and_then(|raw| Identifier::parse(raw).ok());
        let Some(one) = parsed else {
            return [Some(xxh3_64_with_seed(&message.encode_to_vec(), seed)), None];
        };
        // Of handles that look alike, too, the earlier line decides.
        let guard = one.guard().map(|guard| IdentityKey::of_guard(tenant.as_str(), &guard));
        let own = IdentityKey::new(tenant.as_str(), &one);
        [Some(own), guard].map(|key| key.map(|key| xxh3_64(key.as_str().as_bytes())))
    });
    let identities = identities.flatten();
    id.map(|id| xxh3_64_with_seed(id.as_bytes(), seed)).into_iter().chain(identities).collect()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn line(id: &str, emails: &[&str]) -> v1::User {
        let identity = |email: &&str| v1::Identity {
            identifier: Some(v1::Identifier {
                kind: Some(v1::identifier::Kind::Email((*email).to_owned())),
            }),
            ..Default::default()
        };
        let identities = emails.iter().map(identity).collect();
        v1::User { user_id: id.to_owned(), identities, ..Default::default() }
    }

    #[test]
    fn a_line_waits_for_the_lines_of_its_person() {
        let (order, tenant) = (Arc::new(PersonOrder::default()), Tenant::DEFAULT);
        let take = |user: &v1::User| order.take(&tenant, user).now_or_never();
        let first = take(&line("", &["a@example.com", "A@example.com"])).unwrap();
        let other = take(&line("u", &["b@example.com"])).unwrap();
        assert!(take(&line("", &["c@example.com", "A@Example.com"])).is_none());
        assert!(take(&line("u", &[])).is_none());
        drop(first);
        assert!(take(&line("", &["c@example.com", "A@Example.com"])).is_some());
        drop(other);
        assert!(take(&line("u", &[])).is_some());
    }
}
