//! Watch: a stream of events. A page is read once the caller has received the previous one, so that
//! a caller who stops reading costs the server at most one page.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use metrics::{Gauge, counter, gauge};
use prost_types::Timestamp;
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::status::status;
use polynym_directory::{Watch, encoded::event::event_message};
use polynym_proto::v1::watch_response::Kind;
use polynym_proto::v1::{Event, Heartbeat, WatchResponse};
use polynym_transport::rich_status::plain;

/// The gauge of watches.
pub const WATCHES: (&str, &str) = ("polynym_watches", "Open watches");
/// The counter of events.
pub const EVENTS: (&str, &str) = ("polynym_watch_events_total", "Events sent to watches");

/// The maximum duration of a watch, after which its client authenticates again.
const MAX_DURATION: Duration = Duration::from_secs(60 * 60);

pub type Responses = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

/// Registers the metrics before the first watch.
pub fn show_metrics() {
    gauge!(WATCHES.0).set(0.0);
    counter!(EVENTS.0).absolute(0);
}

/// The responses of a watch, until the server stops.
pub fn responses(watch: Watch, mut stopping: watch::Receiver<bool>) -> Responses {
    let first = heartbeat(watch.resume_token());
    let open = OpenWatch::new();
    let pages = stream::try_unfold((watch, open), async |(mut watch, open)| {
        let page = watch.next().await.map_err(status)?;
        let mut responses: Vec<_> = page
            .events
            .into_iter()
            .map(|(event, token)| event_response(event_message(&event), token))
            .collect();
        counter!(EVENTS.0).increment(responses.len() as u64);
        if responses.is_empty() {
            responses.push(heartbeat(page.resume_token));
        }
        Ok::<_, Status>(Some((stream::iter(responses.into_iter().map(Ok)), (watch, open))))
    });
    let end = async move {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = sleep(MAX_DURATION) => {}
        }
    };
    let responses = stream::iter([Ok(first)]).chain(pages.try_flatten());
    Box::pin(responses.take_until(end).chain(stream::iter([Err(ended())])))
}

fn event_response(event: Event, resume_token: String) -> WatchResponse {
    WatchResponse { kind: Some(Kind::Event(event)), resume_token }
}

fn heartbeat(resume_token: String) -> WatchResponse {
    let time = Some(Timestamp::from(std::time::SystemTime::now()));
    WatchResponse { kind: Some(Kind::Heartbeat(Heartbeat { time })), resume_token }
}

fn ended() -> Status {
    let message = "the watch has ended: continue from the last resume_token";
    plain(Code::Unavailable, "WATCH_ENDED", message)
}

/// Counts a watch while it is open.
struct OpenWatch(Gauge);

impl OpenWatch {
    fn new() -> Self {
        let open = gauge!(WATCHES.0);
        open.increment(1.0);
        Self(open)
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
