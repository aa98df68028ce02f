//! Users.

use polynym_presentation::{attribute, state};
use polynym_proto::v1;

use super::Time;
use super::identity::IdentityView;
use super::text::cut;

/// The characters of a value that lists show.
const SHORT: usize = 500;
/// The characters of an id that tell users apart.
const SHORT_ID: usize = 8;

/// A user.
#[derive(Clone, Debug)]
pub struct UserView {
    /// The id.
    pub id: String,
    /// The display name; may be empty.
    pub name: String,
    /// The state: `active`, `disabled`, `deleted` or `merged`.
    pub state: &'static str,
    /// The identities.
    pub identities: Vec<IdentityView>,
    /// The attributes, by name.
    pub attributes: Vec<AttributeView>,
    /// When it was created.
    pub created: Option<Time>,
    /// When it last changed.
    pub updated: Option<Time>,
    /// When it was deleted.
    pub deleted: Option<Time>,
    /// When it will be purged.
    pub purged: Option<Time>,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct AttributeView {
    /// The name.
    pub name: String,
    /// The type, such as `text`.
    pub kind: &'static str,
    /// The value as text; values of a list have a line each.
    pub value: String,
}

impl UserView {
    /// The view of a user.
    pub fn of(user: &v1::User) -> Self {
        let mut attributes: Vec<_> = user.attributes.iter().map(AttributeView::of).collect();
        attributes.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            id: user.user_id.clone(),
            name: user.display_name.clone(),
            state: state::word(user.state()),
            identities: user.identities.iter().map(IdentityView::of).collect(),
            attributes,
            created: Time::of(user.create_time.as_ref()),
            updated: Time::of(user.update_time.as_ref()),
            deleted: Time::of(user.delete_time.as_ref()),
            purged: Time::of(user.purge_time.as_ref()),
        }
    }

    /// A name to show: the display name, else the first identity, else the id.
    pub fn title(&self) -> &str {
        let identity = self.identities.first().map(|identity| identity.value.as_str());
        if self.name.is_empty() { identity.unwrap_or(&self.id) } else { &self.name }
    }

    /// The first identity; the beginning of the id without one. It tells namesakes apart.
    pub fn identifier(&self) -> String {
        let identity = self.identities.first().map(|identity| identity.value.clone());
        identity.unwrap_or_else(|| cut(&self.id, SHORT_ID))
    }

    /// The first letters of the first and the last word of the name to show.
    pub fn initials(&self) -> String {
        initials(self.title())
    }
}

impl AttributeView {
    /// The view of an attribute.
    pub fn of((name, value): (&String, &v1::AttributeValue)) -> Self {
        let kind = value.kind.as_ref().map(attribute::type_of);
        let kind = kind.map_or("", |kind| attribute::words(kind).name);
        Self { name: name.clone(), kind, value: attribute(value) }
    }

    /// The beginning of the value.
    pub fn short(&self) -> &str {
        let end = self.value.char_indices().nth(SHORT).map(|(end, _)| end);
        &self.value[..end.unwrap_or(self.value.len())]
    }

    /// Whether the value goes on after its beginning.
    pub fn is_long(&self) -> bool {
        self.short().len() < self.value.len()
    }
}

/// The first letters of the first and the last word of a name.
pub fn initials(name: &str) -> String {
    let mut words = name.split_whitespace();
    let ends = [words.next(), words.next_back()].into_iter().flatten();
    let letters = ends.filter_map(|word| word.chars().find(|c| c.is_alphanumeric()));
    letters.flat_map(char::to_uppercase).collect()
}

/// The text of an attribute's value.
pub fn attribute(value: &v1::AttributeValue) -> String {
    attribute::text(value, attribute::PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_are_of_the_first_and_the_last_word() {
        for (display_name, initials) in [
            ("Joe Smith", "JS"),
            ("María de la Cruz", "MC"),
            ("joe", "J"),
            ("(Jane) \"Doe\"", "JD"),
            ("--", ""),
        ] {
            let user = v1::User { display_name: display_name.to_owned(), ..Default::default() };
            assert_eq!(UserView::of(&user).initials(), initials, "{display_name}");
        }
    }
}
