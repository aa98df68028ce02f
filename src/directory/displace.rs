//! Verified identities that win over others which are not, where the tenant wants that.

use std::collections::BTreeMap;

use super::settle::{Changes, Transition};
use super::view::{Seen, Stop};
use super::{DraftIdentity, Effects, Error, Mutation, Record, Report, View, change};
use crate::locality::LocalityId;

/// Settles the transition of a user who takes the identities of `drafts`: from other users, too, where theirs are not
/// verified.
pub fn settle(
    mutation: &Mutation,
    view: &View,
    transition: Transition<'_>,
    drafts: &[DraftIdentity],
) -> Result<Effects, Stop> {
    let mut losers = BTreeMap::new();
    if mutation.policies.verified_wins {
        for draft in drafts.iter().filter(|draft| draft.verification.is_some()) {
            displace(mutation, view, draft, &mut losers)?;
        }
    }
    let ids: Vec<LocalityId> = losers.keys().copied().collect();
    let lost = losers.into_values().map(|(before, after)| Transition::new(before, after));
    let transitions = std::iter::once(transition).chain(lost).collect();
    let effects = super::settle::settle(mutation, view, transitions, Changes::new())?;
    let report = if ids.is_empty() { Report::Nothing } else { Report::Displaced(ids) };
    Ok(Effects { report, ..effects })
}

/// Users who lose something, as they were and as they will be.
type Losers<'v> = BTreeMap<LocalityId, (&'v Record, Record)>;

fn displace<'v>(
    mutation: &Mutation,
    view: &'v View,
    draft: &DraftIdentity,
    losers: &mut Losers<'v>,
) -> Result<(), Stop> {
    let Seen::There(claim) = view.claim(&mutation.key(&draft.identifier), mutation.dry_run) else { return Ok(()) };
    let Some(owner) = claim.resolves_to() else { return Ok(()) };
    let before = view.read_user(owner)?.ok_or_else(|| Error::Internal("a claim of nobody".into()))?;
    let (_, after) = losers.entry(owner).or_insert_with(|| (before, before.clone()));
    let unlisted = |_| Error::Internal("a claim of a user who does not list it".into());
    let n = change::position(&after.user, &draft.identifier).map_err(unlisted)?;
    if after.user.identities[n].verification.is_none() {
        after.take(n);
    }
    Ok(())
}
