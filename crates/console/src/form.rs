//! The fields of a form, and the parameters of an address.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path as AnyPath, Query as AnyQuery, Request};
use http::request::Parts;
use polynym_presentation::time::parse_input;
use prost_types::Timestamp;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use url::form_urlencoded;

use crate::failure::Failure;

/// The time for a form to arrive.
pub const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum bytes of a form.
pub const MAX_FORM_BYTES: usize = 256 << 10;
/// The maximum number of fields of a form: a table of 1,000 columns has some for each.
const MAX_FIELDS: usize = 8_192;
/// The maximum number of fields of a form of somebody who is not signed in.
const MAX_STRANGERS_FIELDS: usize = 64;

/// Marks a request whose form may have many fields: somebody is signed in.
#[derive(Clone, Copy, Debug)]
pub struct ManyFields;

/// Parses the time of a field; `None` if it is empty.
///
/// # Errors
/// It is not a time.
pub fn time(label: &str, text: &str) -> Result<Option<Timestamp>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || {
        Failure::Form(format!(
            "{label}: not a time. Write 2026-01-31, 2026-01-31 12:00, or 2026-01-31 12:00+01:00."
        ))
    };
    parse_input(text).map(Some).ok_or_else(wrong)
}

/// The bytes of a day, such as `2026-01-31`, and its seconds.
const DAY_BYTES: usize = 10;
const DAY: i64 = 86_400;

/// Whether what was typed as a time is a day.
pub fn is_day(text: &str) -> bool {
    text.trim().len() == DAY_BYTES
}

/// Parses the end of a period: a day is in it as a whole. `None` if the field is empty.
///
/// # Errors
/// It is not a time.
pub fn end(label: &str, text: &str) -> Result<Option<Timestamp>, Failure> {
    let after = |time: Timestamp| Timestamp { seconds: time.seconds.saturating_add(DAY), ..time };
    Ok(time(label, text)?.map(|time| if is_day(text) { after(time) } else { time }))
}

/// The fields of a form, in their order. A field may occur several times.
#[derive(Clone, Debug, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// A form with these fields.
    pub fn of(fields: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(fields.iter().map(owned).collect())
    }

    /// The value of a field without the white space around it; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The value of a field as typed; empty if there is none.
    pub fn raw(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The form with this value in a field.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Some((_, old)) = self.0.iter_mut().find(|(known, _)| known == name) {
            value.clone_into(old);
        }
        self
    }

    /// The fields without those that make a change happen once: the etag and the request id.
    pub fn typed(&self) -> Self {
        let is_typed = |(name, _): &&(String, String)| !matches!(&**name, "etag" | "request_id");
        Self(self.0.iter().filter(is_typed).cloned().collect())
    }

    /// All values of a field.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a field is set, such as a box that is ticked.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// All fields.
    pub fn fields(&self) -> &[(String, String)] {
        &self.0
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let is_many = request.extensions().get::<ManyFields>().is_some();
        let max_fields = if is_many { MAX_FIELDS } else { MAX_STRANGERS_FIELDS };
        let bytes = timeout(FORM_TIMEOUT, Bytes::from_request(request, state)).await;
        let bytes =
            bytes.map_err(|_| Failure::Form("The form did not arrive in time.".to_owned()))?;
        let bytes = bytes.map_err(|_| Failure::Form("The form is too large.".to_owned()))?;
        if bytes.iter().filter(|byte| **byte == b'&').count() >= max_fields {
            return Err(Failure::Form("The form has too many fields.".to_owned()));
        }
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

/// The parameters in the path of an address. A path that does not fit its page is not found.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = AnyPath::from_request_parts(parts, state).await;
        path.map(|AnyPath(path)| Self(path)).map_err(|_| Failure::NotFound)
    }
}

/// The parameters in the query of an address. One that does not fit its page has a page of its own.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = AnyQuery::from_request_parts(parts, state).await;
        query.map(|AnyQuery(query)| Self(query)).map_err(|_| Failure::WrongAddress)
    }
}
