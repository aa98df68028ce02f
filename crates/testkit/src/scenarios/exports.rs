//! Exports that continue after a token.

use polynym_proto::v1;
use tonic::{Code, Status};
use v1::{ExportUsersRequest, ExportUsersResponse};

use crate::calls::{Client, email, handle, identity};
use crate::status::{StatusDetails, status_details};

const USERS: usize = 70;
const HOLDS: usize = 3;

/// The messages of an export.
pub async fn exported(
    client: &mut Client,
    request: ExportUsersRequest,
) -> Result<Vec<ExportUsersResponse>, Status> {
    let (mut messages, mut parts) =
        (Vec::new(), client.admin.export_users(request).await?.into_inner());
    while let Some(part) = parts.message().await? {
        messages.push(part);
    }
    Ok(messages)
}

/// The ids of the users and the identifiers of the holds.
fn content(messages: &[ExportUsersResponse]) -> Vec<String> {
    let of_message = |message: &ExportUsersResponse| {
        let one = message.user.iter().map(|user| user.user_id.clone());
        let several = message.users.iter().flat_map(|one| &one.user);
        let several = several.map(|user| user.user_id.clone());
        let holds = message.ownerless_hold.iter().map(|hold| format!("{hold:?}"));
        one.chain(several).chain(holds).collect::<Vec<_>>()
    };
    messages.iter().flat_map(of_message).collect()
}

async fn fill(client: &mut Client) {
    for n in 0..USERS + HOLDS {
        let identities = vec![
            identity(handle(&format!("user{n}"))),
            identity(email(&format!("user{n}@example.com"))),
        ];
        let user = v1::User { identities, ..Default::default() };
        let id = client.create(user).await.unwrap().user_id;
        if n >= USERS {
            // The hold of the handle becomes nobody's.
            client.unlink(&id, handle(&format!("user{n}"))).await.unwrap();
            client.purge(&id).await.unwrap();
        }
    }
}

/// After each token of an export, another one has what follows: no user twice, and none is missing.
pub async fn continue_after_each_token(client: &mut Client) {
    fill(client).await;
    for page_size in [0, 7, 1_000] {
        let request = ExportUsersRequest { page_size, ..Default::default() };
        let whole = exported(client, request.clone()).await.unwrap();
        assert_eq!(content(&whole).len(), USERS + HOLDS);
        let mut with_content = 0;
        for n in 0..whole.len() {
            let (before, after) = whole.split_at(n + 1);
            let has_content = !content(&whole[n..=n]).is_empty();
            assert_eq!(whole[n].page_token.is_empty(), !has_content, "{:?}", whole[n]);
            if !has_content {
                continue;
            }
            with_content += 1;
            let page_token = whole[n].page_token.clone();
            let rest = exported(client, ExportUsersRequest { page_token, ..request.clone() });
            let rest = rest.await.unwrap();
            assert_eq!(content(&rest), content(after), "after {}", content(before).len());
            assert!(
                rest[0].start.is_some() && rest.iter().all(|part| part.tenant_record.is_none())
            );
            assert!(!rest.last().unwrap().end.unwrap().exact);
        }
        assert!(with_content > HOLDS);
    }
}

/// A token is for exports of its tenant alone.
pub async fn refuse_foreign_tokens(client: &mut Client) {
    fill(client).await;
    let policies = v1::UpdateTenantRequest {
        tenant: "other".to_owned(),
        policies: Some(v1::Policies::default()),
        ..Default::default()
    };
    client.admin.update_tenant(policies).await.unwrap();
    let whole = exported(client, ExportUsersRequest::default()).await.unwrap();
    let token = whole.iter().map(|part| &part.page_token).find(|token| !token.is_empty()).unwrap();
    let search = v1::SearchUsersRequest { page_size: 1, ..Default::default() };
    let search = client.directory.search_users(search).await.unwrap().into_inner();
    let user_id = content(&whole)[0].clone();
    for (tenant, page_token) in [
        ("other", token.clone()),
        ("", search.next_page_token),
        ("", user_id),
        ("", token[1..].to_owned()),
    ] {
        let tenant = tenant.to_owned();
        let request = ExportUsersRequest { tenant, page_token, ..Default::default() };
        let refused = status_details(exported(client, request).await.unwrap_err());
        let expected = StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
        assert_eq!(refused, expected.field("page_token"));
    }
}
