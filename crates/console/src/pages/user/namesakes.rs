//! Other users who are called like a user that was just created or renamed.

use polynym_client::Client;
use v1::{SearchUsersRequest, State};

use crate::prelude::*;
use crate::views::reading::escaped;

/// The users of similar names that are read.
const READ: i32 = 25;
/// The users that are shown.
const SHOWN: usize = 3;
/// The first letter of scripts without spaces, of which each letter counts as a word.
const FIRST_WITHOUT_SPACES: char = '\u{2e80}';

/// The users who can be merged with this one and have its name, without case and accents, in any
/// order of its words. None if they cannot be read.
pub async fn of(client: &Client, user: &UserView) -> Vec<UserView> {
    if user.name.is_empty() || !["active", "disabled"].contains(&user.state) {
        return Vec::new();
    }
    let paths = ["user_id", "display_name", "state", "identities"];
    let request = SearchUsersRequest {
        filter: format!("display_name: \"{}\"", escaped(&user.name)),
        page_size: READ,
        read_mask: Some(prost_types::FieldMask { paths: paths.map(str::to_owned).into() }),
        ..Default::default()
    };
    let answer = client.directory().search_users(request).await.ok();
    let mut others = answer.map(|answer| answer.users).unwrap_or_default();
    let words = words(&user.name);
    others.retain(|other| {
        let is_in_use = matches!(other.state(), State::Active | State::Disabled);
        is_in_use && other.user_id != user.id && self::words(&other.display_name) == words
    });
    others.iter().take(SHOWN).map(UserView::of).collect()
}

/// The number of words of a name. One that has all words of another and no more has the same name.
fn words(name: &str) -> usize {
    let is_joining = |c: char| matches!(c, '-' | '\'' | '’' | '‐' | '‑');
    let words = name.split(|c: char| !c.is_alphanumeric() && !is_joining(c));
    let words = words.filter(|word| word.contains(char::is_alphanumeric));
    let count = |word: &str| {
        let parts = word.chars().filter(|c| *c >= FIRST_WITHOUT_SPACES && c.is_alphanumeric());
        parts.count().max(1)
    };
    words.map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_words() {
        for (name, count) in [
            ("María Müller", 2),
            ("Müller, María", 2),
            ("Anne-Marie O'Brien", 2),
            ("María Müller (Vienna)", 3),
            ("山田 太郎", 4),
            ("山田太郎", 4),
            (" - ", 0),
        ] {
            assert_eq!(words(name), count, "{name}");
        }
    }
}
