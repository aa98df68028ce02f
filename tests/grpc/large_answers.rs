//! Answers that stock clients, which accept messages of at most 4 MiB, can read.

use std::collections::BTreeSet;

use polynym_proto::v1;

use super::{fresh, fresh_with, grow, user};
use crate::support::calls::{Client, handle, text};
use crate::support::scenarios::histories::{events, of, page};
use crate::support::scenarios::tenant_history;

/// Creates a user of about 490 KiB.
async fn create_large(client: &mut Client, name: &str) -> v1::User {
    let mut large = client.create(user(name, vec![handle(name)])).await.unwrap();
    for part in 0..10 {
        large = grow(client, large, &format!("part{part}_")).await.unwrap();
    }
    large
}

#[tokio::test]
async fn pages_of_large_users_are_readable() {
    let (_server, mut client) = fresh().await;
    let mut all = BTreeSet::new();
    for n in 0..10 {
        all.insert(create_large(&mut client, &format!("joe{n}")).await.user_id);
    }
    let (mut found, mut pages) = (BTreeSet::new(), 0);
    let mut request = v1::SearchUsersRequest { page_size: 1_000, ..Default::default() };
    loop {
        let page = client.directory.search_users(request.clone()).await.unwrap().into_inner();
        pages += 1;
        let new: Vec<_> = page.users.into_iter().map(|user| user.user_id).collect();
        assert!(!new.is_empty() && new.iter().all(|id| found.insert(id.clone())), "{new:?}");
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!((found, pages), (all, 2));
}

#[tokio::test]
async fn histories_of_large_changes_are_readable() {
    let (_server, mut client) = fresh().await;
    let mut joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    // An event records whole values of up to a KiB, before and after the change.
    let names: Vec<_> = (0..40).map(|n| format!("note{n}")).collect();
    let fields: Vec<_> = names.iter().map(|name| format!("attributes.{name}")).collect();
    let paths: Vec<_> = fields.iter().map(String::as_str).collect();
    for n in 0..70 {
        let value = format!("{n:03}{}", "x".repeat(1_000));
        joe.attributes = names.iter().map(|name| (name.clone(), text(&value))).collect();
        joe = client.update(joe, &paths).await.unwrap();
    }
    let request = v1::ListHistoryRequest { page_size: 1_000, ..of(&joe.user_id) };
    let first = page(&mut client, &request).await.unwrap();
    assert!(first.events.len() > 5 && !first.next_page_token.is_empty(), "{}", first.events.len());
    let all: Vec<_> =
        events(&mut client, request).await.iter().map(|event| event.sequence).collect();
    assert_eq!(all, (1..=71).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn rejects_of_an_import_are_readable() {
    const IDENTITIES: usize = 200;
    const LINES: i64 = 256;
    let (_server, mut client) = fresh_with(&["--max-identities", "200"]).await;
    let identities = || (0..IDENTITIES).map(|n| handle(&format!("joe{n}"))).collect::<Vec<_>>();
    client.create(user("Joe", identities())).await.unwrap();
    let options = v1::import_users_request::Options {
        on_conflict: v1::OnConflict::SkipIdentity.into(),
        ..Default::default()
    };
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let lines = (1..=LINES).map(|line| v1::ImportUsersRequest {
        line,
        user: Some(user(&format!("Other {line}"), identities())),
        ..Default::default()
    });
    let requests: Vec<_> = [first].into_iter().chain(lines).collect();
    let outcome = client.admin.import_users(tokio_stream::iter(requests)).await;
    let mut responses = outcome.unwrap().into_inner();
    let mut rejects = 0;
    while let Some(response) = responses.message().await.unwrap() {
        let answered = response.progress.unwrap().line;
        assert!(response.rejects.iter().all(|reject| reject.line <= answered));
        rejects += response.rejects.len();
    }
    assert_eq!(rejects, LINES as usize * IDENTITIES);
}

#[tokio::test]
async fn large_tenants_and_their_histories_are_readable() {
    const TENANTS: usize = 90;
    let (_server, mut client) = fresh().await;
    let reserve = |tenant: &str, word: &str| {
        let handles = (0..1_000).map(|n| format!("{word}{n:04}{}", "x".repeat(45))).collect();
        v1::UpdateTenantRequest {
            tenant: tenant.to_owned(),
            policies: Some(v1::Policies {
                reserved_handles: Some(v1::ReservedHandles { handles }),
                ..Default::default()
            }),
            ..Default::default()
        }
    };
    for n in 0..TENANTS {
        let tenant = format!("tenant{n:02}");
        client.admin.update_tenant(reserve(&tenant, "first")).await.unwrap();
        client.admin.update_tenant(reserve("changed", &format!("word{n}"))).await.unwrap();
    }
    let mut request = v1::ListTenantsRequest { page_size: 1_000, ..Default::default() };
    let mut names = Vec::new();
    loop {
        let page = client.admin.list_tenants(request.clone()).await.unwrap().into_inner();
        names.extend(page.tenants.into_iter().map(|tenant| tenant.tenant));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let tenants = (0..TENANTS).map(|n| format!("tenant{n:02}"));
    let expected: Vec<_> = ["changed".to_owned()].into_iter().chain(tenants).collect();
    assert_eq!(names, expected);

    let request = v1::ListTenantHistoryRequest {
        tenant: "changed".to_owned(),
        ..tenant_history::pages_of(1_000)
    };
    assert_eq!(tenant_history::events(&mut client, request).await.len(), TENANTS);
}
