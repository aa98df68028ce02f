//! The reason of a call and the id of its operation: headers that the history keeps.

use polynym_proto::v1;
use tonic::{Code, Request};

use super::{fresh, user};
use crate::support::calls::{Client, handle};
use crate::support::scenarios::histories::{events, of};
use crate::support::scenarios::tenant_history::{events as tenant_events, pages_of};
use crate::support::status::{StatusDetails, status_details};

/// The id of an operation with a time in the far future, as far as UUIDs have one.
const FUTURE: &str = "import-fffffffe-0000-7000-8000-000000000000";

/// A request with these headers.
fn with<M>(message: M, headers: &[(&'static str, &str)]) -> Request<M> {
    let mut request = Request::new(message);
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    request
}

async fn purposes(client: &mut Client, user_id: &str) -> Vec<(String, String)> {
    let events = events(client, of(user_id)).await;
    events.into_iter().map(|event| (event.reason, event.operation_id)).collect()
}

fn own(reason: &str, operation_id: &str) -> (String, String) {
    (reason.to_owned(), operation_id.to_owned())
}

#[tokio::test]
async fn the_history_keeps_the_reason_and_the_operation() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let request = v1::DisableUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
    let headers =
        [("polynym-reason", "50%25 gr%C3%B6%C3%9Fer: left"), ("polynym-operation-id", "crm.7:b-1")];
    client.registry.disable_user(with(request, &headers)).await.unwrap();
    let expected = [own("50% größer: left", "crm.7:b-1"), own("", "")];
    assert_eq!(purposes(&mut client, &joe.user_id).await, expected);

    let request = v1::UpdateTenantRequest { tenant: "acme".to_owned(), ..Default::default() };
    client.admin.update_tenant(with(request, &headers)).await.unwrap();
    let request = v1::ListTenantHistoryRequest { tenant: "acme".to_owned(), ..pages_of(50) };
    let all = tenant_events(&mut client, request).await;
    assert_eq!((&*all[0].reason, &*all[0].operation_id), ("50% größer: left", "crm.7:b-1"));
}

#[tokio::test]
async fn imported_users_have_the_operation_of_their_import() {
    let (_server, mut client) = fresh().await;
    let options = v1::import_users_request::Options::default();
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let line = |line, name: &str| v1::ImportUsersRequest {
        line,
        user: Some(user("", vec![handle(name)])),
        ..Default::default()
    };
    let lines = tokio_stream::iter([first, line(1, "ann"), line(2, "bob")]);
    let headers = [("polynym-reason", "spring"), ("polynym-operation-id", "import-1")];
    let answer = client.admin.import_users(with(lines, &headers)).await.unwrap();
    let mut answers = answer.into_inner();
    while answers.message().await.unwrap().is_some() {}
    for name in ["ann", "bob"] {
        let found = client.resolve(handle(name)).await.unwrap().user.unwrap();
        let expected = [own("spring", "import-1")];
        assert_eq!(purposes(&mut client, &found.user_id).await, expected);
    }
}

#[tokio::test]
async fn texts_that_break_the_rules_are_refused_before_anything_changes() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let long = "x".repeat(257);
    let long_id = "x".repeat(65);
    for (name, value) in [
        ("polynym-reason", &*long),
        ("polynym-reason", "two%0Alines"),
        ("polynym-reason", "%FF"),
        ("polynym-reason", "%20"),
        ("polynym-operation-id", &long_id),
        ("polynym-operation-id", "joe@example.com"),
        ("polynym-operation-id", FUTURE),
    ] {
        let request = v1::DisableUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
        let refused = client.registry.disable_user(with(request, &[(name, value)])).await;
        let expected = StatusDetails {
            fields: vec![name.to_owned()],
            ..StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID")
        };
        assert_eq!(status_details(refused.unwrap_err()), expected, "{name}: {value}");
    }
    assert_eq!(client.get(&joe.user_id).await.unwrap(), joe);
}

#[tokio::test]
async fn an_import_whose_id_has_a_later_time_is_refused_as_a_whole() {
    let (_server, mut client) = fresh().await;
    let options = Some(v1::import_users_request::Options::default());
    let first = v1::ImportUsersRequest { options, ..Default::default() };
    let ann = user("", vec![handle("ann")]);
    let line = v1::ImportUsersRequest { line: 1, user: Some(ann), ..Default::default() };
    let request = with(tokio_stream::iter([first, line]), &[("polynym-operation-id", FUTURE)]);
    let mut answers = client.admin.import_users(request).await.unwrap().into_inner();
    let refused = status_details(answers.message().await.unwrap_err());
    assert_eq!(refused.fields, ["polynym-operation-id"]);
    assert!(client.resolve(handle("ann")).await.is_err());
}
