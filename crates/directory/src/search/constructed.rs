//! Filters that are made of values instead of a text.

use super::condition::{Condition, Subject};
use super::element::MAX_NAME_WORDS;
use super::field::Field;
use super::filter::{Expression, Filter};
use super::range::Range;
use super::scalar::Scalar;
use polynym_identifier::Kind;

impl Filter {
    /// Users with one of these values of an attribute.
    pub fn of_attribute(name: &str, values: Vec<Scalar>) -> Self {
        let ranges = Range::distinct(values.into_iter().map(Range::point).collect());
        Self::of(Subject::Field(Field::Attribute(name.to_owned()), ranges))
    }

    /// Users with a text of an attribute that starts with one of these.
    pub fn of_attribute_starts(name: &str, starts: &[String]) -> Self {
        let ranges = starts.iter().map(|start| Range::prefix(start)).collect();
        Self::of(Subject::Field(Field::Attribute(name.to_owned()), Range::distinct(ranges)))
    }

    /// Users with an identity of a kind whose canonical value starts with one of these texts.
    pub fn of_starts(kind: Kind, starts: Vec<String>) -> Self {
        Self::of(Subject::IdentityPrefix(kind, starts))
    }

    /// Users with an identity of a kind whose canonical value ends in one of these texts.
    pub fn of_ends(kind: Kind, ends: Vec<String>) -> Self {
        Self::of(Subject::IdentitySuffix(kind, ends))
    }

    /// Users whose names have a form in one of the ranges of each word. None without words, or with
    /// more than a filter may have.
    pub fn of_words(words: Vec<Vec<Range>>) -> Option<Self> {
        let is_valid = (1..=MAX_NAME_WORDS).contains(&words.len());
        let has = |ranges| Self::of(Subject::Field(Field::NameForm, Range::distinct(ranges))).0;
        is_valid.then(|| Self(Expression::all(words.into_iter().map(has).collect())))
    }

    /// This filter without the users of the others.
    #[must_use]
    pub fn excluding<'f>(self, others: impl IntoIterator<Item = &'f Self>) -> Self {
        let not = |other: &Self| Expression::Not(Box::new(other.0.clone()));
        let rest = others.into_iter().map(not);
        Self(Expression::all([self.0].into_iter().chain(rest).collect()))
    }

    fn of(subject: Subject) -> Self {
        Self(Expression::Is(Condition { subject, differs: false }))
    }
}
