//! The parts of a file that an import leaves out, by name and number.

use std::collections::BTreeMap;

use serde_json::Value;

/// The names that are told apart, and the characters of a name.
const MAX_NAMES: usize = 100;
const MAX_NAME_CHARS: usize = 80;
/// Stands for further names.
const OTHERS: &str = "other parts";

/// The parts of a file that users do not have as such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Passwords, their hashes and other secrets, which are refused.
    pub secrets: Counts,
    /// The data that are not imported.
    pub left_out: Counts,
    /// The texts that are kept as attributes, since they are no valid identifiers.
    pub kept: Counts,
}

/// Numbers by name. The names are bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Counts one.
    pub fn add(&mut self, name: &str) {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        let is_known = self.0.contains_key(&name) || self.0.len() < MAX_NAMES;
        *self.0.entry(if is_known { name } else { OTHERS.to_owned() }).or_default() += 1;
    }

    /// The names with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (&**name, *count))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of one name.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

impl Notes {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.left_out.is_empty() && self.kept.is_empty()
    }

    /// Counts a part that is not imported.
    pub fn leave_out(&mut self, name: &str) {
        match is_secret(name) {
            true => self.secrets.add(name),
            false => self.left_out.add(name),
        }
    }

    /// Says that no user of the file has the field with its state.
    pub fn no_state(&mut self, field: &str) {
        self.left_out.add(&format!("state of the users, since none has {field}"));
    }

    /// Counts a part of JSON that is not imported, unless it is empty.
    pub fn leave_out_value(&mut self, name: &str, value: &Value) {
        if !is_empty(value) {
            self.leave_out(name);
        }
    }
}

/// Whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// Whether a name is one of passwords, their hashes, or other secrets of signing in.
pub fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 13] = [
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "passcode",
        "secret",
        "salt",
        "unicodepwd",
        "pwdhistory",
        "token",
        "apikey",
        "api_key",
        "nthash",
    ];
    const NAMES: [&str; 12] = [
        "credentials",
        "otp",
        "totp",
        "pin",
        "pwd",
        "krbprincipalkey",
        "dbcspwd",
        "multifactor",
        "private_key",
        "recovery_codes",
        "security_answer",
        "supplementalcredentials",
    ];
    /// Words that have a part of these and are none.
    const HARMLESS: [&str; 2] = ["secretary", "next_page_token"];
    let name = HARMLESS.iter().fold(name.to_lowercase(), |name, word| name.replace(word, ""));
    let last = name.rsplit('.').next().unwrap_or_default();
    PARTS.iter().any(|part| name.contains(part))
        || NAMES.contains(&last)
        || name.split('.').any(|part| part == "credentials")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let mut counts = Counts::default();
        (0..1_000).for_each(|n| counts.add(&format!("{n:0200}")));
        assert_eq!(counts.iter().count(), 1);
        (0..1_000).for_each(|n| counts.add(&format!("n{n}")));
        assert_eq!(counts.iter().count(), MAX_NAMES + 1);
        assert_eq!(counts.get(OTHERS), 1_000 - 99);
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "userPassword",
            "passwordHash",
            "salt",
            "credentials.password",
            "totp",
            "sambaNTPwdHistory",
            "access_token",
            "apiKey",
            "api_key",
            "sambaNThash",
            "passcode",
            "Passwort",
            "a.PIN",
            "recovery_codes",
            "security_answer",
            "supplementalCredentials",
            "secretaryPassword",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["groups", "photoUrl", "passport", "hotpot", "secretary", "spinning"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
