//! The claims that change between two states of a user.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Claim, Decision, NewUser, ReadSet, Record, Tenant, UserChange, Write, any_user, id, mutation,
    new_identity, user,
};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, add_changes};
use polynym_identifier::IdentityKey;

/// The claims of a user's identities.
fn claims(user: Option<&super::User>) -> BTreeMap<IdentityKey, Claim> {
    let Some(user) = user else { return BTreeMap::new() };
    let claim = |identity: &super::Identity| {
        let (owner, rules_version) = (Some(user.id), identity.rules_version);
        let claim = Claim { owner, guard: false, hold: None, rules_version };
        (user.key(&identity.identifier), claim)
    };
    user.identities.iter().map(claim).collect()
}

fn changes(before: Option<&super::User>, after: &super::User) -> ClaimDiff {
    let mut changes = ClaimDiff::new();
    let earlier = before.map(|user| Record::new(user.clone()));
    let transition =
        UserTransition { before: earlier.as_ref(), after: Some(Record::new(after.clone())) };
    add_changes(&mutation(UserChange::Disable), &mut changes, &transition).unwrap();
    changes
}

#[test]
fn claims_change_where_the_states_differ() {
    let before = user(&["handle:b", "handle:a", "email:joe@example.com", "handle:z"]);
    let after = user(&["handle:b", "social:x/1", "email:Joe@EXAMPLE.com", "handle:c", "handle:z"]);
    let all = changes(Some(&before), &after);
    let keys = |is_before: bool, is_after: bool| -> Vec<_> {
        all.iter()
            .filter(|(_, (before, after))| {
                (before.is_some(), after.is_some()) == (is_before, is_after)
            })
            .map(|(key, _)| key.as_str())
            .collect()
    };
    assert_eq!(keys(false, true), ["default,handle,c", "default,social,x/1"]);
    assert_eq!(keys(true, false), ["default,handle,a"]);
    assert_eq!(keys(true, true), ["default,email,joe@example.com"], "between the differences");
    assert!(
        all.values()
            .flat_map(|(before, after)| [before, after])
            .flatten()
            .all(|claim| claim.owner == Some(id(1)))
    );
}

#[test]
fn a_guarded_handle_needs_two_claims() {
    let names =
        [("handle:scope", 1), ("handle:joé", 2), ("handle:ѕсоре", 2), ("email:é@example.com", 1)];
    for (name, count) in names {
        let creation = mutation(UserChange::Create(NewUser {
            identities: vec![new_identity(name)],
            ..NewUser::default()
        }));
        let Ok(Decision::Ready(write_set)) = creation.decide(&ReadSet::optimistic()) else {
            panic!("{name}")
        };
        let is_claim = |write: &&Write| matches!(write, Write::Claim(..));
        assert_eq!(write_set.writes.iter().filter(is_claim).count(), count, "{name}");
    }
}

proptest! {
    #[test]
    fn the_changes_turn_one_set_of_claims_into_the_other(
        before in proptest::option::of(any_user()),
        after in any_user(),
        kept in 0..6usize,
    ) {
        let after = super::User { tenant: Tenant::DEFAULT, ..after };
        let before = before.map(|user| {
            let mut user = super::User { id: after.id, tenant: Tenant::DEFAULT, ..user };
            user.identities.retain(|identity| after.identity(&identity.identifier).is_none());
            user.identities.splice(0..0, after.identities.iter().take(kept).cloned());
            user
        });
        let mut claimed = claims(before.as_ref());
        for (key, (before, after)) in changes(before.as_ref(), &after) {
            prop_assert_eq!(claimed.remove(&key), before, "the claim before differs");
            claimed.extend(after.map(|claim| (key, claim)));
        }
        prop_assert_eq!(claimed, claims(Some(&after)));
    }
}
