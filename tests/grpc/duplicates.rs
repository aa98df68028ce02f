//! Probable duplicates over gRPC.

use polynym_proto::v1;
use tonic::{Code, Status};
use v1::DuplicateReason::{IdentityInAttribute, SameMailbox, SameName};
use v1::find_duplicates_response::{Pair, Progress};
use v1::{FindDuplicatesRequest, attribute_value};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle, merging};
use crate::support::status::status_details;

async fn found(
    client: &mut Client,
    request: FindDuplicatesRequest,
) -> Result<(Vec<Pair>, Progress), Status> {
    let mut answers = client.admin.find_duplicates(request).await?.into_inner();
    let (mut pairs, mut last) = (Vec::new(), Progress::default());
    while let Some(answer) = answers.message().await? {
        assert_ne!(answer.pair.is_some(), answer.progress.is_some());
        pairs.extend(answer.pair);
        if let Some(progress) = answer.progress {
            assert!(pairs.is_empty(), "progress comes first");
            last = progress;
        }
    }
    Ok((pairs, last))
}

fn reasons(pair: &Pair) -> Vec<(v1::DuplicateReason, &str)> {
    pair.evidence.iter().map(|evidence| (evidence.reason(), evidence.kind.as_str())).collect()
}

#[tokio::test]
async fn pairs_have_reasons_and_can_be_merged() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe Smith", vec![email("joe.smith@gmail.com")])).await.unwrap();
    let draft = user("SMITH, Joe", vec![email("joesmith+x@gmail.com"), handle("wolf")]);
    let again = client.create(draft).await.unwrap();
    let text = attribute_value::Kind::StringValue("Joe.Smith@gmail.com".to_owned());
    let contact = v1::AttributeValue { kind: Some(text) };
    let attributes = [("contact".to_owned(), contact)].into();
    let jane = v1::User { attributes, ..user("Jane", vec![handle("jane")]) };
    let third = client.create(jane).await.unwrap();
    client.create(user("Joe Smith", vec![email("joe.smith@example.com")])).await.unwrap();

    let request = FindDuplicatesRequest::default();
    let (pairs, progress) = found(&mut client, request.clone()).await.unwrap();
    assert_eq!((progress.users, progress.capped), (4, 0));
    assert!(progress.compared >= 3, "{progress:?}");
    let mut users = [&joe.user_id, &again.user_id];
    users.sort();
    let best = &pairs[0];
    assert_eq!([&best.user_id_a, &best.user_id_b], users);
    assert_eq!(reasons(best), [(SameMailbox, "email"), (SameName, "")]);
    assert_eq!(best.evidence[0].score, 90);
    assert!((91..=99).contains(&best.score), "{best:?}");
    let others: Vec<_> = pairs[1..].iter().map(reasons).collect();
    assert_eq!(others, vec![vec![(IdentityInAttribute, "email")]; 2]);
    assert!(pairs[1..].iter().all(|pair| {
        [&pair.user_id_a, &pair.user_id_b].contains(&&third.user_id)
            && pair.user_id_a < pair.user_id_b
    }));

    let merge = merging(&best.user_id_a, &best.user_id_b);
    let dry_run = v1::MergeUsersRequest { validate_only: true, ..merge.clone() };
    let preview = client.registry.merge_users(dry_run).await.unwrap().into_inner();
    assert!(preview.preview.is_some());
    client.registry.merge_users(merge).await.unwrap();
    let (pairs, _) = found(&mut client, request).await.unwrap();
    assert!(pairs.iter().all(|pair| reasons(pair) == [(IdentityInAttribute, "email")]));
    assert_eq!(pairs.len(), 1);
}

#[tokio::test]
async fn score_and_number_of_pairs_are_limited() {
    let (_server, mut client) = fresh().await;
    for n in 0..4 {
        let user = user("", vec![email(&format!("joe+{n}@example.com"))]);
        client.create(user).await.unwrap();
    }
    let mut of = async |min_score, max_pairs| {
        let request = FindDuplicatesRequest { min_score, max_pairs, ..Default::default() };
        found(&mut client, request).await.map(|(pairs, _)| pairs.len())
    };
    assert_eq!(of(0, 0).await.unwrap(), 6);
    assert_eq!(of(72, 4).await.unwrap(), 4);
    assert_eq!(of(73, 0).await.unwrap(), 0);
    for (min_score, max_pairs, field) in
        [(-1, 0, "min_score"), (101, 0, "min_score"), (0, -1, "max_pairs")]
    {
        let refusal = status_details(of(min_score, max_pairs).await.unwrap_err());
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::InvalidArgument, "FIELD_INVALID")
        );
        assert!(format!("{refusal:?}").contains(field), "{refusal:?}");
    }

    let elsewhere = FindDuplicatesRequest { tenant: "nowhere".to_owned(), ..Default::default() };
    let refusal = status_details(found(&mut client, elsewhere).await.unwrap_err());
    assert_eq!(refusal.reason, "TENANT_NOT_FOUND");
}
