//! The share of each caller in streams and unread answers.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use polynym_proto::v1;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;

use super::{Callers, call, connect};
use crate::calls::{Client, handle, identity};
use crate::http2::raw::{END, HEADERS, Raw};
use crate::server::Server;
use crate::status::status_details;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
pub const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";
const BATCH: &str = "/polynym.v1.DirectoryService/BatchGetUsers";

/// A client on a new connection, with the token of a caller.
pub struct Connection {
    pub client: Client,
    pub token: Option<String>,
}

impl Connection {
    pub async fn new(server: &Server, token: Option<&str>) -> Self {
        Self { client: Client::over(connect(server).await), token: token.map(str::to_owned) }
    }

    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let header: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", header);
        }
        request
    }

    /// Opens an import whose caller sends no line.
    pub async fn import(&self) -> Result<Streaming<v1::ImportUsersResponse>, Status> {
        let options = v1::import_users_request::Options {
            tenant: "default".to_owned(),
            ..Default::default()
        };
        let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
        let lines = stream::iter([first]).chain(stream::pending());
        let request = self.request(lines);
        Ok(self.client.admin.clone().import_users(request).await?.into_inner())
    }

    pub async fn duplicates(&self) -> Result<Streaming<v1::FindDuplicatesResponse>, Status> {
        let request = self.request(v1::FindDuplicatesRequest {
            tenant: "default".to_owned(),
            ..Default::default()
        });
        Ok(self.client.admin.clone().find_duplicates(request).await?.into_inner())
    }

    pub async fn backup(&self) -> Result<Streaming<v1::BackupStoreResponse>, Status> {
        let request = self.request(v1::BackupStoreRequest::default());
        Ok(self.client.admin.clone().backup_store(request).await?.into_inner())
    }

    pub async fn export(&self) -> Result<Streaming<v1::ExportUsersResponse>, Status> {
        let request = v1::ExportUsersRequest { tenant: "default".to_owned(), ..Default::default() };
        let request = self.request(request);
        Ok(self.client.admin.clone().export_users(request).await?.into_inner())
    }

    async fn watch(&self) -> Result<Streaming<v1::WatchResponse>, Status> {
        let request = v1::WatchRequest { tenant: "default".to_owned(), ..Default::default() };
        let request = self.request(request);
        Ok(self.client.directory.clone().watch(request).await?.into_inner())
    }
}

fn reason<T>(outcome: Result<T, Status>) -> String {
    outcome.map_or_else(|status| status_details(status).reason, |_| "OK".to_owned())
}

/// Fills all streams of health: 129 connections with eight each.
#[tokio::test(flavor = "multi_thread")]
async fn streams_without_a_credential_leave_room_for_callers_and_each_other() {
    let callers = Callers::new();
    let token = callers.create("one", "admin", "*");
    let server = callers.serve(&[]);
    let mut strangers: Vec<_> = (0..129).map(|_| Raw::greeted(&server)).collect();
    let open = |raw: &mut Raw| {
        for n in 0..8 {
            raw.ask(2 * n + 1, HEALTH_WATCH, &HealthCheckRequest::default());
        }
    };
    let is_refused = |raw: &mut Raw| {
        let mut heads = std::iter::from_fn(|| raw.next()).filter(|frame| frame.kind == HEADERS);
        heads.by_ref().take(8).any(|head| head.flags & END == END)
    };
    let (oldest, others) = strangers.split_first_mut().unwrap();
    open(oldest);
    assert!(!is_refused(oldest));
    others.iter_mut().for_each(open);
    let refused = others.iter_mut().filter_map(|raw| is_refused(raw).then_some(()));
    assert_eq!(refused.count(), 0, "a new stream evicts the oldest");

    let own = Connection::new(&server, Some(&token)).await;
    let mut watch = own.watch().await.unwrap();
    watch.message().await.unwrap().unwrap();
    assert!(own.export().await.unwrap().message().await.unwrap().is_some());
    assert!(own.duplicates().await.unwrap().message().await.unwrap().is_some());
    own.import().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_half_of_the_streams_of_each_kind() {
    let callers = Callers::new();
    let tokens = ["one", "two"].map(|name| callers.create(name, "admin", "*"));
    let server = callers.serve(&[]);
    let mut connections = Vec::new();
    for token in [&tokens[0], &tokens[0], &tokens[0], &tokens[1]] {
        connections.push(Connection::new(&server, Some(token)).await);
    }
    let other = &connections[3];

    let (mut imports, mut outcomes) = (Vec::new(), Vec::new());
    for connection in &connections {
        let opened = connection.import().await;
        outcomes.push(opened.map(|import| imports.push(import)));
    }
    let reasons: Vec<_> = outcomes.into_iter().map(reason).collect();
    assert_eq!(reasons, ["OK", "OK", "RATE_LIMITED", "OK"]);

    let unread = connections[0].duplicates().await.unwrap();
    assert_eq!(reason(connections[1].duplicates().await), "RATE_LIMITED");
    let mut searched = other.duplicates().await.unwrap();
    while searched.message().await.unwrap().is_some() {}
    drop(unread);

    let copy = connections[0].backup().await.unwrap();
    assert_eq!(reason(connections[1].backup().await), "RATE_LIMITED");
    let (mut copied, mut bytes) = (other.backup().await.unwrap(), 0);
    while let Some(part) = copied.message().await.unwrap() {
        bytes += part.data.len();
        assert!(bytes as i64 <= part.total_bytes, "{bytes}");
    }
    drop(copy);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_imports_end_and_leave_room() {
    let callers = Callers::new();
    let token = callers.create("one", "admin", "*");
    let server = callers.serve(&["--call-timeout", "1s"]);
    let connection = Connection::new(&server, Some(&token)).await;
    let (since, mut imports) = (Instant::now(), Vec::new());
    // Three more than the share.
    while imports.len() < 5 {
        match connection.import().await {
            Ok(import) => imports.push(import),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        assert!(since.elapsed() < LONG, "an idle import does not end");
    }
}

/// All callers have one name: a connection has half.
#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_a_connection_has_half_of_the_imports() {
    let server = Server::start(&["--sample"]);
    let (one, two) = (Connection::new(&server, None).await, Connection::new(&server, None).await);
    let mut held = Vec::new();
    for connection in [&one, &one, &two, &two] {
        held.push(connection.import().await.unwrap());
    }
    assert_eq!(reason(one.import().await), "OVERLOADED");
    drop(held);
}

/// A cancelled copy ends, and leaves neither a file nor its space taken.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_backups_leave_no_files() {
    let server = Server::start(&["--sample"]);
    let mut begun = 0;
    for _ in 0..20 {
        let connection = Connection::new(&server, None).await;
        begun += usize::from(connection.backup().await.is_ok());
    }
    assert!(begun > 0, "no copy has begun");
    let deleted_files = || {
        let files = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
        let targets = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
        targets.filter(|target| target.to_string_lossy().ends_with("(deleted)")).count()
    };
    let since = Instant::now();
    while deleted_files() > 0 {
        assert!(since.elapsed() < LONG, "a file is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The last ones may not have returned their streams yet.
    let connection = Connection::new(&server, None).await;
    let mut copy = loop {
        match connection.backup().await {
            Ok(copy) => break copy,
            Err(status) => assert!(since.elapsed() < LONG, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(copy.message().await.unwrap().is_some());
}

/// Registers a user of about 48 KiB.
async fn create_large(server: &Server, token: &str) -> String {
    let text = v1::AttributeValue {
        kind: Some(v1::attribute_value::Kind::StringValue("x".repeat(4_000))),
    };
    let attributes: BTreeMap<_, _> = (0..12).map(|n| (format!("t{n}"), text.clone())).collect();
    let user =
        v1::User { identities: vec![identity(handle("large"))], attributes, ..Default::default() };
    let connection = Connection::new(server, Some(token)).await;
    let request = v1::CreateUserRequest {
        tenant: "default".to_owned(),
        user: Some(user),
        ..Default::default()
    };
    let mut registry = connection.client.registry.clone();
    let created = registry.create_user(connection.request(request)).await;
    created.unwrap().into_inner().user.unwrap().user_id
}

/// 24 connections of one caller do not read answers of 3 MB each.
#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_of_a_caller_use_up_its_own_share() {
    let callers = Callers::new();
    let [greedy, modest] = ["one", "two"].map(|name| callers.create(name, "registrar", "*"));
    let server = callers.serve(&[]);
    let user_id = create_large(&server, &modest).await;
    let request = v1::BatchGetUsersRequest {
        tenant: "default".to_owned(),
        user_ids: vec![user_id; 64],
        ..Default::default()
    };
    let header = format!("Bearer {greedy}");
    let mut unread: Vec<_> = (0..24).map(|_| Raw::with_window(&server, 0)).collect();
    for raw in &mut unread {
        raw.ask_with(1, BATCH, &[("authorization", &header)], &request);
    }
    for raw in &mut unread {
        // It has headers, and its data once the client has a window.
        raw.until(HEADERS).unwrap();
    }

    let channel = connect(&server).await;
    let header = format!("Bearer {modest}");
    for _ in 0..10 {
        let answer: v1::BatchGetUsersResponse =
            call(&channel, BATCH, Some(&header), request.clone()).await.unwrap();
        assert_eq!(answer.results.len(), 64);
    }
}

/// One megabyte for 1,000 recipients each: the rate is 16 MiB a second.
#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_of_notices_count_against_their_caller() {
    let callers = Callers::new();
    let tokens = ["one", "two"].map(|name| callers.create(name, "registrar", "*"));
    let server = callers.serve(&[]);
    let recipient = v1::recipient::Recipient::Identifier(handle("joe"));
    let recipient = v1::Recipient { recipient: Some(recipient) };
    let content = v1::NoticeContent {
        subject: "News".to_owned(),
        body: "x".repeat(16 << 10),
        ..Default::default()
    };
    let request = v1::SendNoticeRequest {
        tenant: "default".to_owned(),
        recipients: vec![recipient; 1_000],
        notice: Some(content),
        ..Default::default()
    };
    let [greedy, modest] =
        [&tokens[0], &tokens[1]].map(|token| Connection::new(&server, Some(token)));
    let (greedy, modest) = (greedy.await, modest.await);
    let send = async |connection: &Connection| {
        let mut inbox = connection.client.inbox.clone();
        reason(inbox.send_notice(connection.request(request.clone())).await)
    };
    // Sixteen seconds of the rate, at once.
    let sent = join_all((0..16).map(|_| send(&greedy))).await;
    assert!(sent.iter().any(|reason| reason == "RATE_LIMITED"), "{sent:?}");
    assert_eq!(send(&modest).await, "OK");
}
