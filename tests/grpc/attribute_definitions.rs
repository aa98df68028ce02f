//! Definitions of attributes over gRPC.

use std::time::Duration;

use polynym_directory::Clock;
use polynym_proto::v1;
use prost_types::FieldMask;
use tonic::Code;

use super::{fresh, fresh_with_clock, user};
use crate::support::calls::{Client, handle};
use crate::support::scenarios::clocks::skip_quiet_time;
use crate::support::status::status_details;

fn undefined(name: &str) -> v1::AttributeDefinition {
    v1::AttributeDefinition { name: name.to_owned(), ..Default::default() }
}

fn unindexed(name: &str) -> v1::AttributeDefinition {
    v1::AttributeDefinition { indexed: Some(false), ..undefined(name) }
}

fn policies(definitions: Vec<v1::AttributeDefinition>) -> v1::Policies {
    v1::Policies { attribute_definitions: definitions, ..Default::default() }
}

async fn definitions(client: &mut Client) -> Vec<v1::AttributeDefinition> {
    let tenant = client.admin.get_tenant(v1::GetTenantRequest::default()).await.unwrap();
    tenant.into_inner().tenant.unwrap().policies.unwrap().attribute_definitions
}

async fn with_bio(client: &mut Client, name: &str) {
    let mut joe = user(name, vec![handle(name)]);
    let text = v1::attribute_value::Kind::StringValue("x".to_owned());
    joe.attributes.insert("bio".to_owned(), v1::AttributeValue { kind: Some(text) });
    client.create(joe).await.unwrap();
}

fn by_bio() -> v1::SearchUsersRequest {
    let filter = "attributes.bio = x".to_owned();
    v1::SearchUsersRequest { filter, explain: true, ..Default::default() }
}

/// The lead of a search by bio, and the number of users that it finds, once the index is there.
async fn search(client: &mut Client, clock: &Clock) -> (String, usize) {
    for _ in 0..600 {
        skip_quiet_time(clock);
        match client.directory.search_users(by_bio()).await {
            Ok(answer) => {
                let page = answer.into_inner();
                return (page.plan.unwrap().lead, page.users.len());
            }
            Err(status) => {
                assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
                assert_eq!(status_details(status).reason, "INDEX_BUILDING");
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the index is not changed within a minute");
}

#[tokio::test]
async fn an_attribute_leaves_and_reenters_the_index() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    with_bio(&mut client, "ann").await;
    client.govern(policies(vec![unindexed("bio")])).await.unwrap();
    assert!(definitions(&mut client).await[0].index_change_time.is_some());
    with_bio(&mut client, "ben").await;
    assert_eq!(search(&mut client, &clock).await, ("all users".to_owned(), 2));
    assert_eq!(definitions(&mut client).await, [unindexed("bio")]);
    let ordered =
        v1::SearchUsersRequest { order_by: "attributes.bio".to_owned(), ..Default::default() };
    let refused = client.directory.search_users(ordered).await.unwrap_err();
    assert_eq!(status_details(refused).fields, ["order_by"]);

    client.govern(policies(vec![undefined("bio")])).await.unwrap();
    with_bio(&mut client, "carl").await;
    assert_eq!(search(&mut client, &clock).await, ("attributes.bio = \"x\"".to_owned(), 3));
    assert_eq!(definitions(&mut client).await, []);
}

#[tokio::test]
async fn definitions_are_set_by_name_or_all_at_once() {
    let (_server, mut client) = fresh().await;
    let typed = v1::AttributeDefinition { indexed: Some(true), r#type: 2, ..undefined("level") };
    client.govern(policies(vec![typed.clone()])).await.unwrap();
    client.govern(policies(vec![unindexed("bio")])).await.unwrap();
    let names = |all: Vec<v1::AttributeDefinition>| {
        all.into_iter().map(|definition| definition.name).collect::<Vec<_>>()
    };
    assert_eq!(names(definitions(&mut client).await), ["bio", "level"]);
    let request = v1::UpdateTenantRequest {
        policies: Some(policies(vec![typed.clone()])),
        update_mask: Some(FieldMask { paths: vec!["attribute_definitions".to_owned()] }),
        ..Default::default()
    };
    client.admin.update_tenant(request).await.unwrap();
    let left = definitions(&mut client).await;
    assert!(left[0].index_change_time.is_some(), "bio comes back to the index");
    assert_eq!(left[1], typed);

    let mut joe = user("Joe", vec![handle("joe")]);
    let text = v1::attribute_value::Kind::StringValue("3".to_owned());
    joe.attributes.insert("level".to_owned(), v1::AttributeValue { kind: Some(text) });
    let refused = status_details(client.create(joe).await.unwrap_err());
    assert_eq!(refused.fields, ["user.attributes.level"]);

    let twice = policies(vec![undefined("a"), undefined("a")]);
    let unknown = policies(vec![v1::AttributeDefinition { r#type: 99, ..undefined("a") }]);
    let many = policies((0..201).map(|n| unindexed(&format!("a{n}"))).collect());
    for wrong in [twice, unknown, many, policies(vec![undefined("")])] {
        let refused = status_details(client.govern(wrong).await.unwrap_err());
        assert_eq!(refused.fields, ["policies.attribute_definitions"]);
    }
}

#[tokio::test]
async fn a_request_with_other_evidence_is_another_one() {
    let (_server, mut client) = fresh().await;
    let request = |evidence| v1::UpdateTenantRequest {
        policies: Some(policies(vec![v1::AttributeDefinition { evidence, ..undefined("born") }])),
        request_id: "00000000-0000-4000-8000-000000000001".to_owned(),
        update_mask: Some(FieldMask { paths: vec!["attribute_definitions".to_owned()] }),
        ..Default::default()
    };
    client.admin.update_tenant(request(false)).await.unwrap();
    client.admin.update_tenant(request(false)).await.unwrap();
    let refused = client.admin.update_tenant(request(true)).await.unwrap_err();
    assert_eq!(status_details(refused).reason, "REQUEST_ID_REUSED");
}
