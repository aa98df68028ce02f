//! The columns of lists of users, and the size of a page: the browser remembers them for each
//! tenant.

use std::sync::Arc;

use http::HeaderMap;
use http::header::SET_COOKIE;
use polynym_presentation::state;
use url::form_urlencoded::{self, Serializer};

use super::order::Ordered;
use crate::console::Shared;
use crate::cookies::{preference, preference_cookie};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::text::cut;
use crate::views::{identity, user};

const COOKIE: &str = "polynym_columns";
/// The columns to choose, beside attributes: the field, and its label.
const CHOICES: [(&str, &str); 9] = [
    (IDENTITIES, "Identities"),
    ("state", "State"),
    ("update_time", "Changed"),
    ("create_time", "Created"),
    ("user_id", "Id"),
    ("email", "Email addresses"),
    ("handle", "Handles"),
    ("phone", "Phone numbers"),
    ("url", "Profile URLs"),
];
/// Identities of all kinds in one column. Tables that are exported have a column for each kind.
const IDENTITIES: &str = "identities";
const KINDS: [&str; 4] = ["email", "handle", "phone", "url"];
/// Before the name of an attribute, as a column.
pub const ATTRIBUTE: &str = "attributes.";
const DEFAULT: [&str; 3] = [IDENTITIES, "state", "update_time"];
/// The maximum number of columns, beside the name.
const MAX_COLUMNS: usize = 8;
/// The maximum bytes of the name of a column.
const MAX_NAME: usize = 128;
/// The numbers of rows to choose.
const SIZES: [i32; 2] = [25, 50];
/// The attributes that are offered by name.
const MAX_OFFERED: i32 = 200;
/// The maximum characters of a cell, and of one value in it.
const MAX_CELL: usize = 80;
const MAX_VALUE: usize = 40;

/// The columns of a list, and the size of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    names: Vec<String>,
    pub size: i32,
}

/// A user in a list.
#[derive(Debug)]
pub struct Row {
    pub id: String,
    pub title: String,
    pub cells: Vec<Cell>,
    /// The reasons why a text finds it; none of a filter.
    pub reasons: Vec<String>,
}

/// A cell of a list.
#[derive(Debug)]
pub enum Cell {
    /// The first identities, and the number of the others.
    Identities(Vec<String>, usize),
    State(&'static str),
    Time(Option<Time>),
    Text(String),
}

impl Default for Columns {
    fn default() -> Self {
        Self { names: DEFAULT.map(str::to_owned).into(), size: SIZES[0] }
    }
}

impl Columns {
    /// The columns that the browser remembers; the usual ones if it does not.
    pub fn of(headers: &HeaderMap) -> Self {
        let Some(text) = preference(headers, COOKIE) else { return Self::default() };
        let pairs: Vec<_> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        let size = pairs.iter().find(|(name, _)| name == "size").map_or("", |(_, value)| value);
        Self::new(pairs.iter().filter(|(name, _)| name == "c").map(|(_, value)| &**value), size)
    }

    fn new<'n>(names: impl Iterator<Item = &'n str>, size: &str) -> Self {
        let mut known: Vec<String> = Vec::new();
        for name in names.filter(|name| is_column(name)) {
            if known.len() < MAX_COLUMNS && !known.iter().any(|other| other == name) {
                known.push(name.to_owned());
            }
        }
        let size = SIZES.into_iter().find(|known| known.to_string() == size).unwrap_or(SIZES[0]);
        Self { names: known, size }
    }

    fn text(&self) -> String {
        let mut text = Serializer::new(String::new());
        text.append_pair("size", &self.size.to_string());
        text.extend_pairs(self.names.iter().map(|name| ("c", name))).finish()
    }

    /// The names of the columns, with their labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|name| (&**name, label(name)))
    }

    /// The fields of users to read.
    pub fn read_mask(&self) -> prost_types::FieldMask {
        let mut paths = vec!["user_id", "display_name", IDENTITIES];
        for name in &self.names {
            paths.extend(match name.as_str() {
                name if name.starts_with(ATTRIBUTE) => Some("attributes"),
                "state" => Some("state"),
                "update_time" => Some("update_time"),
                "create_time" => Some("create_time"),
                _ => None,
            });
        }
        paths.sort_unstable();
        paths.dedup();
        prost_types::FieldMask { paths: paths.into_iter().map(str::to_owned).collect() }
    }

    /// The row of a user.
    pub fn row(&self, message: &v1::User) -> Row {
        let title = cut(UserView::of(message).title(), MAX_CELL);
        let cells = self.names.iter().map(|name| cell(name, message)).collect();
        Row { id: message.user_id.clone(), title, cells, reasons: Vec::new() }
    }

    /// The fields of a table: a column of identities becomes one for each kind.
    pub fn fields(&self) -> Vec<&str> {
        let mut fields = vec!["user_id", "display_name"];
        for name in &self.names {
            match name.as_str() {
                IDENTITIES => fields.extend(KINDS),
                "user_id" => {}
                name if fields.contains(&name) => {}
                name => fields.push(name),
            }
        }
        let mut seen = std::collections::HashSet::new();
        fields.retain(|field| seen.insert(*field));
        fields
    }

    /// Whether the list shows accounts. A table has no column for them.
    pub fn has_accounts(&self) -> bool {
        self.names.iter().any(|name| name == IDENTITIES)
    }

    /// Removes what no column shows.
    pub fn prune(&self, user: &mut v1::User) {
        let has = |name: &str| self.names.iter().any(|known| known == name);
        if !has(IDENTITIES) {
            user.identities.retain(|identity| has(identity::kind(identity.identifier.as_ref())));
        }
        user.attributes.retain(|name, _| has(&format!("{ATTRIBUTE}{name}")));
    }
}

fn is_column(name: &str) -> bool {
    let is_attribute = name.strip_prefix(ATTRIBUTE).is_some_and(|name| {
        !name.is_empty() && !name.contains([',', ':']) && !name.contains(char::is_control)
    });
    name.len() <= MAX_NAME && (is_attribute || CHOICES.iter().any(|(choice, _)| *choice == name))
}

fn label(name: &str) -> &str {
    let found = CHOICES.iter().find(|(choice, _)| *choice == name).map(|(_, label)| *label);
    found.unwrap_or_else(|| name.strip_prefix(ATTRIBUTE).unwrap_or(name))
}

fn cell(name: &str, message: &v1::User) -> Cell {
    let of_kind = |kind: Option<&str>| {
        let all = message.identities.iter().map(|identity| identity.identifier.as_ref());
        let all = all.filter(|identity| kind.is_none_or(|kind| identity::kind(*identity) == kind));
        let all: Vec<_> = all.collect();
        let first = all.iter().take(3).map(|identity| cut(identity::value(*identity), MAX_VALUE));
        Cell::Identities(first.collect(), all.len().saturating_sub(3))
    };
    match name {
        IDENTITIES => of_kind(None),
        "state" => Cell::State(state::word(message.state())),
        "update_time" => Cell::Time(Time::of(message.update_time.as_ref())),
        "create_time" => Cell::Time(Time::of(message.create_time.as_ref())),
        "user_id" => Cell::Text(message.user_id.clone()),
        kind if KINDS.contains(&kind) => of_kind(Some(kind)),
        attribute => {
            let name = attribute.strip_prefix(ATTRIBUTE).unwrap_or(attribute);
            let value = message.attributes.get(name).map(user::attribute);
            Cell::Text(cut(value.unwrap_or_default(), MAX_CELL))
        }
    }
}

#[derive(Template)]
#[template(path = "pages/columns.html")]
struct ColumnsPage {
    frame: Frame,
    /// The address of this page.
    address: String,
    choices: Vec<Choice>,
    attributes: Vec<Choice>,
    sizes: Vec<(i32, bool)>,
}

/// A column to choose.
struct Choice {
    name: String,
    label: String,
    is_chosen: bool,
}

/// The page that chooses columns for a search.
pub async fn page(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Ordered { order }): Query<Ordered>,
) -> Page {
    visit.require(Role::Viewer)?;
    let request = v1::ListAttributeNamesRequest { page_size: MAX_OFFERED, ..Default::default() };
    let names = visit.client(&tenant).admin().list_attribute_names(request).await?.names;
    let columns = Columns::of(&headers);
    let choice = |name: String| Choice {
        label: label(&name).to_owned(),
        is_chosen: columns.names.contains(&name),
        name,
    };
    let mut attributes: Vec<_> = names.iter().map(|name| format!("{ATTRIBUTE}{name}")).collect();
    attributes.extend(columns.names.iter().filter(|name| name.starts_with(ATTRIBUTE)).cloned());
    attributes.retain(|name| is_column(name));
    attributes.sort_unstable();
    attributes.dedup();
    let frame = visit.frame(&tenant);
    Ok(render(&ColumnsPage {
        address: order.address(&format!("{}/search/{id}/columns", frame.home())),
        frame,
        choices: CHOICES.iter().map(|(name, _)| choice((*name).to_owned())).collect(),
        attributes: attributes.into_iter().map(choice).collect(),
        sizes: SIZES.map(|size| (size, size == columns.size)).into(),
    }))
}

/// Remembers columns, and returns to the search.
pub async fn set(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Ordered { order }): Query<Ordered>,
    form: Form,
) -> Page {
    let other = Some(form.get("other")).filter(|name| !name.is_empty());
    let other = other.map(|name| format!("{ATTRIBUTE}{}", name.trim_start_matches(ATTRIBUTE)));
    let columns = Columns::new(form.all("column").chain(other.as_deref()), form.get("size"));
    let home = visit.frame(&tenant).home();
    let mut response = redirect(&order.address(&format!("{home}/search/{id}")));
    let path = format!("{}/t/{tenant}", shared.base);
    if let Some(cookie) = preference_cookie(COOKIE, &columns.text(), &path) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_survive_their_cookie_and_nothing_else_does() {
        let names = ["attributes.té am", "state", "state", "password", "attributes.a,b"];
        let columns = Columns::new(names.into_iter(), "50");
        assert_eq!(columns.names, ["attributes.té am", "state"]);
        let cookie = preference_cookie(COOKIE, &columns.text(), "/console/t/a").unwrap();
        let pair = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        headers.insert(http::header::COOKIE, pair.parse().unwrap());
        assert_eq!(Columns::of(&headers), columns);
        let many = (0..100).map(|n| format!("attributes.a{n}")).collect::<Vec<_>>();
        assert_eq!(Columns::new(many.iter().map(String::as_str), "9999").names.len(), MAX_COLUMNS);
        assert_eq!(Columns::new([].into_iter(), "9999").size, 25);
    }

    #[test]
    fn tables_have_a_column_for_each_kind() {
        let fields = ["user_id", "display_name", "email", "handle", "phone", "url", "state"];
        let columns = Columns::new(["identities", "state", "email"].into_iter(), "");
        assert_eq!(columns.fields(), fields);
    }
}
