//! The form of a delivery: a new one, or changes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use polynym_client::{Error, Kind};
use polynym_presentation::event;
use prost_types::FieldMask;
use url::Url;

use super::one::{get, path};
use crate::change::problem::sentence;
use crate::prelude::*;
use crate::session::Message;
use crate::views::delivery::kinds;

/// The hidden fields with what the form showed: what somebody else changed meanwhile stays.
const SEEN: [&str; 4] = ["seen_url", "seen_description", "seen_types", "seen_ids_only"];
/// The bytes of a new secret.
const SECRET_BYTES: usize = 32;
/// The bytes of a name.
const MAX_ID_BYTES: usize = 64;

#[derive(Template)]
#[template(path = "pages/deliveries/draft.html")]
struct DraftPage {
    frame: Frame,
    /// The id of the delivery that changes; empty for a new one.
    id: String,
    form: Form,
    /// The kinds of events, and whether they are chosen.
    kinds: Vec<(String, &'static str, bool)>,
    /// What is wrong: the fields, which may be empty, and sentences.
    errors: Vec<(&'static str, String)>,
}

impl DraftPage {
    /// Whether a field has an error.
    fn is_wrong(&self, field: &str) -> bool {
        self.errors.iter().any(|(own, _)| *own == field)
    }
}

/// The form of a new delivery, with a new secret.
pub async fn new(visit: Visit, Path(tenant): Path<String>) -> Page {
    visit.require(Role::Admin)?;
    let form = Form::of(&[("secrets", &new_secret()?)]);
    Ok(show(&visit, &tenant, "", form, Vec::new()))
}

/// Creates a delivery. The same form sent twice creates one.
pub async fn create(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let typed = match Typed::parse(&form) {
        Ok(typed) => typed,
        Err(error) => return Ok(show(&visit, &tenant, "", form, vec![("", error)])),
    };
    let errors = errors(&form);
    if !errors.is_empty() {
        return Ok(show(&visit, &tenant, "", form, errors));
    }
    let request = v1::CreateDeliveryRequest {
        delivery_id: form.get("id").to_owned(),
        url: typed.url,
        types: typed.types,
        ids_only: typed.ids_only,
        description: typed.description,
        secrets: typed.secrets,
        ..Default::default()
    };
    match visit.client(&tenant).admin().create_delivery(request).await {
        Ok(_) => {
            let text = "The delivery was created. Its secret is not shown again.";
            let path = path(&visit, &tenant, form.get("id"));
            Ok(visit.done(&path, Message::done("created", text)))
        }
        Err(error) => refused(&visit, &tenant, "", form, error),
    }
}

/// The form of a delivery that is there.
pub async fn change(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    visit.require(Role::Admin)?;
    let delivery = get(&visit.client(&tenant), &id).await?;
    let names: Vec<_> = delivery.types().map(event::name).collect();
    let [ids_only, types] = [text_of(delivery.ids_only), &names.join(",")];
    let (url, description) = (&*delivery.url, &*delivery.description);
    let mut fields = vec![("url", url), ("description", description)];
    fields.extend(SEEN.into_iter().zip([url, description, types, ids_only]));
    fields.extend(names.iter().map(|name| ("type", &**name)));
    fields.extend(delivery.ids_only.then_some(("ids_only", "yes")));
    let form = Form::of(&fields);
    Ok(show(&visit, &tenant, &id, form, Vec::new()))
}

/// Changes a delivery.
pub async fn update(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let typed = match Typed::parse(&form) {
        Ok(typed) => typed,
        Err(error) => return Ok(show(&visit, &tenant, &id, form, vec![("", error)])),
    };
    let types: Vec<_> = form.all("type").collect();
    let now = [&*typed.url, &*typed.description, &types.join(","), text_of(typed.ids_only)];
    let fields = ["url", "description", "types", "ids_only"].into_iter().zip(now).zip(SEEN);
    let changed =
        fields.filter(|((_, now), seen)| *now != form.get(seen)).map(|((path, _), _)| path);
    let secrets = (!typed.secrets.is_empty()).then_some("secrets");
    let paths = changed.chain(secrets);
    let request = v1::UpdateDeliveryRequest {
        delivery_id: id.clone(),
        update_mask: Some(FieldMask { paths: paths.map(str::to_owned).collect() }),
        url: typed.url,
        types: typed.types,
        ids_only: typed.ids_only,
        description: typed.description,
        secrets: typed.secrets,
        ..Default::default()
    };
    match visit.client(&tenant).admin().update_delivery(request).await {
        Ok(_) => {
            let message = Message::done("changed", "The delivery was changed.");
            Ok(visit.done(&path(&visit, &tenant, &id), message))
        }
        Err(error) => refused(&visit, &tenant, &id, form, error),
    }
}

/// The form again, if what was typed is wrong.
fn refused(visit: &Visit, tenant: &str, id: &str, form: Form, error: Error) -> Page {
    match error.kind() {
        Kind::InvalidArgument | Kind::AlreadyExists => {
            let field = field_of(&error);
            let text = sentence(&error);
            Ok(show(visit, tenant, id, form, vec![(field, text)]))
        }
        _ => Err(error.into()),
    }
}

/// The field of the form that a call refuses; empty if it is none.
fn field_of(error: &Error) -> &'static str {
    match (error.kind(), error.field().unwrap_or_default()) {
        (Kind::AlreadyExists, _) | (_, "delivery_id") => "id",
        (_, "url") => "url",
        (_, "description") => "description",
        (_, field) if field.starts_with("secrets") => "secrets",
        _ => "",
    }
}

/// What is wrong with a new delivery, all at once.
fn errors(form: &Form) -> Vec<(&'static str, String)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    let (id, url) = (form.get("id"), form.get("url"));
    let mut errors = Vec::new();
    if id.is_empty() || id.len() > MAX_ID_BYTES || !id.chars().all(is_plain) {
        let rule = "Name: up to 64 letters, digits, full stops, colons, underscores and hyphens.";
        errors.push(("id", rule.to_owned()));
    }
    let is_url = Url::parse(url).is_ok_and(|url| url.has_host());
    if !is_url {
        let rule = "Address of the receiver: write it whole, such as https://example.com/events.";
        errors.push(("url", rule.to_owned()));
    }
    errors
}

fn show(
    visit: &Visit,
    tenant: &str,
    id: &str,
    form: Form,
    errors: Vec<(&'static str, String)>,
) -> http::Response<axum::body::Body> {
    let is_wrong = !errors.is_empty();
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let is_chosen = |name: &str| form.all("type").any(|chosen| chosen == name);
    let kinds = kinds().into_iter().map(|(name, word)| {
        let chosen = is_chosen(&name);
        (name, word, chosen)
    });
    let kinds = kinds.collect();
    let page = DraftPage { frame: visit.frame(tenant), id: id.to_owned(), form, kinds, errors };
    render_with_status(&page, status)
}

/// The fields of the form.
struct Typed {
    url: String,
    types: Vec<i32>,
    ids_only: bool,
    description: String,
    secrets: Vec<String>,
}

impl Typed {
    fn parse(form: &Form) -> Result<Self, String> {
        let types = form.all("type").map(|name| event::parse(name).map(i32::from));
        let secrets = form.get("secrets").split_ascii_whitespace().map(str::to_owned);
        Ok(Self {
            url: form.get("url").to_owned(),
            types: types.collect::<Result<_, _>>()?,
            ids_only: form.has("ids_only"),
            description: form.get("description").to_owned(),
            secrets: secrets.collect(),
        })
    }
}

/// The value of a box.
const fn text_of(is_ticked: bool) -> &'static str {
    if is_ticked { "yes" } else { "" }
}

/// A new secret of Standard Webhooks.
fn new_secret() -> Result<String, Failure> {
    let mut bytes = [0; SECRET_BYTES];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|_| Failure::Internal("There are no random numbers.".to_owned()))?;
    Ok(format!("whsec_{}", STANDARD.encode(bytes)))
}
