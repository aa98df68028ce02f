//! Users with attributes, and the findings of `polynym store verify`.

use polynym_directory::{Mutations, NewUser, UserChange, Value};

pub use super::store_command::findings;
use crate::users::{self, id};

/// Creates users with a team; odd ones also have a level.
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

/// A finding.
pub fn expected(word: &str, user: usize) -> (String, String) {
    (word.to_owned(), id(user).to_string())
}
