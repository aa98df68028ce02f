//! Which claims lie between two states of a user.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Claim, Decision, NewUser, ReadSet, Record, Tenant, UserChange, Write, any_user, draft, id,
    mutation, user,
};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, add_changes};
use polynym_identifier::IdentityKey;

/// The claims of a user, as its identities say.
fn claims(user: Option<&super::User>) -> BTreeMap<IdentityKey, Claim> {
    let claim = |user: &super::User, n: usize| {
        let identity = &user.identities[n];
        let rules_version = identity.rules_version;
        (
            user.key(&identity.identifier),
            Claim { owner: Some(user.id), guard: false, hold: None, rules_version },
        )
    };
    user.iter().flat_map(|user| (0..user.identities.len()).map(|n| claim(user, n))).collect()
}

fn changes(before: Option<&super::User>, after: &super::User) -> ClaimDiff {
    let mut changes = ClaimDiff::new();
    let before = before.map(|user| Record::new(user.clone()));
    let transition =
        UserTransition { before: before.as_ref(), after: Some(Record::new(after.clone())) };
    add_changes(&mutation(UserChange::Disable), &mut changes, &transition).unwrap();
    changes
}

#[test]
fn claims_are_those_that_only_one_state_has() {
    let before = user(&["handle:b", "handle:a", "email:joe@example.com", "handle:z"]);
    let after = user(&["handle:b", "social:x/1", "email:Joe@EXAMPLE.com", "handle:c", "handle:z"]);
    let all = changes(Some(&before), &after);
    let of = |wanted: (bool, bool)| {
        let is = |(_, (before, after)): &(&IdentityKey, &(Option<Claim>, Option<Claim>))| {
            (before.is_some(), after.is_some()) == wanted
        };
        all.iter().filter(is).map(|(key, _)| key.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of((false, true)), ["default,handle,c", "default,social,x/1"]);
    assert_eq!(of((true, false)), ["default,handle,a"]);
    assert_eq!(of((true, true)), ["default,email,joe@example.com"], "inside of what differs");
    assert!(
        all.values()
            .flat_map(|(before, after)| [before, after])
            .flatten()
            .all(|claim| claim.owner == Some(id(1)))
    );
}

#[test]
fn a_handle_costs_a_claim_and_its_guard_another() {
    let names =
        [("handle:scope", 1), ("handle:joé", 2), ("handle:ѕсоре", 2), ("email:é@example.com", 1)];
    for (name, count) in names {
        let creation = mutation(UserChange::Create(NewUser {
            identities: vec![draft(name)],
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
    fn claims_lead_from_one_state_to_the_other(
        before in proptest::option::of(any_user()),
        after in any_user(),
        kept in 0..6usize,
    ) {
        let after = super::User { tenant: Tenant::DEFAULT, ..after };
        let before = before.map(|mut before| {
            before.identities.retain(|identity| after.identity(&identity.identifier).is_none());
            before.identities.splice(0..0, after.identities.iter().take(kept).cloned());
            super::User { id: after.id, tenant: Tenant::DEFAULT, ..before }
        });
        let mut claimed = claims(before.as_ref());
        for (key, (before, after)) in changes(before.as_ref(), &after) {
            prop_assert_eq!(claimed.remove(&key), before, "a claim is not what it was");
            claimed.extend(after.map(|claim| (key, claim)));
        }
        prop_assert_eq!(claimed, claims(Some(&after)));
    }
}
