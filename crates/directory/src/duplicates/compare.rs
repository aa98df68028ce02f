//! The comparison of two users.

use super::evidence::{Evidence, Match, Reason};
use super::frequency::Frequencies;
use super::name;
use super::profile::{Contact, Profile, Source};
use polynym_identifier::Kind;

/// The factor of a score if addresses are equal only without their dots, in percent.
const WITHOUT_DOTS_PERCENT: u16 = 60;

/// The reasons why two users may be the same person, if any.
pub fn compare(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<Match> {
    let mut evidence = contact_evidence(a, b, frequencies);
    evidence.extend(handle_evidence(a, b, frequencies));
    evidence.extend(attribute_evidence(a, b, frequencies));
    let has_name = |evidence: &Evidence| {
        matches!(evidence.reason, Reason::NearHandle | Reason::SameNameAndAttribute)
    };
    let is_counted = evidence.iter().any(has_name);
    if let Some(others) = sharers_of_name(a, b, frequencies)
        && (!evidence.is_empty() || a.is_full_name)
        && !is_counted
    {
        let score = Reason::SameName.score_shared(others);
        evidence.push(Evidence { reason: Reason::SameName, kind: None, score });
    }
    Match::from_evidence(evidence)
}

/// The number of other users with the display name of both; `None` if the names differ.
fn sharers_of_name(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<usize> {
    let name = a.name.filter(|_| a.name == b.name)?;
    Some(frequencies.count(name).saturating_sub(2))
}

fn contact_evidence(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Vec<Evidence> {
    let pairs = a.contacts.iter().flat_map(|contact| {
        let from = b.contacts.partition_point(|other| other.loose < contact.loose);
        let equal = b.contacts[from..].iter().take_while(|other| other.loose == contact.loose);
        equal.map(move |other| (contact, other))
    });
    pairs.filter_map(|(a, b)| pair_evidence(a, b, frequencies)).collect()
}

/// The evidence of two addresses that are equal without their dots.
fn pair_evidence(a: &Contact, b: &Contact, frequencies: &Frequencies) -> Option<Evidence> {
    let is_exact = a.exact == b.exact;
    let in_attributes = || frequencies.count(a.loose);
    let shared = |reason: Reason, others| (reason, reason.score_shared(others));
    let (reason, score) = match (a.source, b.source) {
        (Source::Identity, Source::Identity) => {
            let reason = if is_exact { Reason::SameMailbox } else { Reason::SimilarEmail };
            let others = frequencies.count(a.mailbox()).saturating_sub(2);
            // A phone number has only one owner.
            return (a.kind == Kind::Email)
                .then(|| Evidence::new(reason, a.kind, reason.score_shared(others)));
        }
        (Source::Hold, _) | (_, Source::Hold) => {
            (Reason::HeldIdentity, Reason::HeldIdentity.score())
        }
        (Source::Attribute, Source::Attribute) => {
            shared(Reason::SameAttribute, in_attributes().saturating_sub(2))
        }
        (Source::Identity, Source::Attribute) | (Source::Attribute, Source::Identity) => {
            shared(Reason::IdentityInAttribute, in_attributes().saturating_sub(1))
        }
    };
    let percent = if is_exact { 100 } else { WITHOUT_DOTS_PERCENT };
    Some(Evidence::new(reason, a.kind, (u16::from(score) * percent / 100) as u8))
}

fn handle_evidence(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<Evidence> {
    let pairs = || a.handles.iter().flat_map(|one| b.handles.iter().map(move |other| (one, other)));
    let near = sharers_of_name(a, b, frequencies)
        .filter(|_| pairs().any(|(one, other)| name::is_near(&one.form, &other.form)))
        .map(|others| (Reason::NearHandle, Reason::NearHandle.score_shared(others)));
    let looks = pairs()
        .any(|(one, other)| one.skeleton == other.skeleton)
        .then(|| (Reason::LookalikeHandle, Reason::LookalikeHandle.score()));
    let (reason, score) = near.into_iter().chain(looks).max_by_key(|(_, score)| *score)?;
    Some(Evidence::new(reason, Kind::Handle, score))
}

/// The evidence of the same name with the same attribute: the rarest one.
fn attribute_evidence(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<Evidence> {
    let shared = a.marks.iter().filter(|mark| b.marks.binary_search(mark).is_ok());
    let reason = Reason::SameNameAndAttribute;
    let score = |mark: &u64| reason.score_shared(frequencies.count(*mark).saturating_sub(2));
    shared.map(score).max().map(|score| Evidence { reason, kind: None, score })
}
