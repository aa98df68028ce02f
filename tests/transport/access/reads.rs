//! The log of reads: whose records a call has shown, and to which caller.

use std::fs::{self, File};

use polynym_proto::v1;
use serde_json::Value;
use tonic::Request;
use tonic::metadata::MetadataValue;

use super::{Callers, connect};
use crate::calls::{Client, email, handle};
use crate::server::{Server, polynym};

const JOES_ID: &str = "5bcb4db0-05a3-b000-001e-019b8d627a80";

/// A request of a caller, with a reason.
fn of<M>(token: &str, message: M) -> Request<M> {
    let mut request = Request::new(message);
    let header = MetadataValue::try_from(format!("Bearer {token}")).unwrap();
    request.metadata_mut().insert("authorization", header);
    request.metadata_mut().insert("polynym-reason", "ticket%20joe@example.com".parse().unwrap());
    request
}

/// Looks users up in several ways. Returns the number of users that a search has found.
async fn read(server: &Server, token: &str) -> usize {
    let Client { mut directory, mut inbox, mut admin, .. } = Client::over(connect(server).await);
    let identifier = Some(handle("joe"));
    let resolve = v1::ResolveIdentityRequest { identifier, ..Default::default() };
    directory.resolve_identity(of(token, resolve.clone())).await.unwrap();
    let nobody =
        v1::ResolveIdentityRequest { identifier: Some(email("n@example.com")), ..resolve.clone() };
    directory.resolve_identity(of(token, nobody)).await.unwrap_err();
    let user_ids = vec![JOES_ID.to_owned(); 3];
    let batch = v1::BatchGetUsersRequest { user_ids, ..Default::default() };
    directory.batch_get_users(of(token, batch)).await.unwrap();
    let search = v1::SearchUsersRequest { page_size: 1_000, ..Default::default() };
    let found = directory.search_users(of(token, search)).await.unwrap().into_inner().users.len();
    let user_id = JOES_ID.to_owned();
    let user = Some(v1::list_history_request::User::UserId(user_id.clone()));
    let history = v1::ListHistoryRequest { user, ..Default::default() };
    directory.list_history(of(token, history)).await.unwrap();
    let notices = v1::ListNoticesRequest { user_id, ..Default::default() };
    inbox.list_notices(of(token, notices)).await.unwrap();
    let export = v1::ExportUsersRequest::default();
    let mut users = admin.export_users(of(token, export)).await.unwrap().into_inner();
    while users.message().await.unwrap().is_some() {}
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_are_logged_on_request_with_the_ids_of_users() {
    let callers = Callers::new();
    let token = callers.create("support", "admin", "*");
    let log = callers.folder.path().join("log");
    let serve = |flags: &[&str]| {
        let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.args(["--sample", "--log", "error", "--credentials"]).arg(callers.path());
        command.stderr(File::create(&log).unwrap());
        Server::start_with(&mut command, flags)
    };
    let server = serve(&[]);
    read(&server, &token).await;
    drop(server);
    assert_eq!(fs::read_to_string(&log).unwrap(), "", "it is off by default");

    let server = serve(&["--log-reads"]);
    let found = read(&server, &token).await;
    drop(server);
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<_> = lines.iter().map(|line| line["method"].as_str().unwrap()).collect();
    let read = ["ResolveIdentity", "BatchGetUsers", "SearchUsers", "ListHistory", "ListNotices"];
    assert_eq!(methods, [&read[..], &["ExportUsers"]].concat(), "{text}");
    for line in &lines {
        assert_eq!((&line["message"], &line["caller"]), (&"read".into(), &"support".into()));
        assert_eq!((&line["tenant"], &line["reason"]), (&"default".into(), &"ticket ***".into()));
    }
    for joe in [0, 1, 3, 4].map(|n| &lines[n]) {
        assert_eq!((&joe["users"], &joe["count"]), (&JOES_ID.into(), &1.into()), "{joe}");
    }
    let listed = lines[2]["users"].as_str().unwrap();
    assert!(found > 10 && listed.contains(JOES_ID), "{found}: {listed}");
    assert_eq!((listed.split(',').count(), &lines[2]["count"]), (found, &found.into()));
    assert_eq!((&lines[5]["users"], &lines[5]["count"]), (&"all".into(), &Value::Null));
    for secret in ["joe", "Joe", "example.com"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
