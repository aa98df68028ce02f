//! Narrows a list: each part of its filter is a chip that removes it, and a form adds others.

use std::collections::BTreeMap;

use axum::body::Body;
use http::Response;
use polynym_client::Client;
use polynym_presentation::attribute;
use v1::{AttributeDefinition, ListAttributeNamesRequest};

use super::filter_parts::{is_of_state, join, parts};
use super::new_conditions::{OPERATORS, TIMES, conditions};
use super::order::{Order, Ordered};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::reading::{self, Reading, filter_of};

/// The attributes that are offered, and the bytes of their names.
const MAX_ATTRIBUTES: i32 = 100;
const MAX_BYTES: usize = 2 << 10;
/// The maximum number of chips.
const MAX_CHIPS: usize = 20;

/// What narrows a list.
pub struct Refinement {
    pub chips: Vec<Chip>,
    /// The number of parts without a chip.
    pub more: usize,
    /// The address of the form for further conditions.
    pub action: String,
    /// The address of the values of an attribute.
    pub values: String,
    /// The attributes to choose, with their types; no type if any will do.
    pub attributes: BTreeMap<String, &'static str>,
    /// The form that was refused, if one was.
    refused: Option<Refused>,
}

/// A form of conditions that was refused.
pub struct Refused {
    form: Form,
    message: String,
}

/// A part of the filter.
pub struct Chip {
    pub text: String,
    /// The address of the list without it.
    pub link: String,
}

impl Refinement {
    /// What is wrong with the form; empty if nothing is.
    pub fn problem(&self) -> &str {
        self.refused.as_ref().map_or("", |refused| &refused.message)
    }

    /// What was typed into a field of the form that was refused.
    pub fn typed(&self, field: &str) -> &str {
        self.refused.as_ref().map_or("", |refused| refused.form.raw(field))
    }

    /// The operators to choose.
    pub fn operators(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        OPERATORS.iter()
    }

    /// The times to choose by.
    pub fn times(
        &self,
    ) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
        TIMES.iter()
    }
}

/// What narrows the list of a text; none if it is not of a filter or of words.
pub async fn of(
    visit: &Visit,
    tenant: &str,
    text: &str,
    list: (ShortId, Order),
    refused: Option<Refused>,
) -> Option<Refinement> {
    let filter = base(visit, text).ok().filter(|_| visit.caller.role >= Role::Viewer)?;
    let (id, order) = list;
    let address = format!("{}/search/{id}", visit.frame(tenant).home());
    let is_filter = matches!(reading::read(text, &visit.context.region), Reading::Filter(_));
    let parts = parts(&filter).filter(|_| is_filter).unwrap_or_default();
    let chip = |(n, part): (usize, &&str)| Chip {
        text: (*part).to_owned(),
        link: order.address(&format!("{address}/without/{n}")),
    };
    Some(Refinement {
        chips: parts.iter().enumerate().take(MAX_CHIPS).map(chip).collect(),
        more: parts.len().saturating_sub(MAX_CHIPS),
        action: order.address(&format!("{address}/filter")),
        values: format!("{address}/values"),
        attributes: attributes(&visit.client(tenant)).await,
        refused,
    })
}

/// The attributes that the tenant defines or users have; fewer if they cannot be read.
async fn attributes(client: &Client) -> BTreeMap<String, &'static str> {
    let request = ListAttributeNamesRequest { page_size: MAX_ATTRIBUTES, ..Default::default() };
    let admin = client.admin();
    let (definitions, names) =
        tokio::join!(definitions(client), admin.list_attribute_names(request));
    let names = names.map(|answer| answer.names).unwrap_or_default();
    let known = definitions.unwrap_or_default();
    let defined = known.iter().map(|known| {
        let kind = known.r#type();
        let is_any = kind == v1::AttributeType::Unspecified;
        (known.name.clone(), if is_any { "" } else { attribute::words(kind).name })
    });
    let (mut attributes, mut bytes) = (BTreeMap::new(), 0);
    for (name, kind) in defined.chain(names.into_iter().map(|name| (name, ""))) {
        bytes += name.len();
        if attributes.len() < MAX_ATTRIBUTES as usize && bytes <= MAX_BYTES {
            attributes.entry(name).or_insert(kind);
        }
    }
    attributes
}

/// The attributes that the tenant defines.
async fn definitions(client: &Client) -> Result<Vec<AttributeDefinition>, Failure> {
    let answer = client.admin().get_tenant(v1::GetTenantRequest::default()).await?;
    let policies = answer.tenant.and_then(|tenant| tenant.policies);
    Ok(policies.unwrap_or_default().attribute_definitions)
}

/// The filter of a list: that of the text, or for its words.
///
/// # Errors
/// The text names a user.
pub fn base(visit: &Visit, text: &str) -> Result<String, Failure> {
    match reading::read(text, &visit.context.region) {
        Reading::Filter(filter) => Ok(filter),
        Reading::Words(words) => Ok(filter_of(&words)),
        Reading::Id(_) | Reading::Identifier(_) => Err(Failure::NotFound),
    }
}

/// Leads to the list without a part of its filter.
pub async fn remove(
    visit: Visit,
    Path((tenant, id, n)): Path<(String, ShortId, usize)>,
    Query(Ordered { order }): Query<Ordered>,
) -> Page {
    visit.require(Role::Viewer)?;
    let filter = base(&visit, &visit.session.queries.get(id).ok_or(Failure::SearchGone)?)?;
    let mut parts = parts(&filter).unwrap_or_default();
    if n >= parts.len() {
        return Err(Failure::NotFound);
    }
    parts.remove(n);
    Ok(lead(&visit, &tenant, &join(&parts), order))
}

/// Leads to the list with further conditions, unless one is refused. One on the state replaces
/// those on the state.
///
/// # Errors
/// The role is too low, or the list is not of this session.
pub async fn add(
    visit: &Visit,
    tenant: &str,
    (id, order): (ShortId, Order),
    form: Form,
) -> Result<Result<Response<Body>, Refused>, Failure> {
    visit.require(Role::Viewer)?;
    let filter = base(visit, &visit.session.queries.get(id).ok_or(Failure::SearchGone)?)?;
    let definitions = definitions(&visit.client(tenant)).await?;
    let new = match conditions(&form, &definitions) {
        Ok(new) => new,
        Err(Failure::Form(message)) => return Ok(Err(Refused { form, message })),
        Err(failure) => return Err(failure),
    };
    let has_state = new.iter().any(|condition| is_of_state(condition));
    let mut parts = parts(&filter).unwrap_or_else(|| vec![&filter]);
    parts.retain(|part| {
        let is_replaced = has_state && is_of_state(part);
        !is_replaced && new.iter().all(|new| new != part)
    });
    parts.extend(new.iter().map(String::as_str));
    Ok(Ok(lead(visit, tenant, &join(&parts), order)))
}

fn lead(visit: &Visit, tenant: &str, filter: &str, order: Order) -> Response<Body> {
    let id = visit.session.queries.add(filter);
    redirect(&order.address(&format!("{}/search/{id}", visit.frame(tenant).home())))
}
