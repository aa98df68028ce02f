//! Reads a text as identifiers, an id and searches. Reads no store. The number of readings is
//! bounded.

use locality_uuid::LocalityId;

use super::attributes::{attribute_starts, attributes};
use super::way::{Reading, Search, Way};
use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::policies::Policies;
use crate::search::{
    Filter, MAX_NAME_WORDS, Range, Scalar, TypedName, one_letter_variants, other_umlauts,
};
use polynym_identifier::{Kind, RawIdentifier, Rules, is_international, pasted};

/// The minimum number of characters of the start of an address.
const MIN_START: usize = 3;
/// The minimum number of digits of the end of a phone number.
const MIN_END: usize = 4;
/// The maximum number of candidates for the words of a text: those of its first words.
const MAX_CANDIDATES: usize = 1_400;

/// The readings of a text, the likeliest first.
pub struct Readings<'t> {
    /// Identifiers, each once.
    pub identifiers: Vec<(Reading, RawIdentifier<'t>)>,
    /// The id of a user.
    pub id: Option<(Reading, LocalityId)>,
    /// The readings that find users by an index.
    pub searches: Vec<Search>,
}

impl<'t> Readings<'t> {
    /// Reads a text as identifiers alone. Numbers in national form are of each of `regions`.
    pub fn of_identifiers(text: &'t str, regions: &[&'t str], rules: Rules) -> Self {
        let text = text.trim();
        let mut read = pasted::identifiers(text, regions);
        if read.is_empty() {
            // A user may have an identifier that only earlier rules accept.
            let typed = RawIdentifier::from_text(text).ok();
            read = typed.map_or_else(|| pasted::guesses(text), |typed| vec![typed]);
        }
        let mut identifiers: Vec<(Reading, RawIdentifier<'_>)> = Vec::new();
        for raw in read {
            let reading = identifier(raw, rules);
            if identifiers.iter().all(|(known, _)| known.value != reading.value) {
                identifiers.push((reading, raw));
            }
        }
        Self { identifiers, id: None, searches: Vec::new() }
    }

    /// Reads a text in all ways.
    pub fn new(text: &'t str, regions: &[&'t str], policies: &Policies, rules: Rules) -> Self {
        let readings = Self::of_identifiers(text, regions, rules);
        let text = text.trim();
        let mut searches = attributes(text, policies);
        let id = text.parse().ok();
        if id.is_none() {
            searches.extend(names(text));
            let parts = [phone_end(text, rules), email_start(text, rules)];
            searches.extend(parts.into_iter().chain([email_domain(text, rules)]).flatten());
            searches.extend(attribute_starts(text, policies));
        }
        let id = id.map(|id: LocalityId| (Reading::new(Way::UserId, id.to_string()), id));
        Self { id, searches, ..readings }
    }

    /// The readings whose searches find a user.
    ///
    /// # Errors
    /// [`Error::Internal`] if the record is damaged.
    pub fn searches_of(&self, user: &EncodedUser) -> Result<Vec<Reading>, Error> {
        let user = user.decode().map_err(|error| Error::Internal(Box::new(error)))?;
        let finds = |search: &&Search| !search.only_orders && search.filter.matches(&user);
        Ok(self.searches.iter().filter(finds).map(|search| search.reading.clone()).collect())
    }

    /// All readings.
    pub fn tried(&self) -> Vec<Reading> {
        let identifiers = self.identifiers.iter().map(|(reading, _)| reading);
        let id = self.id.iter().map(|(reading, _)| reading);
        let searches = self.searches.iter().filter(|search| !search.only_orders);
        let searches = searches.map(|search| &search.reading);
        identifiers.chain(id).chain(searches).cloned().collect()
    }
}

/// The reading of an identifier. One that the rules reject is shown as it was typed.
fn identifier(raw: RawIdentifier<'_>, rules: Rules) -> Reading {
    let canonical = rules.parse(raw).map(|identifier| identifier.to_string());
    let region = match raw {
        RawIdentifier::Phone { number, region } if !is_international(number) => {
            region.to_ascii_uppercase()
        }
        _ => String::new(),
    };
    let value = canonical.unwrap_or_else(|_| raw.to_string());
    Reading { region, ..Reading::new(Way::Identifier, value) }
}

/// The searches for words of names: whole ones, first in the spelling that was typed, those that
/// may go on, and those with other umlauts. Those of a copied
/// `Name <address>` are beside its address.
fn names(text: &str) -> Vec<Search> {
    let beside = if text.contains('@') { pasted::name_beside(text) } else { text.to_owned() };
    let text = &*beside;
    let typed = TypedName::new(text, true);
    let is_short = typed.words().nth(MAX_NAME_WORDS).is_none();
    let is_name = text.contains(char::is_alphabetic);
    if !is_short || !is_name || text.contains("://") {
        return Vec::new();
    }
    let others = other_umlauts(text);
    let as_typed = name_search(Way::Name, &typed, typed.ranges());
    let respelt = others.first().and_then(|other| {
        name_search(Way::Name, &TypedName::new(other, true), all_spellings(text, &others, true))
    });
    let exact = name_search(Way::Name, &typed, all_spellings(text, &[], false));
    let whole = name_search(Way::Name, &typed, all_spellings(text, &others, false));
    // The index has the names with one word in the order of that word: whole ones are the first.
    let is_new = |whole: &Search| {
        let has_order = others.is_empty() && typed.words().nth(1).is_none();
        !has_order && as_typed.as_ref().is_some_and(|open| open.filter != whole.filter)
    };
    let first = |search: Search| Search { only_orders: true, ..search };
    let exact = exact.filter(is_new).map(first);
    let is_other = |whole: &Search| exact.as_ref().is_none_or(|own| own.filter != whole.filter);
    let whole = whole.filter(is_new).map(first).filter(is_other);
    exact.into_iter().chain(whole).chain(as_typed).chain(respelt).collect()
}

/// The ranges of forms for each word of a text, in this and in other spellings.
fn all_spellings(text: &str, others: &[String], is_open: bool) -> Vec<Vec<Range>> {
    let mut all = TypedName::new(text, is_open).ranges();
    for other in others {
        let ranges = TypedName::new(other, is_open).ranges();
        all.iter_mut().zip(ranges).for_each(|(own, ranges)| own.extend(ranges));
    }
    all
}

fn name_search(way: Way, name: &TypedName, ranges: Vec<Vec<Range>>) -> Option<Search> {
    let reading = Reading::new(way, name.words().collect::<Vec<_>>().join(" "));
    Some(Search::new(reading, Filter::of_words(ranges)?))
}

/// The search for phone numbers that end in digits. Drops leading zeros, which may be the trunk
/// prefix of a national form, if enough digits are left.
fn phone_end(text: &str, rules: Rules) -> Option<Search> {
    let typed = text.trim_start_matches(['*', '.', '…', ' ']);
    let folded = rules.fold_suffix(Kind::Phone, typed).pop()?;
    let national = folded.trim_start_matches('0');
    let digits = if national.len() < MIN_END { &*folded } else { national };
    let is_end = digits.len() >= MIN_END && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_end.then(|| {
        let filter = Filter::of_ends(Kind::Phone, vec![digits.to_owned()]);
        Search::new(Reading::new(Way::PhoneEnd, digits), filter)
    })
}

/// The search for addresses that start with a word.
fn email_start(text: &str, rules: Rules) -> Option<Search> {
    let is_start = |c: char| !c.is_whitespace() && !"<>()[]\",:;/\\".contains(c);
    let is_long = text.chars().nth(MIN_START - 1).is_some();
    (is_long && !text.starts_with('@') && text.chars().all(is_start)).then(|| {
        let filter = Filter::of_starts(Kind::Email, rules.fold_prefix(Kind::Email, text));
        Search::new(Reading::new(Way::EmailStart, text), filter)
    })
}

/// The search for addresses of a domain, with or without the sign before it.
fn email_domain(text: &str, rules: Rules) -> Option<Search> {
    let domain = text.strip_prefix('@').unwrap_or(text);
    let (_, top) = domain.rsplit_once('.')?;
    let is_inside = |c: char| c.is_alphanumeric() || ".-".contains(c);
    let is_domain = top.chars().all(char::is_alphabetic) && domain.chars().all(is_inside);
    (is_domain && top.chars().nth(1).is_some()).then(|| {
        let filter =
            Filter::of_ends(Kind::Email, rules.fold_suffix(Kind::Email, &format!("@{domain}")));
        Search::new(Reading::new(Way::EmailDomain, domain), filter)
    })
}

/// The words that differ by one letter from those of a text. Those with digits are no names.
pub fn candidates(text: &str) -> Vec<String> {
    let typed = TypedName::new(text, false);
    let words = typed.words().filter(|word| !word.contains(char::is_numeric));
    words.flat_map(one_letter_variants).take(MAX_CANDIDATES).collect()
}

/// The search for names of which each word of a text is a word or begins one. None for one word,
/// which another search finds.
pub fn begun_names(text: &str) -> Option<Search> {
    let typed = TypedName::new(text, true);
    let open = |word: &str| TypedName::new(word, true).ranges().into_iter().flatten().collect();
    let ranges: Vec<Vec<Range>> = typed.words().map(open).collect();
    if ranges.len() < 2 {
        return None;
    }
    name_search(Way::SimilarName, &typed, ranges)
}

/// The search for names that have each word of a text, or one of the `known` words that it may have
/// been meant to be. None if there are no such words.
pub fn similar_names(text: &str, known: &[String]) -> Option<Search> {
    let typed = TypedName::new(text, true);
    let mut ranges = typed.ranges();
    for (word, ranges) in typed.words().zip(&mut ranges) {
        let meant = one_letter_variants(word);
        let points = known.iter().filter(|known| meant.contains(*known));
        ranges.extend(points.map(|known| Range::point(Scalar::String(known.clone()))));
    }
    name_search(Way::SimilarName, &typed, ranges).filter(|_| !known.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::attributes::MAX_ATTRIBUTES;
    use super::*;
    use crate::model::attribute_definition::AttributeDefinition;

    /// The ways in which a text is read, with what each reads.
    fn read(text: &str, regions: &[&str]) -> Vec<(Way, String)> {
        let mut policies = Policies::default();
        let number = AttributeDefinition { find: true, ..AttributeDefinition::default() };
        policies.attributes.insert("customer".to_owned(), number);
        let tried = Readings::new(text, regions, &policies, Rules::PRESENT).tried();
        tried.into_iter().map(|reading| (reading.way, reading.value)).collect()
    }

    #[test]
    fn a_text_is_read_in_each_way_that_makes_sense() {
        use Way::{Attribute, AttributeStart, EmailDomain, EmailStart, Identifier, Name, UserId};
        let id = "20be0ffc-314a-bd53-7a50-013a65ca76d2";
        for (text, expected) in [
            (
                " Mueller ",
                &[
                    (Identifier, "handle:mueller"),
                    (Attribute, "Mueller"),
                    (Name, "mueller"),
                    (Name, "muller"),
                    (EmailStart, "Mueller"),
                    (AttributeStart, "Mueller"),
                ][..],
            ),
            ("Ann Lee", &[(Attribute, "Ann Lee"), (Name, "ann lee")]),
            ("山田 太郎", &[(Attribute, "山田 太郎"), (Name, "山田 太郎")]),
            ("", &[]),
        ] {
            let found = read(text, &[]);
            let found: Vec<_> = found.iter().map(|(way, value)| (*way, value.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert!(read(id, &[]).contains(&(UserId, id.to_owned())));
        assert!(read("004", &[]).contains(&(AttributeStart, "004".to_owned())));
        let ends = [("…2671", "2671"), ("0671", "0671"), ("(0171) 555-26 71", "1715552671")];
        for (text, digits) in ends {
            assert!(read(text, &[]).contains(&(Way::PhoneEnd, digits.to_owned())), "{text}");
        }
        for text in ["671", "+1 415 555 2671", "2671 a"] {
            assert!(read(text, &[]).iter().all(|(way, _)| *way != Way::PhoneEnd), "{text}");
        }
        assert!(read("joe@exam", &[]).contains(&(EmailStart, "joe@exam".to_owned())));
        for text in ["@acme.example", "acme.example"] {
            assert!(read(text, &[]).contains(&(EmailDomain, "acme.example".to_owned())), "{text}");
        }
        for text in ["koch.1000", "joe@acme.example", "acme", "a b.example", "x."] {
            assert!(read(text, &[]).iter().all(|(way, _)| *way != EmailDomain), "{text}");
        }
        let pasted = read("Ann Lee <ann@acme.example>", &[]);
        assert_eq!(pasted.last(), Some(&(Name, "ann lee".to_owned())));
        assert_eq!(candidates("K-1070"), candidates("K"));
    }

    #[test]
    fn readings_are_few_whatever_the_text() {
        let regions = ["DE", "AT", "CH", "US", "GB", "FR", "IT", "ES"];
        for text in ["a b ".repeat(1_024), "0301234567".into(), "a@b.c ".repeat(600)] {
            assert!(read(&text, &regions).len() <= pasted::MAX_LISTED + 2 + 2 * MAX_ATTRIBUTES + 6);
            assert!(candidates(&text).len() <= MAX_CANDIDATES);
        }
    }
}
