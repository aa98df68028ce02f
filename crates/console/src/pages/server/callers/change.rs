//! Credentials get another expiry, or are revoked, once somebody has confirmed it.

use std::sync::Arc;
use std::time::SystemTime;

use http::StatusCode;
use polynym_access::edits::{EditError, Which};
use polynym_access::{Credential, TokenHash};
use polynym_presentation::time;
use serde::Deserialize;

use super::access::{fixed, require_change, with_file};
use super::list::{CredentialView, VALIDITIES, credential};
use crate::console::Shared;
use crate::prelude::*;
use crate::session::Message;

/// The maximum number of credentials that a page names.
const MAX_NAMED: usize = 25;
/// The maximum characters of a reason in the log.
const MAX_REASON: usize = 256;

/// A change of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They get another expiry.
    Extend,
    /// They are revoked.
    Revoke,
}

impl Change {
    /// The name in the address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Revoke => "revoke",
        }
    }

    /// The past participle.
    const fn done(self) -> &'static str {
        match self {
            Self::Extend => "extended",
            Self::Revoke => "revoked",
        }
    }

    /// The sentence about what was done.
    const fn sentence(self) -> &'static str {
        match self {
            Self::Extend => "The expiry is changed.",
            Self::Revoke => "The credentials are revoked, and sessions with them have ended.",
        }
    }
}

#[derive(Template)]
#[template(path = "pages/server/change_credentials.html")]
struct ChangePage {
    frame: Frame,
    change: Change,
    chosen: Chosen,
    named: Named,
    validities: [(&'static str, &'static str); 5],
    form: Form,
    /// Whether the session of the one who revokes ends.
    is_own: bool,
    /// Whether no token of an admin of all tenants is left.
    is_last_admin: bool,
    error: String,
}

/// The credentials of a page.
struct Named {
    credentials: Vec<CredentialView>,
    more: usize,
}

/// The credentials of a page or form: a token, a certificate, or all credentials of a caller.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Chosen {
    name: String,
    token: String,
    certificate: String,
    /// The tenant of the page before.
    t: String,
}

impl Chosen {
    fn in_form(form: &Form) -> Self {
        let field = |name| form.get(name).to_owned();
        let (name, token) = (field("name"), field("token"));
        Self { name, token, certificate: field("certificate"), t: field("t") }
    }

    fn which(&self) -> Which {
        match (&*self.token, &*self.certificate) {
            ("", "") => Which::Caller(self.name.clone()),
            ("", certificate) => {
                let (caller, certificate) = (self.name.clone(), certificate.to_owned());
                Which::Certificate { caller, certificate }
            }
            (token, _) => Which::Token(token.to_owned()),
        }
    }

    fn has(&self, credential: &Credential) -> bool {
        let token = credential.token.as_ref().map_or("", TokenHash::id);
        let certificate = credential.certificate.as_deref().unwrap_or_default();
        credential.caller.name == self.name
            && (self.is_all()
                || (token == self.token && (!token.is_empty() || certificate == self.certificate)))
    }

    /// Whether it is about all credentials of a caller.
    fn is_all(&self) -> bool {
        self.token.is_empty() && self.certificate.is_empty()
    }

    /// Whether a session needs them.
    fn has_session(&self, visit: &Visit) -> bool {
        self.name == visit.caller.name
            && (self.is_all() || visit.session.token_id() == Some(&self.token))
    }

    /// The credentials; none if there are none.
    fn named(&self, shared: &Shared) -> Option<Named> {
        let credentials = shared.access.credentials()?;
        let own: Vec<_> = credentials.list().into_iter().filter(|one| self.has(one)).collect();
        let views: Vec<_> = own.iter().take(MAX_NAMED).map(|one| credential(one)).collect();
        let more = own.len() - views.len();
        (!own.is_empty()).then_some(Named { credentials: views, more })
    }

    /// Whether no valid credential of an admin of all tenants is left without these.
    fn has_last_admin(&self, shared: &Shared) -> bool {
        let now = SystemTime::now();
        let is_admin = |one: &&Credential| {
            one.caller.role == Role::Admin && one.caller.tenants.are_all() && !one.has_expired(now)
        };
        let credentials = shared.access.credentials();
        let is_left = |one: &&Credential| is_admin(one) && !self.has(one);
        credentials.is_none_or(|all| !all.list().iter().any(is_left))
    }
}

/// The form.
pub async fn page(
    change: Change,
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Query(chosen): Query<Chosen>,
) -> Page {
    require_change(&shared, &visit).await?;
    show(&shared, &visit, change, (&chosen, Form::of(&[("valid", "365d")])), String::new())
}

fn show(
    shared: &Shared,
    visit: &Visit,
    change: Change,
    (chosen, form): (&Chosen, Form),
    error: String,
) -> Page {
    let is_wrong = !error.is_empty();
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = ChangePage {
        frame: visit.server_frame(&chosen.t),
        change,
        named: chosen.named(shared).ok_or_else(gone)?,
        validities: VALIDITIES,
        form,
        is_own: chosen.has_session(visit),
        is_last_admin: chosen.has_last_admin(shared),
        chosen: chosen.clone(),
        error,
    };
    Ok(render_with_status(&page, status))
}

/// Changes credentials. Sessions that need those that are revoked end. A form that is sent again
/// leads to the list, too.
pub async fn apply(
    change: Change,
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    form: Form,
) -> Page {
    require_change(&shared, &visit).await?;
    let chosen = Chosen::in_form(&form);
    let again = |error| show(&shared, &visit, change, (&chosen, form.clone()), error);
    let which = chosen.which();
    let (outcome, until) = match change {
        Change::Revoke => {
            (with_file(&shared, move |file| file.revoke(&which)).await?, String::new())
        }
        Change::Extend => match time::expiry(form.get("valid")) {
            Err(rule) => return again(format!("Valid for: {rule}.")),
            Ok(expires) => (
                with_file(&shared, move |file| file.extend(&which, expires)).await?,
                expires.map_or_else(|| "never".to_owned(), time::second),
            ),
        },
    };
    match outcome {
        Ok(count) => {
            log(&visit, &chosen, &form, count, &format!("{} credentials", change.done()), &until);
            shared.sessions.close_invalid(&shared.access);
        }
        Err(EditError::NotFound(_)) if change == Change::Revoke => {}
        Err(EditError::NotFound(_)) => return Err(gone()),
        Err(EditError::Invalid(error)) => return again(error),
        Err(error) => return Err(fixed(error)),
    }
    let frame = visit.server_frame(&chosen.t);
    let message = Message::done(change.done(), change.sentence());
    Ok(visit.done(&frame.server_page("callers", &[]), message))
}

fn log(visit: &Visit, chosen: &Chosen, form: &Form, count: usize, what: &str, until: &str) {
    let is_printable = |c: &char| !c.is_control();
    let reason: String = form.get("reason").chars().filter(is_printable).take(MAX_REASON).collect();
    tracing::info!(
        caller = visit.caller.name,
        name = chosen.name,
        token = chosen.token,
        certificate = chosen.certificate,
        count,
        until = Some(until).filter(|until| !until.is_empty()),
        reason = Some(reason).filter(|reason| !reason.is_empty()),
        "{what}"
    );
}

fn gone() -> Failure {
    Failure::Form("There is no such credential: it was revoked in the meantime.".to_owned())
}
