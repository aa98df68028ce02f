//! Which claims lie between two states of a user.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::claim_changes;
use super::{Tenant, any_user, user};
use crate::identifier::IdentityKey;

fn keys(user: Option<&super::User>) -> BTreeSet<IdentityKey> {
    user.iter().flat_map(|user| user.identities.iter().map(|identity| user.key(&identity.identifier))).collect()
}

fn texts(keys: &[IdentityKey]) -> Vec<&str> {
    keys.iter().map(IdentityKey::as_str).collect()
}

#[test]
fn claims_are_those_that_only_one_state_has() {
    let before = user(&["handle:b", "handle:a", "email:joe@example.com"]);
    let after = user(&["social:x/1", "email:Joe@EXAMPLE.com", "handle:c"]);
    let changes = claim_changes(Some(&before), &after);
    assert_eq!(texts(&changes.taken), ["default,handle,c", "default,social,x/1"]);
    assert_eq!(texts(&changes.released), ["default,handle,a", "default,handle,b"]);
    let created = claim_changes(None, &before);
    assert_eq!(texts(&created.taken), ["default,email,joe@example.com", "default,handle,a", "default,handle,b"]);
    assert!(created.released.is_empty());
}

proptest! {
    #[test]
    fn claims_lead_from_one_state_to_the_other(before in proptest::option::of(any_user()), after in any_user()) {
        let before = before.map(|before| super::User { id: after.id, tenant: Tenant::DEFAULT, ..before });
        let after = super::User { tenant: Tenant::DEFAULT, ..after };
        let changes = claim_changes(before.as_ref(), &after);
        prop_assert!(changes.taken.is_sorted() && changes.released.is_sorted());
        let mut owned = keys(before.as_ref());
        for key in &changes.released {
            prop_assert!(owned.remove(key), "a key is released that was not owned");
        }
        for key in &changes.taken {
            prop_assert!(owned.insert(key.clone()), "a key is taken that was owned");
        }
        prop_assert_eq!(owned, keys(Some(&after)));
    }
}
