//! One country calling code's numbering plan, compiled from the metadata of libphonenumber.
//!
//! `phonenumber` itself matches that metadata behind one lock, recompiles patterns when many
//! countries are in use, and accepts a match of a number's start.

use phonenumber::Metadata;
use phonenumber::metadata::{DATABASE, Descriptor, Descriptors};
use regex::{Regex, RegexBuilder};

/// The regions that share a calling code, the main one first.
pub(super) struct Plan {
    regions: Vec<Region>,
}

impl Plan {
    pub(super) fn load(code: u16) -> Self {
        let regions = DATABASE.by_code(&code).unwrap_or_default();
        Plan { regions: regions.into_iter().filter_map(Region::load).collect() }
    }

    /// The region with this id, or the main one.
    pub(super) fn region(&self, id: Option<&str>) -> Option<&Region> {
        match id {
            Some(id) => self.regions.iter().find(|region| region.id == id),
            None => self.regions.first(),
        }
    }

    /// Whether a number is valid in its region, as in libphonenumber's `isValidNumber`.
    pub(super) fn has(&self, national: &str) -> bool {
        match self.regions.as_slice() {
            [only] => only.has(national),
            regions => regions
                .iter()
                .find(|region| region.claims(national))
                .is_some_and(|region| region.has(national)),
        }
    }
}

pub(super) struct Region {
    id: String,
    international_prefix: Option<Regex>,
    national_prefix: Option<Regex>,
    /// The replacement of the national prefix, if there is one.
    transform: Option<String>,
    leading_digits: Option<Regex>,
    general: Pattern,
    types: Vec<Pattern>,
}

impl Region {
    fn load(metadata: &Metadata) -> Option<Self> {
        let descriptors = metadata.descriptors();
        let prefix_regex =
            |pattern: Option<&str>| pattern.and_then(|p| compile(&format!("^(?:{p})")));
        let prefix = metadata.national_prefix_for_parsing().map(|p| p.as_str());
        Some(Region {
            id: metadata.id().to_owned(),
            international_prefix: prefix_regex(metadata.international_prefix().map(|p| p.as_str())),
            national_prefix: prefix_regex(prefix.or(metadata.national_prefix())),
            transform: metadata.national_prefix_transform_rule().map(braced),
            leading_digits: prefix_regex(metadata.leading_digits().map(|p| p.as_str())),
            general: Pattern::load(descriptors.general())?,
            types: number_types(descriptors)
                .into_iter()
                .flatten()
                .filter_map(Pattern::load)
                .collect(),
        })
    }

    /// The digits after this region's international prefix. Calling codes do not start with 0, so a
    /// following 0 means that it was no prefix.
    pub(super) fn abroad<'a>(&self, digits: &'a str) -> Option<&'a str> {
        let prefix = self.international_prefix.as_ref()?.find(digits)?;
        let rest = &digits[prefix.end()..];
        (!rest.starts_with('0')).then_some(rest)
    }

    /// The number without the national prefix and a carrier code.
    pub(super) fn without_prefix(&self, digits: &str) -> Option<String> {
        let found = self.national_prefix.as_ref()?.captures(digits)?;
        let rest = &digits[found.get_match().end()..];
        let mut stripped = String::new();
        // As in libphonenumber, the rule applies only if the last group of the prefix matched.
        if let (Some(rule), Some(_)) = (&self.transform, found.get(found.len() - 1)) {
            found.expand(rule, &mut stripped);
        }
        stripped.push_str(rest);
        Some(stripped)
    }

    fn claims(&self, national: &str) -> bool {
        match &self.leading_digits {
            Some(leading) => leading.is_match(national),
            None => self.has(national),
        }
    }

    fn has(&self, national: &str) -> bool {
        self.general.matches(national) && self.types.iter().any(|kind| kind.matches(national))
    }
}

/// The number types of libphonenumber, the usual ones first.
fn number_types(of: &Descriptors) -> [Option<&Descriptor>; 10] {
    [
        of.mobile(),
        of.fixed_line(),
        of.toll_free(),
        of.voip(),
        of.premium_rate(),
        of.shared_cost(),
        of.personal_number(),
        of.pager(),
        of.uan(),
        of.voicemail(),
    ]
}

struct Pattern {
    lengths: Vec<u16>,
    digits: Regex,
}

impl Pattern {
    fn load(descriptor: &Descriptor) -> Option<Self> {
        let pattern = descriptor.national_number().as_str();
        Some(Pattern {
            lengths: descriptor.possible_length().to_vec(),
            digits: compile(&format!("^(?:{pattern})$"))?,
        })
    }

    fn matches(&self, national: &str) -> bool {
        let fits = |&length: &u16| usize::from(length) == national.len();
        (self.lengths.is_empty() || self.lengths.iter().any(fits)) && self.digits.is_match(national)
    }
}

/// Compiles a pattern of the metadata, which has line breaks and matches ASCII only.
fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).ignore_whitespace(true).unicode(false).build().ok()
}

/// Adds braces to groups: Java's `9$15` is group 1 and a 5, `regex`'s is group 15.
fn braced(rule: &str) -> String {
    ('1'..='9').fold(rule.to_owned(), |rule, group| {
        rule.replace(&format!("${group}"), &format!("${{{group}}}"))
    })
}
