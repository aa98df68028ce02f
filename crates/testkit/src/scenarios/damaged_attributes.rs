//! Users with attributes, and what `polynym store verify` finds of them.

use polynym_directory::{Mutations, NewUser, UserChange, Value};

use super::store_command::{json, store};
use crate::output::err;
use crate::users::{self, id};

/// Users who have a team, and the odd ones a level.
pub async fn create(store: &impl Mutations, count: usize) {
    for n in 0..count {
        let team = Value::String(format!("t{}", n % 7));
        let mut attributes = vec![("team".to_owned(), team)];
        attributes.extend((n % 2 == 1).then(|| ("level".to_owned(), Value::Int(n as i64))));
        let attributes = attributes.into_iter().collect();
        let new = NewUser { attributes, ..NewUser::default() };
        store.mutate(users::mutation(id(n), UserChange::Create(new))).await.unwrap();
    }
}

/// The words and users of the findings.
pub fn findings(arguments: &[&str], name: &str) -> Vec<(String, String)> {
    let output = store(&[&["verify", "--json"], arguments].concat(), name);
    let mut lines = json(&output);
    let totals = lines.pop().unwrap_or_else(|| panic!("{}", err(&output)));
    assert_eq!(totals["findings"], lines.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    lines.iter().map(|line| (text(&line["finding"]), text(&line["user"]))).collect()
}

/// A finding.
pub fn expected(word: &str, user: usize) -> (String, String) {
    (word.to_owned(), id(user).to_string())
}
