//! Merges of two users and their undo, as answered over gRPC.

use std::time::Duration;

use polynym_proto::v1;
use tonic::{Code, Status};

use super::{Fresh, fresh, user};
use crate::support::calls::{Client, email, handle, merging};
use crate::support::status::{StatusDetails, status_details};

fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> StatusDetails {
    status_details(outcome.unwrap_err())
}

/// Returns two users with an email each; the second also has a handle.
async fn two_users() -> (Fresh, Client, v1::User, v1::User) {
    let (server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![email("joe@example.com")])).await.unwrap();
    let draft = user("Joseph", vec![email("joseph@example.com"), handle("joseph")]);
    let joseph = client.create(draft).await.unwrap();
    (server, client, joe, joseph)
}

#[tokio::test]
async fn identifiers_and_id_of_a_merged_user_resolve_to_the_primary() {
    let (_server, mut client, joe, joseph) = two_users().await;
    let preview =
        v1::MergeUsersRequest { validate_only: true, ..merging(&joe.user_id, &joseph.user_id) };
    let answer = client.registry.merge_users(preview).await.unwrap().into_inner();
    assert_eq!(answer.user, Some(joe.clone()));

    let preview = answer.preview.unwrap();
    let fields: Vec<_> = preview.conflicts.iter().map(|conflict| conflict.field.as_str()).collect();
    assert_eq!((preview.moved.len(), fields), (2, vec!["display_name", "primary.email"]));
    assert_eq!(client.get(&joseph.user_id).await.unwrap(), joseph);

    let merged = client.merge(&joe.user_id, &joseph.user_id).await.unwrap();
    let without_times =
        |user: &v1::User| v1::User { update_time: None, etag: String::new(), ..user.clone() };
    assert_eq!(without_times(&merged), without_times(&preview.result.unwrap()));

    for name in [email("joe@example.com"), email("joseph@example.com"), handle("joseph")] {
        assert_eq!(client.resolve(name).await.unwrap().user.as_ref(), Some(&merged));
    }

    let request = v1::GetUserRequest { user_id: joseph.user_id.clone(), ..Default::default() };
    let got = client.directory.get_user(request).await.unwrap().into_inner();
    assert_eq!((got.user, got.merged_from), (Some(merged), joseph.user_id.clone()));
    let changed = refused(client.disable(&joseph.user_id).await);
    let expected = StatusDetails::new(Code::FailedPrecondition, "USER_MERGED")
        .with("user_id", &joseph.user_id);
    assert_eq!(changed, expected.with("merged_into", &joe.user_id));
}

#[tokio::test]
async fn invalid_merges_are_refused_and_change_nothing() {
    let (_server, mut client, joe, joseph) = two_users().await;
    let itself = refused(client.merge(&joe.user_id, &joe.user_id).await);
    assert_eq!(
        itself,
        StatusDetails::new(Code::InvalidArgument, "USER_ID_INVALID").field("secondary_user_id")
    );

    let policy = v1::ConflictPolicy::Fail.into();
    let request =
        v1::MergeUsersRequest { conflict_policy: policy, ..merging(&joe.user_id, &joseph.user_id) };
    let conflict = StatusDetails::new(Code::FailedPrecondition, "MERGE_CONFLICT");
    let status = refused(client.registry.merge_users(request).await);
    assert_eq!(status, conflict.with("fields", "display_name,primary.email"));

    let request =
        v1::MergeUsersRequest { conflict_policy: 9, ..merging(&joe.user_id, &joseph.user_id) };
    assert_eq!(refused(client.registry.merge_users(request).await).fields, ["conflict_policy"]);
    let request = v1::MergeUsersRequest {
        tenant: "other".to_owned(),
        ..merging(&joe.user_id, &joseph.user_id)
    };
    let missing = StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND");
    assert_eq!(refused(client.registry.merge_users(request).await), missing);

    let request = v1::MergeUsersRequest {
        etag: joseph.etag.clone(),
        ..merging(&joe.user_id, &joseph.user_id)
    };
    assert_eq!(
        refused(client.registry.merge_users(request).await),
        StatusDetails::new(Code::Aborted, "ETAG_MISMATCH")
    );

    let not_merged = StatusDetails::new(Code::FailedPrecondition, "NOT_MERGED");
    assert_eq!(refused(client.unmerge(&joe.user_id, &joseph.user_id).await), not_merged);
    assert_eq!(client.get(&joe.user_id).await.unwrap(), joe);
    assert_eq!(client.get(&joseph.user_id).await.unwrap(), joseph);

    let deleted = client.delete(&joseph.user_id).await.unwrap();
    let status = refused(client.merge(&joe.user_id, &joseph.user_id).await);
    assert_eq!(
        status,
        StatusDetails::new(Code::FailedPrecondition, "USER_DELETED")
            .with("user_id", &joseph.user_id)
    );
    assert_eq!(client.get(&joseph.user_id).await.unwrap(), deleted);
}

/// gRPC libraries accept 8 KiB of headers by default: a longer status would arrive as another
/// error.
#[tokio::test]
async fn a_conflict_in_many_fields_fits_into_a_status() {
    let (_server, mut client, joe, joseph) = two_users().await;
    for (mut user, text) in [(joe.clone(), "here"), (joseph.clone(), "there")] {
        let value = v1::AttributeValue {
            kind: Some(v1::attribute_value::Kind::StringValue(text.to_owned())),
        };
        user.attributes =
            (0..200).map(|n| (format!("{:x<60}.{n:03}", "a"), value.clone())).collect();
        user.etag.clear();
        client.update(user, &["attributes"]).await.unwrap();
    }

    let policy = v1::ConflictPolicy::Fail.into();
    let request =
        v1::MergeUsersRequest { conflict_policy: policy, ..merging(&joe.user_id, &joseph.user_id) };
    let status = client.registry.merge_users(request).await.unwrap_err();
    let headers = status.clone().into_http::<tonic::body::Body>().headers().clone();
    let bytes: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
    assert!(bytes < 8 << 10, "{bytes} bytes");

    let details = status_details(status);
    let listed = details.metadata["fields"].split(',').count();
    assert_eq!(details.metadata["more"].parse::<usize>().unwrap() + listed, 202, "{details:?}");
}

#[tokio::test]
async fn an_unmerge_reports_unrestored_fields() {
    let (_server, mut client, joe, joseph) = two_users().await;
    client.merge(&joe.user_id, &joseph.user_id).await.unwrap();
    client.unlink(&joe.user_id, email("joseph@example.com")).await.unwrap();
    let answer = client.unmerge(&joe.user_id, &joseph.user_id).await.unwrap();
    let back = answer.user.unwrap();
    assert_eq!(
        (back.user_id.as_str(), back.display_name.as_str()),
        (joseph.user_id.as_str(), "Joseph")
    );
    assert_eq!((back.state(), back.identities.len()), (v1::State::Active, 1));

    let lost = v1::unmerge_users_response::NotRestored {
        field: "identities".to_owned(),
        identifier: Some(email("joseph@example.com")),
    };
    assert_eq!(answer.not_restored, [lost]);
    assert_eq!(client.resolve(handle("joseph")).await.unwrap().user, Some(back));
    assert_eq!(client.get(&joe.user_id).await.unwrap().identities, joe.identities);

    let twice = refused(client.unmerge(&joe.user_id, &joseph.user_id).await);
    assert_eq!(twice, StatusDetails::new(Code::FailedPrecondition, "NOT_MERGED"));
}

#[tokio::test]
async fn a_merge_can_be_undone_within_its_window() {
    let (_server, mut client, joe, joseph) = two_users().await;
    let second = Some(prost_types::Duration { seconds: 1, nanos: 0 });
    client.govern(v1::Policies { undo_window: second, ..Default::default() }).await.unwrap();
    client.merge(&joe.user_id, &joseph.user_id).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let late = refused(client.unmerge(&joe.user_id, &joseph.user_id).await);
    assert_eq!(late, StatusDetails::new(Code::FailedPrecondition, "UNDO_EXPIRED"));

    let purged = client.purge(&joe.user_id).await.unwrap();
    assert_eq!(purged.len(), 2, "a merged user is purged with its primary");
    assert_eq!(
        refused(client.get(&joseph.user_id).await),
        StatusDetails::new(Code::NotFound, "USER_NOT_FOUND")
    );
}
