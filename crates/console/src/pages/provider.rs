//! Signing in by the provider of the credentials file: the way there, and the way back. Whatever
//! goes wrong there is a page in words, with a way back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Extension;
use axum::body::Body;
use http::header::SET_COOKIE;
use http::{HeaderMap, Response, StatusCode};
use polynym_access::{Caller, IdentityProvider, Person, Source};
use polynym_oidc::{Fault, Identity, PENDING_TIME, Pending};
use polynym_transport::LogThrottle;

use super::{leaving, sign_in};
use crate::console::Shared;
use crate::context::{ClientAddress, Context};
use crate::cookies::{MAX_PENDING, PendingCookie};
use crate::prelude::*;
use crate::session::{PersonSession, Session};

/// The path to which the form to sign in leads.
pub const BEGIN: &str = "/sign-in/provider";
/// The path to which the provider leads back.
pub const CALLBACK: &str = "/sign-in/callback";
/// The maximum bytes of the path to lead to afterwards, which the browser keeps in a cookie.
const MAX_NEXT_BYTES: usize = 400;
/// The longest session.
const MAX_SESSION: Duration = Duration::from_secs(8 * 60 * 60);
/// What somebody can do about most faults of a provider.
const LATER: &str = "Try again in a minute. If it stays so, tell the administrator of this server: \
    its log has the reason.";
const AGAIN: &str = "Begin again.";

/// Throttles the log while people fail to sign in.
static FAULTS: LogThrottle = LogThrottle::new();

#[derive(Template)]
#[template(path = "pages/not_signed_in.html")]
struct NotSignedInPage {
    frame: Frame,
    message: String,
    advice: &'static str,
    /// The address of the page to sign in.
    address: String,
}

/// The reason why somebody is not signed in, as a page says it.
struct Refusal {
    status: StatusCode,
    /// A sentence that begins after the name of the provider.
    message: &'static str,
    advice: &'static str,
}

const fn refusal(status: StatusCode, message: &'static str, advice: &'static str) -> Refusal {
    Refusal { status, message, advice }
}

/// Whether a request comes back from the provider.
pub fn is_callback(context: &Context) -> bool {
    context.path.strip_prefix(&context.base) == Some(CALLBACK)
}

/// Whether a request begins to sign in by the provider.
pub fn is_begin(context: &Context) -> bool {
    context.path.strip_prefix(&context.base) == Some(BEGIN)
}

/// The address to which the provider leads back.
fn callback_address(context: &Context) -> String {
    format!("{}{}{CALLBACK}", context.origin, context.base)
}

/// Leads to the provider.
pub async fn begin(
    State(shared): State<Arc<Shared>>,
    context: Context,
    headers: HeaderMap,
    fields: Form,
) -> Page {
    let settings = shared.access.provider().ok_or(Failure::NotFound)?;
    let mut next = sign_in::next_path(&context.base, fields.get("next"));
    if next.len() > MAX_NEXT_BYTES {
        next = format!("{}/", context.base);
    }
    let slot = free_slot(&shared, &headers);
    let provider = shared.providers.of(&settings);
    let back = callback_address(&context);
    let begun = provider.begin(&settings, &back, slot, next.clone()).await;
    let begun = begun.and_then(|mut begun| {
        begun.pending.kept = shared.providers.kept.keep(fields.raw("kept"));
        Ok((shared.providers.seal(&begun.pending)?, begun.url))
    });
    let (sealed, url) = match begun {
        Ok(begun) => begun,
        Err(fault) => return Ok(not_signed_in(context, &settings, &by_fault(&fault), &next)),
    };
    let mut response = leaving::page(context, &url, "You sign in at another site", "Go there");
    let seconds = i64::try_from(PENDING_TIME.as_secs()).unwrap_or_default();
    if let Some(cookie) = cookie(&shared, slot).set(&sealed, seconds) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The answer to somebody whom the provider leads back.
pub async fn callback(
    State(shared): State<Arc<Shared>>,
    context: Context,
    Extension(address): Extension<ClientAddress>,
    headers: HeaderMap,
    Query(answer): Query<HashMap<String, String>>,
) -> Page {
    let settings = shared.access.provider().ok_or(Failure::NotFound)?;
    let text = |name: &str| answer.get(name).map(String::as_str).unwrap_or_default();
    let state = text("state");
    let slot = state.split('.').next().and_then(|slot| slot.parse().ok());
    let slot = slot.filter(|slot| *slot < MAX_PENDING).map(|slot| cookie(&shared, slot));
    let sealed = slot.and_then(|cookie| cookie.read(&headers));
    let pending = sealed.and_then(|sealed| shared.providers.open(&sealed));
    let Some(pending) = pending.filter(|pending| pending.is_answered_by(state)) else {
        return Ok(not_signed_in(context, &settings, &NOT_BEGUN_HERE, ""));
    };
    let identity = identity(&shared, &settings, &context, &pending, &answer).await;
    let opened = identity.and_then(|identity| open(&shared, &settings, identity, address));
    let mut response = match opened {
        Ok((session, caller)) => {
            let kept = shared.providers.kept.take(&pending.kept).unwrap_or_default();
            sign_in::signed_in(&shared, context, (&session, &caller), &pending.next, &kept)
        }
        Err(refusal) => {
            let mut page = not_signed_in(context, &settings, &refusal, &pending.next);
            // It waits, as that to a wrong token does: it bounds what can be tried.
            page.extensions_mut().insert(sign_in::WrongToken);
            page
        }
    };
    if let Some(cookie) = slot.and_then(PendingCookie::remove) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The person whom the answer of the provider names.
async fn identity(
    shared: &Shared,
    settings: &IdentityProvider,
    context: &Context,
    pending: &Pending,
    answer: &HashMap<String, String>,
) -> Result<Identity, Refusal> {
    let text = |name: &str| answer.get(name).map(String::as_str).unwrap_or_default();
    match text("error") {
        "" => {}
        "access_denied" => return Err(DENIED),
        "temporarily_unavailable" | "server_error" => return Err(by_fault(&Fault::Status(503))),
        _ => return Err(by_fault(&Fault::Malformed("it refuses the request to sign in"))),
    }
    // RFC 9207: an answer that names its issuer names the one that was asked.
    if answer.get("iss").is_some_and(|issuer| *issuer != settings.issuer) {
        return Err(by_fault(&Fault::OtherIssuer));
    }
    let (provider, back) = (shared.providers.of(settings), callback_address(context));
    let identity = provider.finish(settings, &back, pending, text("code").to_owned()).await;
    identity.map_err(|fault| by_fault(&fault))
}

/// Opens a session of a person who has a grant.
fn open(
    shared: &Shared,
    settings: &IdentityProvider,
    identity: Identity,
    address: ClientAddress,
) -> Result<(Arc<Session>, Arc<Caller>), Refusal> {
    let groups = settings.known(identity.groups.iter().map(String::as_str));
    if settings.rights(&groups).is_none() {
        return Err(NO_GRANT);
    }
    let now = SystemTime::now();
    let by_token = identity.expires.duration_since(now).unwrap_or_default();
    let expires = now + settings.session.unwrap_or(by_token).min(MAX_SESSION);
    let source = Source::of(settings);
    let person = Person { name: identity.name, groups, expires, source };
    let token = shared.access.sign_in(person).map_err(|_| NOT_OPENED)?;
    // The file may have changed since: what it says now counts.
    let caller = shared.access.caller_of(&token).ok_or(NO_GRANT)?;
    let person = PersonSession { token, end: identity.end };
    let session = shared.sessions.open_of_person(&caller, person, address.0);
    Ok((session.map_err(|_| NOT_OPENED)?, caller))
}

/// The number of a cookie that the browser does not have; any, if it has all.
fn free_slot(shared: &Shared, headers: &HeaderMap) -> usize {
    let is_free = |slot: &usize| cookie(shared, *slot).read(headers).is_none();
    let seconds = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let any = usize::try_from(seconds).unwrap_or_default() % MAX_PENDING;
    (0..MAX_PENDING).find(is_free).unwrap_or(any)
}

const fn cookie(shared: &Shared, slot: usize) -> PendingCookie {
    PendingCookie { slot, is_tls: shared.is_tls }
}

/// The page of somebody who is not signed in.
fn not_signed_in(
    context: Context,
    settings: &IdentityProvider,
    refusal: &Refusal,
    next: &str,
) -> Response<Body> {
    let page = NotSignedInPage {
        message: refusal.message.replace("NAME", &settings.name),
        advice: refusal.advice,
        address: sign_in::address(&context.base, &sign_in::next_path(&context.base, next)),
        frame: Frame::new(context, None, ""),
    };
    render_with_status(&page, refusal.status)
}

const NOT_BEGUN_HERE: Refusal = refusal(
    StatusCode::BAD_REQUEST,
    "This sign-in did not begin in this browser, has ended already, or took more than ten minutes.",
    AGAIN,
);
const DENIED: Refusal = refusal(
    StatusCode::FORBIDDEN,
    "NAME does not let you sign in, or you stopped there.",
    "Begin again, or ask its administrator for access.",
);
const NO_GRANT: Refusal = refusal(
    StatusCode::FORBIDDEN,
    "NAME knows you, and none of your groups may use this console.",
    "Ask the administrator of this server to grant a role to one of your groups.",
);
const NOT_OPENED: Refusal =
    refusal(StatusCode::INTERNAL_SERVER_ERROR, "The session cannot be opened.", LATER);

/// The page of a fault. Writes it to the log, at most once a second.
fn by_fault(fault: &Fault) -> Refusal {
    if let Some(suppressed) = FAULTS.step() {
        tracing::warn!(%fault, suppressed, "nobody is signed in by the provider");
    }
    let (status, message, advice) = match fault {
        Fault::Unreachable(_) | Fault::Status(_) => {
            (StatusCode::BAD_GATEWAY, "NAME cannot be reached.", LATER)
        }
        Fault::Silent => (StatusCode::GATEWAY_TIMEOUT, "NAME does not answer.", LATER),
        Fault::Busy => (StatusCode::SERVICE_UNAVAILABLE, "Many people sign in right now.", LATER),
        Fault::ClientRefused | Fault::SecretUnreadable => {
            (StatusCode::BAD_GATEWAY, "NAME does not accept this server.", LATER)
        }
        Fault::CodeRefused => (
            StatusCode::BAD_REQUEST,
            "NAME does not accept this sign-in: it was used already, or is too old.",
            AGAIN,
        ),
        Fault::NoName => (
            StatusCode::FORBIDDEN,
            "NAME has no name for you that this server can use.",
            "Tell the administrator of this server, who chooses the claim with the name.",
        ),
        Fault::EmailUnverified => (
            StatusCode::FORBIDDEN,
            "NAME has not verified your email address.",
            "Verify it there, and begin again.",
        ),
        Fault::NoRandomBytes => (NOT_OPENED.status, NOT_OPENED.message, NOT_OPENED.advice),
        Fault::TooLarge
        | Fault::Malformed(_)
        | Fault::Insecure
        | Fault::OtherIssuer
        | Fault::Untrusted(_) => {
            (StatusCode::BAD_GATEWAY, "NAME answered something that does not count.", LATER)
        }
    };
    refusal(status, message, advice)
}
