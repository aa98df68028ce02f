//! Histories: what changed, when and by whom, of a user, a caller or an operation.

mod changes;
mod operation;
mod progress;
mod user;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use serde::Deserialize;

use crate::console::Shared;
use crate::failure::Failure;
use crate::views::event::KINDS;
use crate::views::time;

/// The events of a page.
const PAGE_SIZE: i32 = 25;

/// The pages of histories, below the path of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/users/{user}/history", get(user::page))
        .route("/changes", get(changes::form).post(changes::submit))
        .route("/changes/{id}", get(changes::page))
        .route("/operations/{operation}", get(operation::page))
        .route("/operations/{operation}/undo", get(operation::preview).post(operation::undo))
}

/// The events that somebody asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Period {
    /// The first time, as typed.
    from: String,
    /// The time after the last one, as typed.
    to: String,
    /// The number of a kind of events; empty for all.
    kind: String,
    /// The token of the page.
    after: String,
}

/// A kind of events to choose.
struct Choice {
    number: i32,
    name: &'static str,
    is_chosen: bool,
}

impl Period {
    /// The kinds of events to choose.
    fn choices(&self) -> Vec<Choice> {
        let choice = |&(kind, name): &_| {
            let number = i32::from(kind);
            Choice { number, name, is_chosen: self.kind == number.to_string() }
        };
        KINDS.iter().map(choice).collect()
    }

    /// The types of events.
    fn types(&self) -> Vec<i32> {
        self.kind.parse().ok().into_iter().filter(|kind| *kind > 0).collect()
    }

    /// The first time.
    fn begin(&self) -> Result<Option<prost_types::Timestamp>, Failure> {
        parsed("From", &self.from)
    }

    /// The time after the last one.
    fn end(&self) -> Result<Option<prost_types::Timestamp>, Failure> {
        parsed("To", &self.to)
    }

    /// Whether it leaves events out.
    fn is_filter(&self) -> bool {
        !(self.from.is_empty() && self.to.is_empty() && self.kind.is_empty())
    }

    /// The query of the next page.
    fn next(&self, token: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let fields = [("from", &*self.from), ("to", &self.to), ("kind", &self.kind)];
        query.extend_pairs(fields.into_iter().filter(|(_, value)| !value.is_empty()));
        query.append_pair("after", token).finish()
    }
}

/// A time as typed; none if there is none.
fn parsed(label: &str, text: &str) -> Result<Option<prost_types::Timestamp>, Failure> {
    match (text.is_empty(), time::parse(text)) {
        (true, _) => Ok(None),
        (false, Some(time)) => Ok(Some(time)),
        (false, None) => {
            Err(Failure::Form(format!("{label} is no time. Write 2026-01-31 or 2026-01-31T12:00.")))
        }
    }
}
