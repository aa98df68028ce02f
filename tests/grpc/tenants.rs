//! Tenants and their policies, as answered over gRPC.

use polynym_proto::v1;
use prost_types::{Duration, FieldMask};
use tonic::{Code, Status};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle, identity};
use crate::support::status::{StatusDetails, status_details};

fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> StatusDetails {
    status_details(outcome.unwrap_err())
}

async fn get(client: &mut Client, tenant: &str) -> Result<v1::Tenant, Status> {
    let request = v1::GetTenantRequest { tenant: tenant.to_owned() };
    Ok(client.admin.get_tenant(request).await?.into_inner().tenant.unwrap())
}

async fn create_tenant(client: &mut Client, tenant: &str) -> v1::Tenant {
    let request = v1::UpdateTenantRequest { tenant: tenant.to_owned(), ..Default::default() };
    client.admin.update_tenant(request).await.unwrap().into_inner().tenant.unwrap()
}

async fn page(
    client: &mut Client,
    request: v1::ListTenantsRequest,
) -> Result<(Vec<String>, String), Status> {
    let answer = client.admin.list_tenants(request).await?.into_inner();
    Ok((answer.tenants.into_iter().map(|tenant| tenant.tenant).collect(), answer.next_page_token))
}

#[tokio::test]
async fn the_first_mutation_creates_the_default_tenant() {
    let (_server, mut client) = fresh().await;
    let missing = StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND");
    assert_eq!(refused(get(&mut client, "acme").await), missing);
    // A look-up creates no tenant.
    assert_eq!(
        refused(client.resolve(handle("joe")).await),
        StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND")
    );
    assert_eq!(refused(get(&mut client, "").await), missing);

    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let tenant = get(&mut client, "").await.unwrap();
    let policies = tenant.policies.unwrap();
    let month = Some(Duration { seconds: 30 * 86_400, nanos: 0 });
    assert_eq!(policies.holds.unwrap(), v1::Holds { handle: month, ..Default::default() });
    assert_eq!((tenant.tenant.as_str(), policies.restore_window), ("default", month));
}

#[tokio::test]
async fn calls_in_unknown_tenants_fail() {
    let (_server, mut client) = fresh().await;
    let missing = StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND");
    let tenant = || "acme".to_owned();
    let create = v1::CreateUserRequest {
        tenant: tenant(),
        user: Some(user("Joe", vec![handle("joe")])),
        ..Default::default()
    };
    let user_id = "20be0ffc-314a-bd53-7a50-013a65ca76d2".to_owned();
    let resolve = v1::ResolveIdentityRequest {
        tenant: tenant(),
        identifier: Some(handle("joe")),
        ..Default::default()
    };
    assert_eq!(refused(client.registry.create_user(create.clone()).await), missing);
    assert_eq!(refused(client.directory.resolve_identity(resolve.clone()).await), missing);
    assert_eq!(
        refused(
            client
                .directory
                .get_user(v1::GetUserRequest { tenant: tenant(), user_id, read_mask: None })
                .await
        ),
        missing
    );
    assert_eq!(create_tenant(&mut client, "acme").await.tenant, "acme");

    client.registry.create_user(create).await.unwrap();
    client.directory.resolve_identity(resolve).await.unwrap();
}

#[tokio::test]
async fn policies_are_changed_by_mask_and_etag() {
    let (_server, mut client) = fresh().await;
    let day = Some(Duration { seconds: 86_400, nanos: 0 });
    let holds = Some(v1::Holds { email: day, ..Default::default() });
    let policies = v1::Policies { verified_wins: true, holds, ..Default::default() };
    let first = client.govern(policies).await.unwrap();
    let set = first.policies.unwrap();
    assert!(
        set.verified_wins && set.holds.unwrap().email == day && set.holds.unwrap().handle.is_some(),
        "{set:?}"
    );

    let mask = |path: &str| Some(FieldMask { paths: vec![path.to_owned()] });
    let update =
        |path: &str| v1::UpdateTenantRequest { update_mask: mask(path), ..Default::default() };
    let off = client
        .admin
        .update_tenant(update("verified_wins"))
        .await
        .unwrap()
        .into_inner()
        .tenant
        .unwrap();
    assert!(!off.policies.as_ref().unwrap().verified_wins);
    let lapsing = v1::Policies { phone_takeover_after: day, ..Default::default() };
    let set = client.govern(lapsing).await.unwrap().policies.unwrap();
    assert_eq!(set.phone_takeover_after, day);
    let off = client.admin.update_tenant(update("phone_takeover_after")).await.unwrap();
    let off = off.into_inner().tenant.unwrap();
    assert_eq!(off.policies.as_ref().unwrap().phone_takeover_after, None);

    let stale = v1::UpdateTenantRequest { etag: first.etag, ..update("holds") };
    assert_eq!(
        refused(client.admin.update_tenant(stale).await),
        StatusDetails::new(Code::Aborted, "ETAG_MISMATCH")
    );

    let dry_run =
        v1::UpdateTenantRequest { etag: off.etag.clone(), validate_only: true, ..update("holds") };
    let dry = client.admin.update_tenant(dry_run).await.unwrap().into_inner().tenant.unwrap();
    assert_eq!(dry.policies.unwrap().holds, Some(v1::Holds::default()));
    assert_eq!(get(&mut client, "").await.unwrap(), off);
}

#[tokio::test]
async fn out_of_range_policies_are_refused_by_field() {
    let (_server, mut client) = fresh().await;
    let before = create_tenant(&mut client, "").await;
    let time = |seconds| Some(Duration { seconds, nanos: 0 });
    let (century, year) = (time(100 * 366 * 86_400), time(367 * 86_400));
    let cases = [
        (v1::Policies { restore_window: century, ..Default::default() }, "policies.restore_window"),
        (
            v1::Policies { restore_window: time(-1), ..Default::default() },
            "policies.restore_window",
        ),
        (
            v1::Policies { phone_takeover_after: century, ..Default::default() },
            "policies.phone_takeover_after",
        ),
        (v1::Policies { undo_window: year, ..Default::default() }, "policies.undo_window"),
        (
            v1::Policies {
                holds: Some(v1::Holds { url: time(i64::MAX), ..Default::default() }),
                ..Default::default()
            },
            "policies.holds.url",
        ),
    ];

    for (policies, field) in cases {
        let status = refused(client.govern(policies).await);
        assert_eq!(
            status,
            StatusDetails::new(Code::InvalidArgument, "POLICY_INVALID").field(field)
        );
    }

    let update_mask = Some(FieldMask { paths: vec!["holds.fax".to_owned()] });
    let status = refused(
        client
            .admin
            .update_tenant(v1::UpdateTenantRequest { update_mask, ..Default::default() })
            .await,
    );
    assert_eq!(
        status,
        StatusDetails::new(Code::InvalidArgument, "UPDATE_MASK_INVALID").field("update_mask")
    );
    assert_eq!(get(&mut client, "").await.unwrap(), before);
}

#[tokio::test]
async fn tenants_are_listed_in_pages() {
    let (_server, mut client) = fresh().await;
    for name in ["b", "acme-2", "acme", "c"] {
        create_tenant(&mut client, name).await;
    }

    let two = v1::ListTenantsRequest { page_size: 2, ..Default::default() };
    let (names, page_token) = page(&mut client, two.clone()).await.unwrap();
    assert_eq!(names, ["acme", "acme-2"]);
    let rest =
        page(&mut client, v1::ListTenantsRequest { page_token, ..two.clone() }).await.unwrap();
    assert_eq!(rest, (vec!["b".to_owned(), "c".to_owned()], String::new()));

    let prefix = v1::ListTenantsRequest { tenant: "acme".to_owned(), ..Default::default() };
    assert_eq!(page(&mut client, prefix).await.unwrap().0, ["acme", "acme-2"]);
    let negative = v1::ListTenantsRequest { page_size: -1, ..Default::default() };
    let status = refused(page(&mut client, negative).await);
    assert_eq!(
        status,
        StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("page_size")
    );

    let token = v1::ListTenantsRequest { page_token: "No token".to_owned(), ..Default::default() };
    let status = refused(page(&mut client, token).await);
    assert_eq!(
        status,
        StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID").field("page_token")
    );
}

#[tokio::test]
async fn unverified_identities_can_be_hidden_and_taken_over() {
    let (_server, mut client) = fresh().await;
    let policies =
        v1::Policies { hide_unverified: true, verified_wins: true, ..Default::default() };
    client.govern(policies).await.unwrap();
    let squatter = client
        .create(user("Squatter", vec![email("joe@example.com"), handle("squat")]))
        .await
        .unwrap();
    let hidden = refused(client.resolve(email("joe@example.com")).await);
    assert_eq!(hidden, StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND"));

    let mut verified = identity(email("joe@example.com"));
    verified.verify_time = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
    let draft = v1::User { identities: vec![verified], ..Default::default() };
    let joe = client.create(draft).await.unwrap();
    assert_eq!(client.resolve(email("joe@example.com")).await.unwrap().user, Some(joe));

    let left = client.get(&squatter.user_id).await.unwrap();
    assert_eq!(left.identities.len(), 1, "the former owner no longer lists it");
    client.verify(&squatter.user_id, handle("squat"), true, "a letter").await.unwrap();
    client.resolve(handle("squat")).await.unwrap();
}

#[tokio::test]
async fn a_policy_can_protect_last_and_primary_identities() {
    let (_server, mut client) = fresh().await;
    let policies = v1::Policies {
        keep_last_identity: true,
        keep_primary_identity: true,
        ..Default::default()
    };
    client.govern(policies).await.unwrap();
    let draft = user("Joe", vec![email("joe@example.com"), email("joe@example.org")]);
    let joe = client.create(draft).await.unwrap();
    let primary = refused(client.unlink(&joe.user_id, email("joe@example.com")).await);
    assert_eq!(primary, StatusDetails::new(Code::FailedPrecondition, "PRIMARY_IDENTITY"));

    client.unlink(&joe.user_id, email("joe@example.org")).await.unwrap();
    let last = refused(client.unlink(&joe.user_id, email("joe@example.com")).await);
    assert_eq!(last, StatusDetails::new(Code::FailedPrecondition, "LAST_IDENTITY"));
}

#[tokio::test]
async fn reserved_handles_are_refused_and_owners_keep_theirs() {
    let (_server, mut client) = fresh().await;
    let reserved =
        |field| StatusDetails::new(Code::FailedPrecondition, "IDENTITY_RESERVED").field(field);
    let status =
        refused(client.create(user("Eve", vec![email("eve@example.com"), handle("@Admin")])).await);
    assert_eq!(status, reserved("user.identities[1].identifier"));

    let joe = client.create(user("Joe", vec![handle("joe"), handle("scope")])).await.unwrap();
    let status = refused(client.link(&joe.user_id, handle("root")).await);
    assert_eq!(status, reserved("identifier"));
    let check =
        v1::CheckIdentityRequest { identifier: Some(handle("support")), ..Default::default() };
    let checked = client.directory.check_identity(check).await.unwrap().into_inner();
    assert_eq!((checked.available, checked.reason.as_str()), (false, "IDENTITY_RESERVED"));

    let reserve = |handles: &[&str]| {
        let handles = handles.iter().map(ToString::to_string).collect();
        v1::Policies {
            reserved_handles: Some(v1::ReservedHandles { handles }),
            ..Default::default()
        }
    };
    client.govern(reserve(&["Joe", "scope"])).await.unwrap();
    assert_eq!(client.resolve(handle("joe")).await.unwrap().user.unwrap().user_id, joe.user_id);

    client.link(&joe.user_id, handle("joe")).await.unwrap();
    client.link(&joe.user_id, handle("root")).await.unwrap();
    client.unlink(&joe.user_id, handle("scope")).await.unwrap();
    let lookalike = refused(client.create(user("Eve", vec![handle("ѕсоре")])).await);
    assert_eq!(lookalike, reserved("user.identities[0].identifier"));

    let status = refused(client.govern(reserve(&["a b"])).await);
    assert_eq!(
        (status.reason.as_str(), status.fields),
        ("POLICY_INVALID", vec!["policies.reserved_handles".to_owned()])
    );

    client.govern(reserve(&[])).await.unwrap();
    client.create(user("Admin", vec![handle("admin")])).await.unwrap();
}
