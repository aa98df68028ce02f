//! Users with histories, and what `polynym store verify` finds of them.

use polynym_directory::{Mutations, UserChange};
use polynym_identifier::{Identifier, RawIdentifier};

use super::store_command::{json, store};
use crate::output::err;
use crate::users::{self, id};

/// The key of the handle of a user.
pub fn key(user: usize) -> String {
    format!("default,handle,user{user}")
}

/// Creates four users, each of which has had a handle and lost it.
pub async fn create(store: &impl Mutations) {
    for user in 0..4 {
        store.mutate(users::creation(user)).await.unwrap();
        let name = format!("user{user}");
        let handle = Identifier::parse(RawIdentifier::Handle(&name)).unwrap();
        store.mutate(users::mutation(id(user), UserChange::Unlink(handle))).await.unwrap();
    }
}

/// The words and users of the findings.
pub fn findings(name: &str) -> Vec<(String, String)> {
    let output = store(&["verify", "--mend", "--json"], name);
    let mut lines = json(&output);
    let totals = lines.pop().unwrap_or_else(|| panic!("{}", err(&output)));
    assert_eq!(totals["findings"], lines.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: Vec<_> =
        lines.iter().map(|line| (text(&line["finding"]), text(&line["user"]))).collect();
    found.sort();
    found
}

/// The same findings, in the form of [`findings`].
pub fn expected(findings: &[(&str, usize)]) -> Vec<(String, String)> {
    findings.iter().map(|(word, user)| ((*word).to_owned(), id(*user).to_string())).collect()
}
