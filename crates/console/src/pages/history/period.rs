//! The period and the kind of events that somebody asks for.

use polynym_presentation::event::{KINDS, Words};
use serde::Deserialize;

use crate::failure::Failure;
use crate::form;

/// The events of a page.
pub const PAGE_SIZE: i32 = 25;

/// The events that somebody asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Period {
    /// The first time, as typed.
    pub from: String,
    /// The time after the last one, or the last day, as typed.
    pub to: String,
    /// The number of a kind of events; empty for all.
    pub kind: String,
    /// The token of the page.
    pub after: String,
}

/// A kind of events to choose.
pub struct Choice {
    pub number: i32,
    pub name: &'static str,
    pub is_chosen: bool,
}

impl Period {
    /// The kinds of events to choose.
    pub fn choices(&self) -> Vec<Choice> {
        let choice = |words: &Words| {
            let (number, name) = (i32::from(words.kind), words.word);
            Choice { number, name, is_chosen: self.kind == number.to_string() }
        };
        KINDS.iter().map(choice).collect()
    }

    /// The types of events.
    pub fn types(&self) -> Vec<i32> {
        self.kind.parse().ok().into_iter().filter(|kind| *kind > 0).collect()
    }

    /// The first time.
    pub fn begin(&self) -> Result<Option<prost_types::Timestamp>, Failure> {
        form::time("From", &self.from)
    }

    /// The time after the last one.
    pub fn end(&self) -> Result<Option<prost_types::Timestamp>, Failure> {
        form::end("To", &self.to)
    }

    /// The end that is no time, and what is wrong with it.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let ends = [("from", self.begin()), ("to", self.end())];
        ends.into_iter().find_map(|(field, end)| match end {
            Err(Failure::Form(message)) => Some((field, message)),
            _ => None,
        })
    }

    /// Whether an end is no time.
    pub fn is_wrong(&self, field: &str) -> bool {
        self.problem().is_some_and(|(wrong, _)| wrong == field)
    }

    /// Whether it leaves events out.
    pub fn is_filter(&self) -> bool {
        !(self.from.is_empty() && self.to.is_empty() && self.kind.is_empty())
    }

    /// The query of the next page.
    pub fn next(&self, token: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let fields = [("from", &*self.from), ("to", &self.to), ("kind", &self.kind)];
        query.extend_pairs(fields.into_iter().filter(|(_, value)| !value.is_empty()));
        query.append_pair("after", token).finish()
    }
}
