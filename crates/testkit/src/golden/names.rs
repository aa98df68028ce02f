//! Names that upgraded stores find by more than their words.

use polynym_directory::search::{Derived, Filter};
use polynym_directory::{Mutations, NewUser, Search, Tenant, UserChange, View};
use polynym_identifier::Rules;

use crate::users::{by_first_rules, id, mutation};

const NAMES: [&str; 6] =
    ["山田太郎", "김우진", "Anne-Marie Duval", "Seán O’Brien", "علی رضایی", "María Müller"];

/// Creates users with such names.
pub async fn create_named(store: &impl Mutations) {
    for (n, name) in NAMES.into_iter().enumerate() {
        let new = NewUser { display_name: name.to_owned(), ..NewUser::default() };
        let creation = mutation(id(50 + n), UserChange::Create(new));
        store.mutate(by_first_rules(creation)).await.unwrap();
    }
}

/// Asserts that a store finds the users by words, and once it is upgraded by forms.
pub async fn named(store: &impl Search, derived: Derived) {
    assert_eq!(store.derived().unwrap(), derived);
    for (value, by_words) in [
        ("maria", true),
        ("山田*", true),
        ("김우진", true),
        ("علی", true),
        ("رضایی*", true),
        ("anne-marie", true),
        ("o'brien", true),
        ("*Müller", true),
        ("太郎", false),
        ("우진", false),
        ("علي", false),
        ("رضاي*", false),
        ("annemarie", false),
        ("o brien", false),
    ] {
        let text = format!("display_name:\"{value}\"");
        let filter = Filter::parse_for(&text, &[Rules::PRESENT], derived).unwrap();
        let expected = usize::from(by_words || derived == Derived::Forms);
        for path in filter.access_paths() {
            let found = store.search(&Tenant::DEFAULT, &path, None, 100, View::Full).await.unwrap();
            let matching = found.readable().filter(|found| filter.matches(&found.user)).count();
            assert_eq!(matching, expected, "{value} by {path}");
        }
    }
}
