//! A pasted list of identifiers: how many were read, and those that nobody has.

use std::collections::{BTreeSet, HashSet};

use polynym_identifier::pasted::{MAX_LISTED, listed, readings};
use polynym_identifier::{Identifier, RawIdentifier};
use polynym_proto::v1;

use super::text::cut;

/// The characters of an identifier that is shown.
const MAX_CHARACTERS: usize = 100;

/// A list of identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The identifiers that were read.
    pub read: usize,
    /// All identifiers of the list.
    pub all: usize,
    /// Those that nobody has, as typed.
    pub unknown: Vec<String>,
}

/// Whether a text is a list of identifiers. Numbers in national form are of `region`.
pub fn is_list(text: &str, region: &str) -> bool {
    !listed(text, &[region]).is_empty()
}

impl Listed {
    /// The list in a text, of which these users were found; none if it is no list. The regions in
    /// which national numbers were tried are those of the readings.
    pub fn of(text: &str, region: &str, page: &v1::FindUsersResponse) -> Option<Self> {
        let tried = page.tried.iter().map(|reading| &*reading.region);
        let regions: BTreeSet<_> = tried.filter(|region| !region.is_empty()).collect();
        let others = regions.into_iter().filter(|other| *other != region);
        let regions: Vec<_> = [region].into_iter().chain(others).collect();
        let parts = listed(text, &regions);
        let reasons = page.matches.iter().flat_map(|found| &found.reasons);
        let found: HashSet<_> = reasons.map(|reading| &*reading.value).collect();
        let canonical = |raw: RawIdentifier<'_>| Some(Identifier::parse(raw).ok()?.to_string());
        let is_unknown = |part: &&&str| {
            let values = readings(part, &regions).into_iter().filter_map(canonical);
            !values.into_iter().any(|value| found.contains(&*value))
        };
        let read = parts.len().min(MAX_LISTED);
        let unknown = parts[..read].iter().filter(is_unknown);
        let unknown = unknown.map(|part| cut(part.trim(), MAX_CHARACTERS)).collect();
        (read > 1).then_some(Self { read, all: parts.len(), unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_whom_nobody_has_are_named() {
        let reading = |value: &str, region: &str| v1::FindReading {
            value: value.to_owned(),
            region: region.to_owned(),
            ..Default::default()
        };
        let found = |reasons| v1::FoundUser { reasons, ..Default::default() };
        let page = v1::FindUsersResponse {
            tried: vec![reading("phone:+431234567", "AT")],
            matches: vec![
                found(vec![reading("email:ann@example.com", "")]),
                found(vec![reading("phone:+4315120000", "AT")]),
            ],
            ..Default::default()
        };
        let of = |text: &str| Listed::of(text, "DE", &page);
        let list = of("Ann@Example.com, @bob; 01 5120000 ,joe@example.com").unwrap();
        assert_eq!((list.read, list.all), (4, 4));
        assert_eq!(list.unknown, ["@bob", "joe@example.com"]);
        assert_eq!((of("ann@example.com"), of("Ann Lee")), (None, None));
        let many = (0..120).map(|n| format!("a{n}@example.com")).collect::<Vec<_>>().join("\n");
        let many = of(&many).unwrap();
        assert_eq!((many.read, many.all, many.unknown.len()), (100, 120, 100));
    }
}
