//! The reasons why two users may be the same person, and their combined score.

use std::collections::HashSet;

use polynym_identifier::Kind;

/// A reason why two users may be the same person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// They have addresses of one mailbox: equal without tags and, at Gmail, without dots.
    SameMailbox,
    /// They have addresses that differ only in dots or tags.
    SimilarEmail,
    /// An email or phone number of one is in an attribute of the other.
    IdentityInAttribute,
    /// Both have the same email or phone number in an attribute.
    SameAttribute,
    /// An email or phone number of one is held for the other, its former owner.
    HeldIdentity,
    /// Both have handles that look the same.
    LookalikeHandle,
    /// Both have the same display name and nearly the same handle.
    NearHandle,
    /// Both have the same display name, and the same value of an attribute that the tenant defines
    /// as evidence.
    SameNameAndAttribute,
    /// Both have the same display name. It counts alone if it is a full name, of several words.
    SameName,
}

impl Reason {
    /// The maximum score of this reason alone.
    pub const fn score(self) -> u8 {
        match self {
            Self::SameMailbox => 90,
            Self::HeldIdentity => 75,
            Self::IdentityInAttribute | Self::SameNameAndAttribute => 70,
            Self::SimilarEmail | Self::NearHandle => 55,
            Self::LookalikeHandle => 50,
            Self::SameAttribute => 40,
            Self::SameName => 30,
        }
    }

    /// The score if `others` users share the value: two halve it, eight leave a fifth. Eight halve
    /// that of a mailbox: some people have several accounts, and hundreds share the mailbox of a
    /// service with tags.
    pub fn score_shared(self, others: usize) -> u8 {
        let halving = match self {
            Self::SameMailbox | Self::SimilarEmail => 8,
            _ => 2,
        };
        (usize::from(self.score()) * halving / (halving + others)) as u8
    }
}

/// One reason, with its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The reason.
    pub reason: Reason,
    /// The kind of its identifier; `None` for a name.
    pub kind: Option<Kind>,
    /// The score of this reason alone, from 1 to 99.
    pub score: u8,
}

impl Evidence {
    /// Evidence from an identifier.
    pub const fn new(reason: Reason, kind: Kind, score: u8) -> Self {
        Self { reason, kind: Some(kind), score }
    }
}

/// All reasons, with their combined score.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The combined score, from 1 to 99.
    pub score: u8,
    /// Each reason and kind once, the best one first.
    pub evidence: Vec<Evidence>,
}

impl Match {
    /// Combines reasons as independent probabilities. Returns `None` if there are none.
    pub fn from_evidence(mut evidence: Vec<Evidence>) -> Option<Self> {
        evidence.retain(|evidence| evidence.score > 0);
        evidence.sort_by_key(|evidence| {
            (std::cmp::Reverse(evidence.score), evidence.reason, evidence.kind)
        });
        let mut seen = HashSet::new();
        evidence.retain(|evidence| seen.insert((evidence.reason, evidence.kind)));
        let doubt: f64 =
            evidence.iter().map(|evidence| 1.0 - f64::from(evidence.score) / 1e2).product();
        let score = (100.0 - 100.0 * doubt).round().clamp(1.0, 99.0) as u8;
        (!evidence.is_empty()).then_some(Self { score, evidence })
    }
}
