//! A new token: the form, and the page that shows the token once.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use http::{Response, StatusCode};
use polynym_access::edits::{EditError, NewToken};
use polynym_access::{RateLimits, Tenants, Token};
use polynym_presentation::time;
use prost_types::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use uuid::Uuid;

use super::access::{fixed, require_change, with_file};
use super::list::VALIDITIES;
use crate::console::Shared;
use crate::prelude::*;

/// The maximum number of patterns of tenants.
const MAX_PATTERNS: usize = 1_000;
/// The rights of each role, in a few words.
const ROLES: [(Role, &str); 5] = [
    (Role::Monitor, "only reads metrics"),
    (Role::Resolver, "looks users up"),
    (Role::Viewer, "also searches, and reads histories"),
    (Role::Registrar, "also changes users"),
    (Role::Admin, "everything"),
];

#[derive(Template)]
#[template(path = "pages/server/new_token.html")]
struct NewPage {
    frame: Frame,
    form: Form,
    roles: [(Role, &'static str); 5],
    validities: [(&'static str, &'static str); 5],
    request_id: String,
    error: String,
}

#[derive(Template)]
#[template(path = "pages/server/created_token.html")]
struct CreatedPage {
    frame: Frame,
    name: String,
    /// Empty if it was shown before.
    token: String,
    expires: Option<Time>,
}

/// The query of the form.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// The caller who gets a further token; empty for a new one.
    name: String,
    /// The tenant of the page before.
    t: String,
}

/// The form.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Query(Parameters { name, t }): Query<Parameters>,
) -> Page {
    require_change(&shared, &visit).await?;
    let known = known(&shared, &name).unwrap_or((Role::Resolver, "default".to_owned()));
    let (role, tenants) = (known.0.name(), known.1);
    let fields =
        [("name", &*name), ("role", role), ("tenants", &*tenants), ("valid", "365d"), ("t", &*t)];
    Ok(show(&visit, Form::of(&fields), Uuid::new_v4(), String::new()))
}

/// The role and the tenants of a caller who has credentials.
fn known(shared: &Shared, name: &str) -> Option<(Role, String)> {
    let credentials = shared.access.credentials()?;
    let all = credentials.list();
    let own = all.iter().find(|credential| credential.caller.name == name)?;
    Some((own.caller.role, own.caller.tenants.to_string()))
}

fn show(visit: &Visit, form: Form, request_id: Uuid, error: String) -> Response<Body> {
    let is_wrong = !error.is_empty();
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = NewPage {
        frame: visit.server_frame(form.get("t")),
        form,
        roles: ROLES,
        validities: VALIDITIES,
        request_id: request_id.to_string(),
        error,
    };
    render_with_status(&page, status)
}

/// Makes the token, and shows it. The same form sent again makes no other, and shows nothing.
pub async fn create(State(shared): State<Arc<Shared>>, visit: Visit, form: Form) -> Page {
    require_change(&shared, &visit).await?;
    let request_id = Uuid::parse_str(form.get("request_id")).ok();
    let request_id = request_id
        .ok_or_else(|| Failure::Form("The form has no request id: open it again.".to_owned()))?;
    let new = match new_token(&shared, &form) {
        Ok(new) => new,
        Err(error) => return Ok(show(&visit, form, request_id, error)),
    };
    if !shared.used_forms.begin(request_id) {
        return Ok(created(&visit, &form, &new, None));
    }
    // The browser may leave: the token is made nevertheless, and the form counts as used.
    let wanted = new.clone();
    let made = with_file(&shared, move |file| file.create(&wanted)).await;
    if !matches!(made, Ok(Ok(_))) {
        shared.used_forms.undo(request_id);
    }
    match made? {
        Ok(secret) => {
            log(&visit, &new, &secret);
            Ok(created(&visit, &form, &new, Some(&secret)))
        }
        Err(EditError::Invalid(error)) => Ok(show(&visit, form, request_id, error)),
        Err(error) => Err(fixed(error)),
    }
}

fn log(visit: &Visit, new: &NewToken, secret: &SecretString) {
    tracing::info!(
        caller = visit.caller.name,
        name = new.name,
        role = new.role.name(),
        tenants = new.tenants.join(","),
        token = Token::parse(secret.expose_secret()).map(Token::id),
        "created a token"
    );
}

fn created(
    visit: &Visit,
    form: &Form,
    new: &NewToken,
    secret: Option<&SecretString>,
) -> Response<Body> {
    let page = CreatedPage {
        frame: visit.server_frame(form.get("t")),
        name: new.name.clone(),
        token: secret.map(|secret| secret.expose_secret().to_owned()).unwrap_or_default(),
        expires: Time::of(new.expires.map(Timestamp::from).as_ref()),
    };
    let status = if secret.is_some() { StatusCode::OK } else { StatusCode::CONFLICT };
    render_with_status(&page, status)
}

/// The token that a form describes.
///
/// # Errors
/// A field is wrong, or contradicts the other credentials of the caller.
fn new_token(shared: &Shared, form: &Form) -> Result<NewToken, String> {
    let name = form.get("name").to_owned();
    let role: Role = form.get("role").parse()?;
    let typed = form.get("tenants").split([',', ' ', '\n', '\r']).map(str::trim);
    let patterns: Vec<_> = typed.filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect();
    if patterns.len() > MAX_PATTERNS {
        return Err(format!("Tenants: write at most {MAX_PATTERNS} patterns."));
    }
    let tenants = Tenants::parse(patterns).map_err(|rule| format!("Tenants: {rule}."))?;
    if let Some((own_role, own_tenants)) = known(shared, &name)
        && (own_role, &own_tenants) != (role, &tenants.to_string())
    {
        return Err(format!(
            "{name} has other credentials, with the role {own_role} for {own_tenants}: choose the \
             same, or another name."
        ));
    }
    let expires: Option<SystemTime> =
        time::expiry(form.get("valid")).map_err(|rule| format!("Valid for: {rule}."))?;
    let [calls, misses] = [("calls", "Calls"), ("misses", "Misses")].map(|(field, label)| {
        let text = form.get(field);
        let limit = (!text.is_empty()).then(|| text.parse::<NonZeroU32>()).transpose();
        limit.map_err(|_| format!("{label} per second: write a number from 1, or nothing."))
    });
    let limits = RateLimits { calls: calls?, misses: misses? };
    let limits = Some(limits).filter(|limits| *limits != RateLimits::default());
    Ok(NewToken { name, role, tenants: tenants.patterns().to_vec(), limits, expires })
}
