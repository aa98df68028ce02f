//! The history of a tenant itself.

use polynym_proto::v1;
use polynym_proto::v1::tenant_event::Change;
use tonic::Status;

use crate::calls::{Client, handle, user};

/// One page of a history.
pub async fn page(
    client: &mut Client,
    request: v1::ListTenantHistoryRequest,
) -> Result<v1::ListTenantHistoryResponse, Status> {
    Ok(client.admin.list_tenant_history(request).await?.into_inner())
}

/// A request for pages of this size.
pub fn pages_of(page_size: i32) -> v1::ListTenantHistoryRequest {
    v1::ListTenantHistoryRequest { page_size, ..Default::default() }
}

/// The events on all pages.
pub async fn events(
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

/// Sets the history retention of the default tenant. Returns its policies.
pub async fn set_retention(client: &mut Client, seconds: i64) -> v1::Policies {
    let history_retention = Some(prost_types::Duration { seconds, nanos: 0 });
    let policies = v1::Policies { history_retention, ..Default::default() };
    client.govern(policies).await.unwrap().policies.unwrap()
}

/// Checks the events of a tenant: its creation, a change of its policies, and purged users.
pub async fn tenant_changes_are_events(client: &mut Client) {
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let joseph = client.create(user("Joseph", vec![handle("joseph")])).await.unwrap();
    let before = client.govern(v1::Policies::default()).await.unwrap().policies.unwrap();
    let after = set_retention(client, 7 * 86_400).await;
    // Equal policies are no change.
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
    // The server creates the default tenant.
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
