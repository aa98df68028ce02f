//! Users with histories, and the findings of `polynym store verify`.

use polynym_directory::{Mutations, UserChange};
use polynym_identifier::{Identifier, RawIdentifier};

use super::store_command;
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

/// The sorted words and users of the findings of `store verify --repair`.
pub fn findings(name: &str) -> Vec<(String, String)> {
    let mut found = store_command::findings(&["--repair"], name);
    found.sort();
    found
}

/// The same findings, in the form of [`findings`].
pub fn expected(findings: &[(&str, usize)]) -> Vec<(String, String)> {
    findings.iter().map(|(word, user)| ((*word).to_owned(), id(*user).to_string())).collect()
}
