//! The comparison of two users.

use super::evidence::{Evidence, Match, Reason};
use super::frequency::Frequencies;
use super::name;
use super::profile::{Contact, Profile, Source};
use polynym_identifier::Kind;

/// The part of a score that is left where addresses are equal only without their dots, in percent.
const WITHOUT_DOTS: u16 = 60;

/// The reasons for which two users may be the same person; none where there are none.
pub fn compare(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<Match> {
    let mut evidence = of_contacts(a, b, frequencies);
    evidence.extend(of_handles(a, b, frequencies));
    let is_near = evidence.iter().any(|evidence| evidence.reason == Reason::NearHandle);
    if let Some(others) = sharers_of_name(a, b, frequencies)
        && !evidence.is_empty()
        && !is_near
    {
        let score = Reason::SameName.score_shared(others);
        evidence.push(Evidence { reason: Reason::SameName, kind: None, score });
    }
    Match::of(evidence)
}

/// The other users with the display name that both have; none where they have different ones.
fn sharers_of_name(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<usize> {
    let name = a.name.filter(|_| a.name == b.name)?;
    Some(frequencies.count(name).saturating_sub(2))
}

fn of_contacts(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Vec<Evidence> {
    let equal = |contact: &Contact| {
        let from = b.contacts.partition_point(|other| other.loose < contact.loose);
        let loose = contact.loose;
        b.contacts[from..].iter().take_while(move |other| other.loose == loose)
    };
    let pairs = a.contacts.iter().flat_map(|contact| equal(contact).map(move |b| (contact, b)));
    pairs.filter_map(|(a, b)| of_contact(a, b, frequencies)).collect()
}

/// The evidence of two addresses that are equal without their dots.
fn of_contact(a: &Contact, b: &Contact, frequencies: &Frequencies) -> Option<Evidence> {
    let is_exact = a.exact == b.exact;
    let in_attributes = || frequencies.count(a.loose);
    let (reason, score) = match (a.source, b.source) {
        (Source::Identity, Source::Identity) => {
            let reason = if is_exact { Reason::SameMailbox } else { Reason::SimilarEmail };
            // A phone number has one owner.
            return (a.kind == Kind::Email).then(|| Evidence::new(reason, a.kind, reason.score()));
        }
        (Source::Hold, _) | (_, Source::Hold) => {
            (Reason::HeldIdentity, Reason::HeldIdentity.score())
        }
        (Source::Attribute, Source::Attribute) => {
            let others = in_attributes().saturating_sub(2);
            (Reason::SameAttribute, Reason::SameAttribute.score_shared(others))
        }
        (Source::Identity, Source::Attribute) | (Source::Attribute, Source::Identity) => {
            let others = in_attributes().saturating_sub(1);
            (Reason::IdentityInAttribute, Reason::IdentityInAttribute.score_shared(others))
        }
    };
    let score = match is_exact {
        true => score,
        false => (u16::from(score) * WITHOUT_DOTS / 100) as u8,
    };
    Some(Evidence::new(reason, a.kind, score))
}

fn of_handles(a: &Profile, b: &Profile, frequencies: &Frequencies) -> Option<Evidence> {
    let pairs = || a.handles.iter().flat_map(|one| b.handles.iter().map(move |other| (one, other)));
    let others = sharers_of_name(a, b, frequencies);
    let is_near = || pairs().any(|(one, other)| name::is_near(&one.form, &other.form));
    let near = others.filter(|_| is_near()).map(|others| {
        Evidence::new(Reason::NearHandle, Kind::Handle, Reason::NearHandle.score_shared(others))
    });
    let looks = pairs().any(|(one, other)| one.skeleton == other.skeleton).then(|| {
        let reason = Reason::LookalikeHandle;
        Evidence::new(reason, Kind::Handle, reason.score())
    });
    near.into_iter().chain(looks).max_by_key(|evidence| evidence.score)
}
