//! Two users side by side, and what the merged one would have.

use std::collections::BTreeSet;

use polynym_presentation::change::label;
use polynym_presentation::state;
use polynym_proto::v1;

use crate::views::text::cut;
use crate::views::user::attribute;
use crate::views::{identity, user::UserView};

/// The attributes that are shown. Those in conflict come first.
const MAX_ATTRIBUTES: usize = 60;
/// The characters of a value that are shown.
const VALUE_CHARACTERS: usize = 160;

/// A field of both users and of the merged one.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub field: String,
    /// The values of the user that stays, of the other, and of the merged one.
    pub cells: [Vec<String>; 3],
    /// Whether the users have different values.
    pub is_conflict: bool,
    /// Whether it is an attribute.
    pub is_attribute: bool,
    values: Values,
}

/// The kind of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Data.
    Texts,
    /// Words, such as a state.
    Words,
    /// Identities. The primary ones end with a mark.
    Identities,
}

/// The mark of a primary identity.
const PRIMARY: &str = " (primary)";

impl Row {
    /// Whether the values are words, such as a state.
    pub fn has_words(&self) -> bool {
        self.values == Values::Words
    }

    /// The identity that a text of the row says is primary; none if it says so of none.
    pub fn primary<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.strip_suffix(PRIMARY).filter(|_| self.values == Values::Identities)
    }
}

/// A conflict: a field of which one value stays.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The field.
    pub field: String,
    /// Whether it is an attribute.
    pub is_attribute: bool,
    /// Whether it is about the primary mark alone: both identities stay.
    pub is_mark: bool,
    /// The value that stays.
    pub kept: String,
    /// The value that is dropped.
    pub dropped: String,
}

/// A comparison of two users.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The user that stays.
    pub primary: UserView,
    /// The user that is merged into it.
    pub secondary: UserView,
    /// The fields of both.
    pub rows: Vec<Row>,
    /// The attributes that are not shown.
    pub hidden: usize,
    /// The conflicts.
    pub conflicts: Vec<Conflict>,
    /// The number of identities that move.
    pub moved: usize,
}

impl Comparison {
    /// Compares two users by the preview of their merge.
    pub fn new(primary: &v1::User, secondary: &v1::User, preview: &v1::MergePreview) -> Self {
        let result = preview.result.clone().unwrap_or_default();
        let users = [primary, secondary, &result];
        let in_conflict: BTreeSet<_> =
            preview.conflicts.iter().map(|conflict| conflict.field.as_str()).collect();
        let mut rows = vec![
            row("name", users.map(|user| vec![user.display_name.clone()])),
            row("state", users.map(|user| vec![state::word(user.state()).to_owned()])),
            row("identities", users.map(identities)),
        ];
        rows[0].is_conflict = in_conflict.contains("display_name");
        rows[1].values = Values::Words;
        rows[2].values = Values::Identities;
        let (attributes, hidden) = attribute_rows(users, &in_conflict);
        rows.extend(attributes);
        Self {
            primary: UserView::of(primary),
            secondary: UserView::of(secondary),
            rows,
            hidden,
            conflicts: preview.conflicts.iter().take(MAX_ATTRIBUTES).map(conflict).collect(),
            moved: preview.moved.len(),
        }
    }
}

fn row(field: &str, cells: [Vec<String>; 3]) -> Row {
    let cells = cells.map(|cell| cell.into_iter().filter(|text| !text.is_empty()).collect());
    Row {
        field: field.to_owned(),
        cells,
        is_conflict: false,
        is_attribute: false,
        values: Values::Texts,
    }
}

fn identities(user: &v1::User) -> Vec<String> {
    let text = |identity: &v1::Identity| {
        let name = identity::text(identity.identifier.as_ref());
        let primary = if identity.primary { PRIMARY } else { "" };
        format!("{}{primary}", cut(&name, VALUE_CHARACTERS))
    };
    user.identities.iter().map(text).collect()
}

/// The attributes of the users, those in conflict first, and the number of those left out.
fn attribute_rows(users: [&v1::User; 3], in_conflict: &BTreeSet<&str>) -> (Vec<Row>, usize) {
    let names: BTreeSet<_> = users.iter().flat_map(|user| user.attributes.keys()).collect();
    let value = |user: &v1::User, name: &str| {
        let value = user.attributes.get(name).map(attribute);
        value.map(|text| cut(&text, VALUE_CHARACTERS)).into_iter().collect()
    };
    let rows = names.into_iter().map(|name| Row {
        is_conflict: in_conflict.contains(&*format!("attributes.{name}")),
        is_attribute: true,
        ..row(name, users.map(|user| value(user, name)))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| !row.is_conflict);
    let hidden = rows.len().saturating_sub(MAX_ATTRIBUTES);
    rows.truncate(MAX_ATTRIBUTES);
    (rows, hidden)
}

fn conflict(conflict: &v1::merge_preview::Conflict) -> Conflict {
    let text = |value: &Option<v1::AttributeValue>| {
        value.as_ref().map(|value| cut(attribute(value), VALUE_CHARACTERS)).unwrap_or_default()
    };
    Conflict {
        field: label(&conflict.field),
        is_attribute: conflict.field.starts_with("attributes."),
        is_mark: conflict.field.starts_with("primary."),
        kept: text(&conflict.kept),
        dropped: text(&conflict.dropped),
    }
}
