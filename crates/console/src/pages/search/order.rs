//! The order of a list of users, and the headings of its columns, which lead to others.

use serde::{Deserialize, Serialize};

use super::columns::{ATTRIBUTE, Columns};

/// The order of a filter's users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// That of the index that finds them.
    #[default]
    Found,
    DisplayName,
    CreateTime,
}

/// The order in the query of an address.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Ordered {
    #[serde(default)]
    pub order: Order,
}

impl Order {
    /// The field that the API orders by; empty for none. Also the value of the query parameter.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Found => "",
            Self::DisplayName => "display_name",
            Self::CreateTime => "create_time",
        }
    }

    /// The address of a list, or of a page about it, in this order.
    pub fn address(self, list: &str) -> String {
        let separator = if list.contains('?') { '&' } else { '?' };
        match self.field() {
            "" => list.to_owned(),
            field => format!("{list}{separator}order={field}"),
        }
    }
}

/// The heading of a column.
pub struct Heading {
    pub label: String,
    /// Whether the label is the name of an attribute.
    pub is_attribute: bool,
    /// The address of the list in the order of the column; empty if it has none.
    pub link: String,
    /// Whether the list is in this order.
    pub is_current: bool,
}

/// The headings of the columns, the name first. With the address of a list, those by which it can
/// be ordered are links.
pub fn headings(columns: &Columns, order: Order, list: Option<&str>) -> Vec<Heading> {
    let heading = |(name, label): (&str, &str)| {
        let orders = [Order::DisplayName, Order::CreateTime];
        let own = orders.into_iter().find(|own| own.field() == name);
        let link = list.zip(own).map(|(list, own)| own.address(list)).unwrap_or_default();
        let is_attribute = name.starts_with(ATTRIBUTE);
        let is_current = list.is_some() && own == Some(order);
        Heading { label: label.to_owned(), is_attribute, link, is_current }
    };
    [(Order::DisplayName.field(), "Name")]
        .into_iter()
        .chain(columns.labels())
        .map(heading)
        .collect()
}
