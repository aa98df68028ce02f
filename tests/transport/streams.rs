//! Streams that come to an end by themselves outlive the age of their connection, and have the time
//! of a stop to finish.

use std::time::{Duration, Instant};

use futures_util::{Stream, stream};
use polynym_proto::v1;
use tempfile::NamedTempFile;
use tokio::time::sleep;
use tonic::transport::Endpoint;
use tonic::{Code, Status, Streaming};
use v1::import_users_request::Options;
use v1::{ExportUsersResponse, ImportUsersRequest as Line};

use crate::calls::{Client, handle, identity, text};
use crate::http2::TIMEOUT;
use crate::http2::store::TestStore;
use crate::server::Server;
use crate::status::{StatusDetails, status_details};
use crate::test_store;

/// The users of an export: many times the windows of a client.
const USERS: usize = 60;
/// The time from one line or user to the next, with which these take three seconds.
const PACE: Duration = Duration::from_millis(50);

/// A server with limits, its store, and its log.
struct Limited {
    server: Server,
    log: NamedTempFile,
    _store: TestStore,
}

impl Limited {
    /// A server with [`USERS`].
    async fn with_users(limits: &[&str]) -> Self {
        let store = test_store();
        let (server, log) = store.serve_logged(limits);
        let limited = Self { server, log, _store: store };
        let imported = limited.import(Duration::ZERO).await.unwrap();
        assert_eq!(imported, USERS as i64);
        limited
    }

    /// A client that receives two users ahead.
    async fn client(&self) -> Client {
        let endpoint = Endpoint::from_shared(self.server.url.clone()).unwrap();
        let window = 65_535;
        let endpoint =
            endpoint.initial_stream_window_size(window).initial_connection_window_size(window);
        Client::over(endpoint.connect().await.unwrap())
    }

    /// Imports [`USERS`] at this pace on a connection of its own. Returns the number of lines.
    async fn import(&self, pace: Duration) -> Result<i64, Status> {
        let answers = self.client().await.admin.import_users(lines(pace)).await;
        imported(answers?.into_inner()).await
    }

    /// Begins to export them, each in a message, on a connection of its own.
    async fn export(&self) -> Streaming<ExportUsersResponse> {
        let request = v1::ExportUsersRequest { page_size: 1, ..Default::default() };
        self.client().await.admin.export_users(request).await.unwrap().into_inner()
    }

    /// Waits until the server has ended. Returns its log.
    fn ended(self) -> String {
        assert!(self.server.wait().success());
        std::fs::read_to_string(self.log.path()).unwrap()
    }
}

/// The messages of an import at this pace.
fn lines(pace: Duration) -> impl Stream<Item = Line> + Send + 'static {
    stream::unfold(0, move |n| async move {
        if n > 0 {
            sleep(pace).await;
        }
        let notes = "x".repeat(4_000);
        let user = v1::User {
            identities: vec![identity(handle(&format!("user{n}")))],
            attributes: (0..8).map(|note| (format!("note{note}"), text(&notes))).collect(),
            ..Default::default()
        };
        let line = match n {
            0 => Line { options: Some(Options::default()), ..Default::default() },
            _ => Line { line: n as i64, user: Some(user), ..Default::default() },
        };
        (n <= USERS).then_some((line, n + 1))
    })
}

/// Returns the number of lines of an import, or its error.
async fn imported(mut answers: Streaming<v1::ImportUsersResponse>) -> Result<i64, Status> {
    let mut lines = 0;
    while let Some(answer) = answers.message().await? {
        assert!(answer.rejects.is_empty(), "{:?}", answer.rejects);
        lines = answer.progress.unwrap().lines;
    }
    Ok(lines)
}

/// Returns the number of users of an export that is read at this pace, or its error.
async fn exported(
    mut parts: Streaming<ExportUsersResponse>,
    pace: Duration,
) -> Result<usize, Status> {
    let (mut users, mut has_end) = (0, false);
    while let Some(part) = parts.message().await? {
        users += part.users.len();
        has_end |= part.end.is_some();
        sleep(pace).await;
    }
    assert!(has_end);
    Ok(users)
}

fn stream_ended() -> StatusDetails {
    StatusDetails { retry: true, ..StatusDetails::new(Code::Unavailable, "STREAM_ENDED") }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_imports_outlive_the_age_of_their_connection_and_watches_do_not() {
    let server = Limited::with_users(&["--connection-age=1s", "--drain=200ms"]).await;
    let mut client = server.client().await;
    let watch = client.directory.watch(v1::WatchRequest::default()).await.unwrap();
    let ended = async {
        let mut watch = watch.into_inner();
        loop {
            if let Err(ended) = watch.message().await {
                return ended;
            }
        }
    };
    let (export, import) = (server.export().await, server.import(PACE));
    let (ended, users, lines) = tokio::join!(ended, exported(export, PACE), import);
    assert_eq!((users.unwrap(), lines.unwrap()), (USERS, USERS as i64));
    assert_eq!(status_details(ended), stream_ended());
    client.resolve(handle("user1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_imports_finish_while_their_server_stops() {
    let server = Limited::with_users(&["--drain=600s"]).await;
    let since = Instant::now();
    let (export, import) = (server.export().await, server.import(PACE));
    let stop = async {
        sleep(10 * PACE).await;
        server.server.signal("TERM");
    };
    let (users, lines, ()) = tokio::join!(exported(export, PACE), import, stop);
    assert_eq!((users.unwrap(), lines.unwrap()), (USERS, USERS as i64));
    let log = server.ended();
    assert!(!log.contains("in time") && since.elapsed() < TIMEOUT, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_imports_that_outlast_a_stop_end_with_a_status() {
    let server = Limited::with_users(&["--drain=6s"]).await;
    let since = Instant::now();
    let (export, import) = (server.export().await, server.import(5 * PACE));
    let stop = async {
        sleep(PACE).await;
        server.server.signal("TERM");
    };
    // Both take longer than six seconds.
    let (users, lines, ()) = tokio::join!(exported(export, 3 * PACE), import, stop);
    assert_eq!(status_details(users.unwrap_err()), stream_ended());
    assert_eq!(status_details(lines.unwrap_err()), stream_ended());
    let log = server.ended();
    assert!(log.contains("calls did not finish in time"), "{log}");
    assert!(since.elapsed() < TIMEOUT, "{:?}", since.elapsed());
}
