//! Pairs of users who may be the same person.

use std::time::SystemTime;

use polynym_proto::v1;
use v1::DuplicateReason;
use v1::find_duplicates_response::{Evidence, Pair, Progress};

use super::text::cut;

/// The maximum bytes of the pairs that are kept.
pub const MAX_BYTES: usize = 1 << 20;
/// The reasons of a pair that are kept, and the characters of a value or a name.
const MAX_REASONS: usize = 4;
const VALUE_CHARACTERS: usize = 100;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The pairs, best first.
    pub pairs: Vec<PairView>,
    /// What was read and compared.
    pub progress: Progress,
    /// Whether further pairs were dropped for their bytes.
    pub is_cut: bool,
    /// When the search ended.
    pub time: SystemTime,
    bytes: usize,
}

/// Two users who may be the same person.
#[derive(Clone, Debug)]
pub struct PairView {
    /// The score, from 1 to 99.
    pub score: i32,
    /// The ids of the users.
    pub ids: [String; 2],
    /// The names of the users; their ids if they have none.
    pub names: [String; 2],
    /// The reasons, best first.
    pub reasons: Vec<Reason>,
}

/// A reason for a pair.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The reason in words.
    pub text: String,
    /// The values that match: one if both are equal, none if they are not known.
    pub values: Vec<String>,
}

impl Default for Found {
    fn default() -> Self {
        let time = SystemTime::UNIX_EPOCH;
        Self { pairs: Vec::new(), progress: Progress::default(), is_cut: false, time, bytes: 0 }
    }
}

impl Found {
    /// Adds a pair, if there is room.
    pub fn add(&mut self, pair: &Pair) {
        let view = PairView::of(pair);
        let bytes = view.bytes();
        if self.is_cut || self.bytes + bytes > MAX_BYTES {
            self.is_cut = true;
            return;
        }
        self.bytes += bytes;
        self.pairs.push(view);
    }
}

impl PairView {
    fn of(pair: &Pair) -> Self {
        let ids = [pair.user_id_a.clone(), pair.user_id_b.clone()];
        let named = |name: &str, id: &String| {
            if name.is_empty() { id.clone() } else { cut(name, VALUE_CHARACTERS) }
        };
        Self {
            score: pair.score,
            names: [named(&pair.display_name_a, &ids[0]), named(&pair.display_name_b, &ids[1])],
            ids,
            reasons: pair.evidence.iter().take(MAX_REASONS).map(Reason::of).collect(),
        }
    }

    fn bytes(&self) -> usize {
        let values = self.reasons.iter().flat_map(|reason| {
            let own = reason.text.len() + size_of::<Reason>();
            reason.values.iter().map(|value| value.len() + size_of::<String>()).chain([own])
        });
        let names = self.ids.iter().chain(&self.names).map(String::len);
        size_of::<Self>() + names.sum::<usize>() + values.sum::<usize>()
    }
}

impl Reason {
    fn of(evidence: &Evidence) -> Self {
        let (a, b) = (&evidence.value_a, &evidence.value_b);
        let values = if a == b { vec![a] } else { vec![a, b] };
        let shown = values.into_iter().filter(|value| !value.is_empty());
        let values = shown.map(|value| cut(value, VALUE_CHARACTERS)).collect();
        Self { text: words(evidence), values }
    }
}

/// The reason in words.
fn words(evidence: &Evidence) -> String {
    let kind = match evidence.kind.as_str() {
        "email" => "email address",
        "phone" => "phone number",
        other => other,
    };
    match evidence.reason() {
        DuplicateReason::Unspecified => "A reason that this program does not know".to_owned(),
        DuplicateReason::SameMailbox => "Both addresses lead to one mailbox".to_owned(),
        DuplicateReason::SimilarEmail => {
            "Their email addresses differ only in dots and tags".to_owned()
        }
        DuplicateReason::IdentityInAttribute => {
            format!("The {kind} of one is in an attribute of the other")
        }
        DuplicateReason::SameAttribute => format!("Both have the same {kind} in an attribute"),
        DuplicateReason::HeldIdentity => {
            format!("The {kind} of one is held for the other, its former owner")
        }
        DuplicateReason::LookalikeHandle => "Their handles look the same".to_owned(),
        DuplicateReason::NearHandle => {
            "They have the same name, and nearly the same handle".to_owned()
        }
        DuplicateReason::SameName => "They have the same name".to_owned(),
        DuplicateReason::SameNameAndAttribute => {
            "They have the same name, and the same value of an attribute that counts as evidence"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_bounded_in_bytes() {
        let value = "é".repeat(4_096);
        let evidence = Evidence { value_a: value.clone(), value_b: value, ..Default::default() };
        let pair = Pair { evidence: vec![evidence; 20], ..Default::default() };
        let mut found = Found::default();
        (0..10_000).for_each(|_| found.add(&pair));
        assert!(found.is_cut);
        let bytes: usize = found.pairs.iter().map(PairView::bytes).sum();
        assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES / 2, "{bytes}");
    }
}
