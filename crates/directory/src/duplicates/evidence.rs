//! The reasons for which two users may be one person, and their common score.

use polynym_identifier::Kind;

/// A reason for which two users may be the same person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Both have an address of one mailbox: equal without tags and, at Gmail, without dots.
    SameMailbox,
    /// Both have an address that differs only in dots or tags.
    SimilarEmail,
    /// An email or phone number of one is in an attribute of the other.
    IdentityInAttribute,
    /// Both have the same email or phone number in an attribute.
    SameAttribute,
    /// An email or phone number that one has is held for the other, its former owner.
    HeldIdentity,
    /// Both have handles that look the same.
    LookalikeHandle,
    /// Both have the same display name and nearly the same handle.
    NearHandle,
    /// Both have the same display name. It counts beside other reasons only.
    SameName,
}

impl Reason {
    /// The score of this reason alone, at best.
    pub const fn score(self) -> u8 {
        match self {
            Self::SameMailbox => 90,
            Self::HeldIdentity => 75,
            Self::IdentityInAttribute => 70,
            Self::SimilarEmail | Self::NearHandle => 55,
            Self::LookalikeHandle => 50,
            Self::SameAttribute => 40,
            Self::SameName => 30,
        }
    }

    /// The score where `others` users share what both have: two halve it, eight leave a fifth.
    pub fn score_shared(self, others: usize) -> u8 {
        (usize::from(self.score()) * 2 / (2 + others)) as u8
    }
}

/// A reason that two users give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The reason.
    pub reason: Reason,
    /// The kind of the identifier that it rests on; none for a name.
    pub kind: Option<Kind>,
    /// The score of this reason alone, from 1 to 99.
    pub score: u8,
}

impl Evidence {
    /// Evidence that rests on an identifier.
    pub const fn new(reason: Reason, kind: Kind, score: u8) -> Self {
        Self { reason, kind: Some(kind), score }
    }
}

/// The reasons that two users give, together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// From 1 to 99.
    pub score: u8,
    /// Each reason and kind once, the best one first.
    pub evidence: Vec<Evidence>,
}

impl Match {
    /// Combines reasons as independent ones: each leaves its part of the doubt that the others
    /// leave. None where there are none.
    pub fn of(mut evidence: Vec<Evidence>) -> Option<Self> {
        evidence.retain(|evidence| evidence.score > 0);
        evidence.sort_by_key(|evidence| {
            (std::cmp::Reverse(evidence.score), evidence.reason, evidence.kind)
        });
        let mut seen = Vec::new();
        evidence.retain(|evidence| {
            let is_new = !seen.contains(&(evidence.reason, evidence.kind));
            seen.push((evidence.reason, evidence.kind));
            is_new
        });
        let doubt = |left: f64, evidence: &Evidence| left * (1.0 - f64::from(evidence.score) / 1e2);
        let doubt = evidence.iter().fold(1.0, doubt);
        let score = (100.0 - 100.0 * doubt).round().clamp(1.0, 99.0) as u8;
        (!evidence.is_empty()).then_some(Self { score, evidence })
    }
}
