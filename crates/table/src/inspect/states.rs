//! Columns that say whether somebody is disabled, in the words of other directories.

use std::collections::BTreeMap;

/// The names of columns with a state, in lower case and without signs.
const STATUS: [&str; 3] = ["status", "userstatus", "accountstatus"];
/// The names of columns that say whether an account is enabled.
const ENABLED: [&str; 2] = ["accountenabled", "enabled"];
/// The words of such columns, and whether the account is disabled then.
const WORDS: [(&str, bool); 13] = [
    ("active", false),
    ("staged", false),
    ("provisioned", false),
    ("pending user action", false),
    ("recovery", false),
    ("password reset", false),
    ("password expired", false),
    ("locked out", false),
    ("suspended", true),
    ("deprovisioned", true),
    ("deactivated", true),
    ("inactive", true),
    ("deleted", true),
];
const FLAGS: [(&str, bool); 2] = [("true", false), ("false", true)];

/// The meanings of the words of a column with states: `active` or `disabled`. None if it is another
/// column, or if not even most of its words are known. Those that are not make their rows rejects.
pub fn meanings(column: &str, cells: &[&str]) -> Option<BTreeMap<String, String>> {
    let name = column.to_lowercase();
    let name = name.trim().strip_prefix("profile.").unwrap_or(name.trim());
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let words = match &*name {
        name if STATUS.contains(&name) => &WORDS[..],
        name if ENABLED.contains(&name) => &FLAGS[..],
        _ => return None,
    };
    let is_known = |cell: &str| {
        let cell = cell.to_lowercase().replace('_', " ");
        words.iter().any(|(word, _)| *word == cell)
    };
    let known = cells.iter().filter(|cell| is_known(cell)).count();
    if known * 2 <= cells.len() {
        return None;
    }
    let of = |word: &str, is_disabled: bool| {
        let meaning = if is_disabled { "disabled" } else { "active" };
        spellings(word).map(|own| (own, meaning.to_owned()))
    };
    Some(words.iter().flat_map(|(word, is_disabled)| of(word, *is_disabled)).collect())
}

/// A word as programs write it: `locked out`, `Locked out`, `LOCKED OUT` and `LOCKED_OUT`.
fn spellings(word: &str) -> [String; 4] {
    let (first, rest) = word.split_at_checked(1).unwrap_or_default();
    let upper = word.to_uppercase();
    [word.to_owned(), first.to_uppercase() + rest, upper.clone(), upper.replace(' ', "_")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::inspect;
    use crate::map_file::Given;
    use polynym_proto::v1::State;

    #[test]
    fn tables_of_other_directories_have_states() {
        for (text, words) in [
            ("mail,status\na@example.com,ACTIVE\nb@example.com,SUSPENDED\n", "okta"),
            ("mail,accountEnabled\na@example.com,True\nb@example.com,False\n", "entra"),
        ] {
            let inspection = inspect(|| Ok(text.as_bytes()), Given::default()).unwrap();
            let states =
                inspection.sample.iter().map(|(_, own)| own.as_ref().unwrap().user.state());
            assert_eq!(states.collect::<Vec<_>>(), [State::Active, State::Disabled], "{words}");
            let again = inspection.map_file.given().unwrap();
            assert_eq!(inspect(|| Ok(text.as_bytes()), again).unwrap().rejects.len(), 0);
        }
    }

    #[test]
    fn columns_with_states_are_known_by_name_and_words() {
        let okta = meanings("profile.Status", &["ACTIVE", "SUSPENDED"]).unwrap();
        let wanted = [("DEPROVISIONED", "disabled"), ("Locked out", "active")];
        assert!(wanted.iter().all(|(word, meaning)| okta[*word] == *meaning));
        let entra = meanings("accountEnabled", &["True", "FALSE"]).unwrap();
        assert_eq!((&*entra["False"], &*entra["true"]), ("disabled", "active"));
        assert_eq!(meanings("Status", &["active", "single"]), None);
        assert!(meanings("Status", &["ACTIVE", "Asleep", "SUSPENDED"]).is_some());
        assert_eq!(meanings("Married", &["true"]), None);
    }
}
