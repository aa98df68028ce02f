//! Values to choose for a new condition: those that the first users of the list have.

use std::collections::BTreeMap;

use polynym_client::Client;
use polynym_presentation::attribute;
use v1::attribute_value::Kind;
use v1::{AttributeValue, SearchUsersRequest};

use super::filter_parts::{join, parts};
use super::new_conditions::field;
use super::refine::base;
use crate::prelude::*;
use crate::short_id::ShortId;

/// The users whose values are read.
const USERS: i32 = 200;
/// The values to choose, and the characters of one.
const MAX_VALUES: usize = 30;
const MAX_CHARACTERS: usize = 100;

#[derive(Default, Template)]
#[template(path = "partials/values.html")]
struct Values {
    /// The values, those of most users first.
    values: Vec<String>,
    /// The users who were read.
    users: usize,
}

impl Values {
    /// Whether one user alone has the attribute.
    const fn has_one_user(&self) -> bool {
        self.users == 1
    }
}

/// The values of the attribute that a form has chosen, for scripts. None if they cannot be read:
/// the form takes what is typed.
pub async fn suggest(
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    visit.require(Role::Viewer)?;
    let filter = base(&visit, &visit.session.queries.get(id).ok_or(Failure::SearchGone)?)?;
    let name = form.get("attribute");
    if name.is_empty() {
        return Ok(render(&Values::default()));
    }
    Ok(render(&read(&visit.client(&tenant), &filter, name).await.unwrap_or_default()))
}

/// Reads the values that the first users of a filter have.
async fn read(client: &Client, filter: &str, name: &str) -> Option<Values> {
    let is_set = format!("{}:*", field(name));
    let mut parts = parts(filter).unwrap_or_else(|| vec![filter]);
    parts.push(&is_set);
    let request = SearchUsersRequest {
        filter: join(&parts),
        page_size: USERS,
        read_mask: Some(prost_types::FieldMask { paths: vec!["attributes".to_owned()] }),
        ..Default::default()
    };
    let users = client.directory().search_users(request).await.ok()?.users;
    let values = users.iter().filter_map(|user| user.attributes.get(name));
    Some(Values { values: most_frequent(values), users: users.len() })
}

/// The values as one types them, those that occur most first.
fn most_frequent<'v>(values: impl Iterator<Item = &'v AttributeValue>) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    for text in values.flat_map(texts).filter(|text| is_short(text)) {
        *counts.entry(text).or_default() += 1;
    }
    let mut values: Vec<_> = counts.into_iter().collect();
    values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    values.into_iter().take(MAX_VALUES).map(|(text, _)| text).collect()
}

/// The texts with which a condition finds a value: each element of a list.
fn texts(value: &AttributeValue) -> Vec<String> {
    match &value.kind {
        Some(Kind::ListValue(list)) => list.values.clone(),
        _ => vec![attribute::text(value, attribute::PLAIN)],
    }
}

/// Whether a field of one line can have a text.
fn is_short(text: &str) -> bool {
    let count = text.chars().take(MAX_CHARACTERS + 1).count();
    (1..=MAX_CHARACTERS).contains(&count) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: impl IntoIterator<Item = Kind>) -> Vec<String> {
        let values = kinds.into_iter().map(|kind| AttributeValue { kind: Some(kind) });
        most_frequent(values.collect::<Vec<_>>().iter())
    }

    #[test]
    fn the_values_of_most_users_come_first_and_are_bounded() {
        let text = |text: &str| Kind::StringValue(text.to_owned());
        let lines = v1::StringList { values: vec!["b".to_owned(), "c".to_owned()] };
        let mixed = [text("a"), text("b"), Kind::ListValue(lines), text(""), text("x\ny")];
        assert_eq!(of(mixed), ["b", "a", "c"]);
        assert_eq!(of([Kind::BoolValue(true), Kind::DoubleValue(2.5)]), ["2.5", "true"]);
        let long = [text(&"ü".repeat(MAX_CHARACTERS)), text(&"ü".repeat(MAX_CHARACTERS + 1))];
        assert_eq!(of(long).len(), 1);
        assert_eq!(of((0..200).map(Kind::IntValue)).len(), MAX_VALUES);
    }
}
