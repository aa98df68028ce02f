//! Events as a stream for scripts (server-sent events). It ends when the browser leaves, when the
//! session ends, and when its token does.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::RawQuery;
use futures_util::FutureExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use polynym_access::Permit;
use polynym_client::{Answers, Error, Kind as ErrorKind};
use polynym_proto::v1::watch_response::Kind;
use polynym_proto::v1::{Event, WatchRequest, WatchResponse};
use tokio::time::{Interval, interval};

use super::query::Selection;
use crate::change::problem::sentence;
use crate::console::Shared;
use crate::prelude::*;
use crate::render::{Parts, html, stream_of};
use crate::views::event::{EventView, user_ids, views};
use crate::views::person::People;

/// The maximum number of streams of a session.
const MAX_STREAMS: usize = 2;
/// The maximum number of events of one message.
const MAX_EVENTS: usize = 25;
/// The interval in which the session and its token are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The type of server-sent events.
pub const STREAM_TYPE: &str = "text/event-stream";
const SESSION_ENDED: &str = "The session has ended: sign in again to follow events.";

#[derive(Template)]
#[template(path = "partials/event_line.html")]
struct EventPart {
    frame: Frame,
    event: EventView,
}

#[derive(Template)]
#[template(
    source = r#"<li class="alert" role="alert"><p>{{ reason|words }}</p>
{%- if reason == SESSION_ENDED %}<p><a class="button" href="">Sign in</a></p>{% endif %}</li>"#,
    ext = "html"
)]
struct EndPart<'r> {
    reason: &'r str,
}

/// Turns events into lines of a page.
pub trait EventLines: Send + Sync + 'static {
    /// The lines of some events in their order; empty for none.
    fn lines(
        &self,
        visit: &Visit,
        tenant: &str,
        events: Vec<Event>,
    ) -> impl Future<Output = String> + Send;
}

/// The lines of the page of events.
struct Timeline;

impl EventLines for Timeline {
    async fn lines(&self, visit: &Visit, tenant: &str, events: Vec<Event>) -> String {
        let people = People::read(&visit.client(tenant), user_ids(&events)).await;
        let newest_first = views(&events, &people).into_iter().rev();
        let part = |event| EventPart { frame: visit.frame(tenant), event };
        newest_first.filter_map(|event| html(&part(event)).ok()).collect()
    }
}

/// A browser that follows events.
struct Follower<L> {
    shared: Arc<Shared>,
    visit: Visit,
    tenant: String,
    answers: Answers<WatchResponse>,
    lines: L,
    checks: Interval,
    is_over: bool,
    _permit: Permit<1>,
}

/// The events after the last one that the browser has, or after the token of the address.
pub async fn stream(
    State(shared): State<Arc<Shared>>,
    visit: Result<Visit, Failure>,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    let request = Selection::read(&query.unwrap_or_default()).request(&tenant);
    follow_events(shared, visit, tenant, (request, Timeline), &headers).await
}

/// The stream of a call, as lines. If a script may not follow the events, the stream says so and
/// ends: otherwise the script would ask again and again.
pub async fn follow_events(
    shared: Arc<Shared>,
    visit: Result<Visit, Failure>,
    tenant: String,
    (mut request, lines): (WatchRequest, impl EventLines),
    headers: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    if let Some(last) = headers.get("last-event-id").and_then(|last| last.to_str().ok()) {
        last.clone_into(&mut request.resume_token);
    }
    let follower = match visit {
        Ok(visit) => follow(shared, visit, tenant, (request, lines)).await,
        Err(failure) => Err(failure),
    };
    match follower {
        Ok(follower) => Ok(events(Body::from_stream(stream_of(follower)))),
        Err(failure) => match end_reason(&failure).filter(|_| is_script(headers)) {
            Some(reason) => Ok(events(Body::from(end_of_stream(&reason)))),
            None => Err(failure),
        },
    }
}

/// Opens a stream.
async fn follow<L>(
    shared: Arc<Shared>,
    visit: Visit,
    tenant: String,
    (request, lines): (WatchRequest, L),
) -> Result<Follower<L>, Failure> {
    visit.require(Role::Viewer)?;
    let permit = Permit::take([(&visit.session.streams, MAX_STREAMS)]);
    let permit = permit.map_err(|_| Failure::TooManyStreams)?;
    let client = visit.client(&tenant);
    let answers = client.directory().watch(request).await?;
    let checks = interval(CHECK_INTERVAL);
    Ok(Follower { shared, visit, tenant, answers, lines, checks, is_over: false, _permit: permit })
}

/// Whether a script asks for a stream.
fn is_script(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains(STREAM_TYPE))
}

/// The reason why a stream ends for good; none if the script may ask again.
fn end_reason(failure: &Failure) -> Option<String> {
    Some(match failure {
        Failure::SignedOut => SESSION_ENDED.to_owned(),
        Failure::TooManyStreams => {
            "You already follow events on two pages: close one, and open this page again."
                .to_owned()
        }
        Failure::Call(error) if is_transient(error) => return None,
        Failure::Call(error) => sentence(error),
        _ => "You may not follow these events.".to_owned(),
    })
}

fn is_transient(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::ResourceExhausted)
}

/// A response with events.
fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(STREAM_TYPE));
    response
}

/// The last event of a stream, after which scripts do not ask again.
fn end_of_stream(reason: &str) -> String {
    let part = html(&EndPart { reason }).unwrap_or_default();
    format!("{}\nevent: close\ndata: end\n\n", data_lines(&part))
}

impl<L: EventLines> Parts for Follower<L> {
    async fn next(&mut self) -> Option<String> {
        while !self.is_over {
            tokio::select! {
                answer = self.answers.message() => match answer {
                    Ok(Some(answer)) => return Some(self.part(answer).await),
                    // The browser asks again after the last token.
                    Ok(None) => return None,
                    Err(error) => return self.end_of(error),
                },
                _ = self.checks.tick() => if !self.is_allowed() {
                    return self.end(SESSION_ENDED);
                },
            }
        }
        None
    }
}

impl<L: EventLines> Follower<L> {
    /// Whether the session is open and its caller may still see the events.
    fn is_allowed(&self) -> bool {
        let session = &self.visit.session;
        let caller = session.caller(&self.shared.access);
        let may_view = caller.is_some_and(|caller| {
            caller.role >= Role::Viewer && caller.tenants.contains(&self.tenant)
        });
        may_view && self.shared.sessions.is_open(session)
    }

    /// The message of an answer, and of those that are there already.
    async fn part(&mut self, first: WatchResponse) -> String {
        let (mut token, mut events) = (first.resume_token, Vec::new());
        let mut kind = first.kind;
        while let Some(Kind::Event(event)) = kind.take() {
            events.push(event);
            if events.len() == MAX_EVENTS {
                break;
            }
            // After an error or the end, the next message is the end, and the browser asks again.
            if let Some(Ok(Some(next))) = self.answers.message().now_or_never() {
                token = next.resume_token;
                kind = next.kind;
            }
        }
        let lines = self.lines.lines(&self.visit, &self.tenant, events).await;
        let data = if lines.is_empty() { String::new() } else { data_lines(&lines) };
        format!("id: {token}\n{data}\n")
    }

    /// Ends the stream after an error. The browser asks again if the failure is temporary.
    fn end_of(&mut self, error: Error) -> Option<String> {
        end_reason(&Failure::from(error)).and_then(|reason| self.end(&reason))
    }

    /// Ends the stream for good.
    fn end(&mut self, reason: &str) -> Option<String> {
        self.is_over = true;
        Some(end_of_stream(reason))
    }
}

/// A text as the data of an event: each line by itself. A carriage return ends a line, too.
fn data_lines(text: &str) -> String {
    let lines = text.lines().flat_map(|line| line.split('\r'));
    lines.map(|line| format!("data: {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_data() {
        assert_eq!(data_lines("a\nb\r\n\nc\n"), "data: a\ndata: b\ndata: \ndata: c\n");
        let forged = data_lines("x\revent: close\rdata: end\r\r");
        assert!(!forged.contains('\r'), "{forged:?}");
        assert!(forged.lines().all(|line| line.starts_with("data: ")), "{forged:?}");
    }
}
