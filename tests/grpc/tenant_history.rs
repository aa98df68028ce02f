//! The history of a tenant itself.

use std::time::{Duration, SystemTime};

use polynym_proto::v1;
use polynym_proto::v1::tenant_event::Change;
use tonic::Code;

use super::{fresh, fresh_with_clock, user};
use crate::support::calls::handle;
use crate::support::scenarios::clocks::skip_quiet_time;
use crate::support::scenarios::tenant_history::{
    events, page, pages_of, set_retention, tenant_changes_are_events,
};
use crate::support::status::{StatusDetails, status_details};

#[tokio::test]
async fn an_embedded_store_has_the_history_of_a_tenant() {
    let (_server, mut client) = fresh().await;
    tenant_changes_are_events(&mut client).await;
}

#[tokio::test]
async fn a_deletion_is_in_the_history_of_a_recreated_tenant() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
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
        skip_quiet_time(&clock);
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
    // Events from before the history are not in it.
    assert_eq!(names, ["UpdateTenant", "job"]);
}

#[tokio::test]
async fn page_tokens_of_other_requests_are_refused() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    set_retention(&mut client, 86_400).await;
    let token = page(&mut client, pages_of(1)).await.unwrap().next_page_token;
    let invalid =
        StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID").field("page_token");
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
