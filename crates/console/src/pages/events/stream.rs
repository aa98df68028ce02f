//! Events as a stream for scripts (server-sent events). It ends when the browser leaves, when the
//! session ends, and when its token does.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use polynym_access::{Permit, Role};
use polynym_client::{Answers, Error, Kind as ErrorKind};
use polynym_proto::v1::WatchResponse;
use polynym_proto::v1::watch_response::Kind;
use tokio::time::{Interval, interval};

use super::line::EventLine;
use super::query::Selection;
use crate::console::Shared;
use crate::failure::Failure;
use crate::visit::Visit;

/// The maximum number of streams of a session.
const MAX_STREAMS: usize = 2;
/// The interval in which the session and its token are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Template)]
#[template(path = "partials/event_line.html")]
struct EventPart {
    event: EventLine,
    /// The path of the tenant's pages.
    home: String,
}

#[derive(Template)]
#[template(source = r#"<li class="alert" role="alert"><p>{{ reason }}</p></li>"#, ext = "html")]
struct EndPart<'r> {
    reason: &'r str,
}

/// A browser that follows events.
struct Follower {
    shared: Arc<Shared>,
    visit: Visit,
    tenant: String,
    home: String,
    answers: Answers<WatchResponse>,
    checks: Interval,
    is_over: bool,
    _permit: Permit<1>,
}

/// The events after the last one that the browser has, or after the token of the address.
pub async fn stream(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    visit.require(Role::Viewer)?;
    let permit = Permit::take([(&visit.session.streams, MAX_STREAMS)]);
    let permit = permit.map_err(|_| Failure::TooManyStreams)?;
    let mut selection = Selection::read(&query.unwrap_or_default());
    if let Some(last) = headers.get("last-event-id").and_then(|last| last.to_str().ok()) {
        last.clone_into(&mut selection.after);
    }
    let client = visit.client(&tenant);
    let answers = client.directory().watch(selection.request(&tenant)).await?;
    let follower = Follower {
        shared,
        home: visit.frame(&tenant).home(),
        visit,
        tenant,
        answers,
        checks: interval(CHECK_INTERVAL),
        is_over: false,
        _permit: permit,
    };
    let chunks = stream::unfold(follower, |mut follower| async {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), follower))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let content_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

impl Follower {
    /// The next part of the stream.
    async fn next(&mut self) -> Option<String> {
        while !self.is_over {
            tokio::select! {
                answer = self.answers.message() => match answer {
                    Ok(Some(answer)) => return self.part(&answer),
                    // The browser asks again after the last token.
                    Ok(None) => return None,
                    Err(error) => return self.end_of(&error),
                },
                _ = self.checks.tick() => if !self.is_allowed() {
                    return self.end("The session has ended: sign in again to follow events.");
                },
            }
        }
        None
    }

    /// Whether the session is open and its caller may still see the events.
    fn is_allowed(&self) -> bool {
        let session = &self.visit.session;
        let caller = session.caller(&self.shared.access);
        let may_view = caller.is_some_and(|caller| {
            caller.role >= Role::Viewer && caller.tenants.contains(&self.tenant)
        });
        may_view && self.shared.sessions.is_open(session)
    }

    fn part(&self, answer: &WatchResponse) -> Option<String> {
        let data = match &answer.kind {
            Some(Kind::Event(event)) => {
                let part = EventPart { event: EventLine::of(event), home: self.home.clone() };
                data_lines(&part.render().ok()?)
            }
            _ => String::new(),
        };
        Some(format!("id: {}\n{data}\n", answer.resume_token))
    }

    /// Ends the stream after an error. The browser asks again if that can help.
    fn end_of(&mut self, error: &Error) -> Option<String> {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::ResourceExhausted => None,
            _ => self.end(error.message()),
        }
    }

    /// Ends the stream for good.
    fn end(&mut self, reason: &str) -> Option<String> {
        self.is_over = true;
        let part = EndPart { reason }.render().ok()?;
        Some(format!("{}\nevent: close\ndata: end\n\n", data_lines(&part)))
    }
}

/// A text as the data of an event: each line by itself.
fn data_lines(text: &str) -> String {
    text.lines().map(|line| format!("data: {line}\n")).collect()
}
