//! The history of a tenant itself.

use std::time::{Duration, SystemTime};

use polynym::proto::v1;
use polynym::proto::v1::tenant_event::Change;
use tonic::{Code, Status};

use super::{fresh, user};
use crate::support::calls::{Client, handle};
use crate::support::status::{StatusDetails, status_details};

async fn page(
    client: &mut Client,
    request: v1::ListTenantHistoryRequest,
) -> Result<v1::ListTenantHistoryResponse, Status> {
    Ok(client.admin.list_tenant_history(request).await?.into_inner())
}

fn pages_of(page_size: i32) -> v1::ListTenantHistoryRequest {
    v1::ListTenantHistoryRequest { page_size, ..Default::default() }
}

/// The events on all pages.
async fn events(
    client: &mut Client,
    mut request: v1::ListTenantHistoryRequest,
) -> Vec<v1::TenantEvent> {
    let mut events = Vec::new();
    loop {
        let page = page(client, request.clone()).await.unwrap();
        assert!(page.events.len() <= request.page_size as usize);
        events.extend(page.events);
        if page.next_page_token.is_empty() {
            return events;
        }
        request.page_token = page.next_page_token;
    }
}

async fn set_retention(client: &mut Client, seconds: i64) -> v1::Policies {
    let history_retention = Some(prost_types::Duration { seconds, nanos: 0 });
    let policies = v1::Policies { history_retention, ..Default::default() };
    client.govern(policies).await.unwrap().policies.unwrap()
}

/// Checks the events of a tenant: its creation, a change of its policies, and purged users.
pub async fn a_tenant_tells_what_happened_to_it(client: &mut Client) {
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let joseph = client.create(user("Joseph", vec![handle("joseph")])).await.unwrap();
    let before = client.govern(v1::Policies::default()).await.unwrap().policies.unwrap();
    let after = set_retention(client, 7 * 86_400).await;
    // The same policies again are no change.
    assert_eq!(set_retention(client, 7 * 86_400).await, after);
    client.merge(&joe.user_id, &joseph.user_id).await.unwrap();
    client.purge(&joe.user_id).await.unwrap();

    let all = events(client, pages_of(2)).await;
    let methods: Vec<_> = all.iter().map(|event| event.method.as_str()).collect();
    assert_eq!(methods, ["PurgeUser", "PurgeUser", "UpdateTenant", "job"]);
    let mut ids: Vec<_> = all.iter().map(|event| event.event_id.clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), all.len());
    let callers: Vec<_> = all.iter().map(|event| event.caller.as_str()).collect();
    // The server creates the default tenant by itself.
    assert_eq!(callers, ["anonymous", "anonymous", "anonymous", "polynym"]);
    assert!(all.iter().all(|event| event.tenant == "default"));

    let [second, first, changed, created] = &all[..] else { panic!("{all:#?}") };
    let purged = |event: &v1::TenantEvent| match event.change.clone().unwrap() {
        Change::UserPurged(purge) => purge.user_id,
        other => panic!("{other:?}"),
    };
    let mut gone = [purged(first), purged(second)];
    gone.sort();
    let mut users = [joe.user_id, joseph.user_id];
    users.sort();
    assert_eq!(gone, users);
    assert_eq!(
        changed.change,
        Some(Change::PoliciesChanged(v1::PoliciesChange {
            paths: vec!["history_retention".to_owned()],
            before: Some(before.clone()),
            after: Some(after),
        }))
    );
    assert_eq!(created.change, Some(Change::Created(before)));

    let from = changed.time;
    let since = v1::ListTenantHistoryRequest { from, ..pages_of(50) };
    assert_eq!(events(client, since).await, all[..3]);
    let until = v1::ListTenantHistoryRequest { to: from, ..pages_of(50) };
    assert_eq!(events(client, until).await, all[3..]);
}

#[tokio::test]
async fn an_embedded_store_has_the_history_of_a_tenant() {
    let (_server, mut client) = fresh().await;
    a_tenant_tells_what_happened_to_it(&mut client).await;
}

#[tokio::test]
async fn a_deletion_is_in_the_history_of_the_next_tenant_of_that_name() {
    let (_server, mut client) = fresh().await;
    let tenant = || "acme".to_owned();
    let create = v1::UpdateTenantRequest { tenant: tenant(), ..Default::default() };
    client.admin.update_tenant(create.clone()).await.unwrap();
    let delete = v1::DeleteTenantRequest { tenant: tenant(), ..Default::default() };
    client.admin.delete_tenant(delete).await.unwrap();
    let request = v1::ListTenantHistoryRequest { tenant: tenant(), ..pages_of(50) };
    let is_begun = |event: &v1::TenantEvent| matches!(event.change, Some(Change::DeletionBegun(_)));
    let all = events(&mut client, request.clone()).await;
    assert!(is_begun(&all[0]), "{all:#?}");

    let missing = StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND");
    let start = SystemTime::now();
    while let Ok(page) = page(&mut client, request.clone()).await {
        assert!(start.elapsed().unwrap() < Duration::from_secs(120), "{page:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(status_details(page(&mut client, request.clone()).await.unwrap_err()), missing);

    client.admin.update_tenant(create).await.unwrap();
    let all = events(&mut client, request).await;
    let [created, deleted, begun, first] = &all[..] else { panic!("{all:#?}") };
    assert!(matches!(created.change, Some(Change::Created(_))));
    assert!(matches!(deleted.change, Some(Change::Deleted(_))));
    assert_eq!((&*deleted.caller, is_begun(begun)), ("polynym", true));
    assert!(matches!(first.change, Some(Change::Created(_))));
}

#[tokio::test]
async fn a_tenant_without_history_has_no_events() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set_retention(&mut client, 0).await;
    client.purge(&joe.user_id).await.unwrap();
    assert_eq!(events(&mut client, pages_of(50)).await, []);
    set_retention(&mut client, 86_400).await;
    let all = events(&mut client, pages_of(50)).await;
    let names: Vec<_> = all.iter().map(|event| event.method.as_str()).collect();
    // What happened while there was no history is not in it.
    assert_eq!(names, ["UpdateTenant", "job"]);
}

#[tokio::test]
async fn page_tokens_of_other_requests_are_refused() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set_retention(&mut client, 86_400).await;
    let token = page(&mut client, pages_of(1)).await.unwrap().next_page_token;
    let invalid = StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    let invalid = invalid.field("page_token");
    let from = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
    let page_token = || token.clone();
    let cases = [
        v1::ListTenantHistoryRequest { page_token: "joe".to_owned(), ..pages_of(1) },
        v1::ListTenantHistoryRequest { page_token: page_token(), from, ..pages_of(1) },
        v1::ListTenantHistoryRequest { page_token: page_token(), to: from, ..pages_of(1) },
    ];
    for request in cases {
        let refused = page(&mut client, request).await.unwrap_err();
        assert_eq!(status_details(refused), invalid);
    }
}
