//! Idempotency of every mutation of the API: a repeated request_id, with or without an etag,
//! returns the first answer and changes nothing. A dry run stores no idempotency key. A stale etag
//! changes nothing.

use polynym_proto::v1;
use prost_types::FieldMask;
use tonic::{Code, Status};

use super::{fresh_with, user};
use crate::support::calls::{Client, handle};
use crate::support::status::{StatusDetails, status_details};

/// The request of one mutation.
#[derive(Clone, Debug)]
enum Call {
    Create(v1::CreateUserRequest),
    Update(v1::UpdateUserRequest),
    Link(v1::LinkIdentityRequest),
    Unlink(v1::UnlinkIdentityRequest),
    Replace(v1::ReplaceIdentityRequest),
    Move(v1::MoveIdentityRequest),
    Verify(v1::VerifyIdentityRequest),
    Disable(v1::DisableUserRequest),
    Enable(v1::EnableUserRequest),
    Delete(v1::DeleteUserRequest),
    Undelete(v1::UndeleteUserRequest),
    Purge(v1::PurgeUserRequest),
    Merge(v1::MergeUsersRequest),
    Unmerge(v1::UnmergeUsersRequest),
    Release(v1::ReleaseHoldRequest),
    SetTenant(v1::UpdateTenantRequest),
    DeleteTenant(v1::DeleteTenantRequest),
}

/// The calls: name, support of a dry run, and the outcome of a repetition once the user of the
/// first answer is purged.
const CALLS: [(&str, bool, Result<(), &str>); 17] = [
    ("CreateUser", false, Err("USER_NOT_FOUND")),
    ("UpdateUser", false, Err("USER_NOT_FOUND")),
    ("LinkIdentity", false, Err("USER_NOT_FOUND")),
    ("UnlinkIdentity", false, Err("USER_NOT_FOUND")),
    ("ReplaceIdentity", false, Err("USER_NOT_FOUND")),
    ("MoveIdentity", true, Err("USER_NOT_FOUND")),
    ("VerifyIdentity", false, Err("USER_NOT_FOUND")),
    ("DisableUser", false, Err("USER_NOT_FOUND")),
    ("EnableUser", false, Err("USER_NOT_FOUND")),
    ("DeleteUser", false, Err("USER_NOT_FOUND")),
    ("UndeleteUser", false, Err("USER_NOT_FOUND")),
    ("PurgeUser", true, Ok(())),
    ("MergeUsers", true, Err("USER_NOT_FOUND")),
    ("UnmergeUsers", true, Err("USER_NOT_FOUND")),
    ("ReleaseHold", false, Ok(())),
    ("UpdateTenant", true, Ok(())),
    ("DeleteTenant", true, Ok(())),
];

/// The parameters that calls have in common.
#[derive(Clone, Default)]
struct Parameters {
    tenant: String,
    etag: String,
    request_id: String,
    validate_only: bool,
}

/// A tenant for one call, with two users.
struct Scene {
    client: Client,
    tenant: String,
    joe: String,
    eve: String,
}

impl Scene {
    /// Creates the tenant and the preconditions for one of [`CALLS`].
    async fn new(client: &Client, call: &str, with_etag: bool) -> Self {
        let (mut client, tenant) =
            (client.clone(), format!("{}-{}", call.to_lowercase(), u8::from(with_etag)));
        let mut ids = Vec::new();
        for name in ["joe", "eve"] {
            let user = Some(user(name, vec![handle(name), handle(&format!("{name}-too"))]));
            let request =
                v1::CreateUserRequest { tenant: tenant.clone(), user, ..Default::default() };
            ids.push(
                client
                    .registry
                    .create_user(request)
                    .await
                    .unwrap()
                    .into_inner()
                    .user
                    .unwrap()
                    .user_id,
            );
        }

        let [joe, eve] = ids.try_into().unwrap();
        let mut scene = Self { client, tenant, joe, eve };
        // The call that establishes the precondition.
        let before = match call {
            "EnableUser" => Some("DisableUser"),
            "UndeleteUser" => Some("DeleteUser"),
            "UnmergeUsers" => Some("MergeUsers"),
            "ReleaseHold" => Some("UnlinkIdentity"),
            _ => None,
        };

        if let Some(name) = before {
            let call =
                scene.call(name, Parameters { tenant: scene.tenant.clone(), ..Default::default() });
            scene.send(&call).await.unwrap();
        }

        scene
    }

    fn call(&self, name: &str, parameters: Parameters) -> Call {
        let Parameters { tenant, etag, request_id, validate_only } = parameters;
        let (user_id, primary_user_id, secondary_user_id) =
            (self.joe.clone(), self.joe.clone(), self.eve.clone());
        let (old, new) = (Some(handle("joe-too")), Some(handle("new")));
        let identifier = old.clone();
        let conflict_policy = 0;
        match name {
            "CreateUser" => {
                let user = Some(user("Pip", vec![handle("new")]));
                Call::Create(v1::CreateUserRequest { tenant, user, request_id })
            }
            "UpdateUser" => {
                let user = Some(v1::User {
                    user_id,
                    etag,
                    display_name: "Joseph".to_owned(),
                    ..Default::default()
                });
                Call::Update(v1::UpdateUserRequest { tenant, user, update_mask: None, request_id })
            }
            "LinkIdentity" => {
                let (identifier, verified, primary) = (new, true, false);
                Call::Link(v1::LinkIdentityRequest {
                    tenant,
                    user_id,
                    identifier,
                    verified,
                    etag,
                    request_id,
                    primary,
                    ..Default::default()
                })
            }
            "UnlinkIdentity" => Call::Unlink(v1::UnlinkIdentityRequest {
                tenant,
                user_id,
                identifier,
                etag,
                request_id,
            }),
            "ReplaceIdentity" => {
                let (old_identifier, new_identifier) = (old, new);
                let request = v1::ReplaceIdentityRequest {
                    tenant,
                    user_id,
                    old_identifier,
                    ..Default::default()
                };
                Call::Replace(v1::ReplaceIdentityRequest {
                    new_identifier,
                    etag,
                    request_id,
                    ..request
                })
            }
            "MoveIdentity" => {
                let (from_user_id, to_user_id, identifier) =
                    (self.eve.clone(), user_id, Some(handle("eve-too")));
                let request = v1::MoveIdentityRequest {
                    tenant,
                    from_user_id,
                    to_user_id,
                    ..Default::default()
                };
                Call::Move(v1::MoveIdentityRequest {
                    identifier,
                    etag,
                    request_id,
                    validate_only,
                    ..request
                })
            }
            "VerifyIdentity" => {
                let (verified, verified_by) = (true, "a letter".to_owned());
                let request = v1::VerifyIdentityRequest {
                    tenant,
                    user_id,
                    identifier,
                    etag,
                    ..Default::default()
                };
                Call::Verify(v1::VerifyIdentityRequest {
                    verified,
                    verified_by,
                    request_id,
                    ..request
                })
            }
            "DisableUser" => {
                Call::Disable(v1::DisableUserRequest { tenant, user_id, etag, request_id })
            }
            "EnableUser" => {
                Call::Enable(v1::EnableUserRequest { tenant, user_id, etag, request_id })
            }
            "DeleteUser" => {
                Call::Delete(v1::DeleteUserRequest { tenant, user_id, etag, request_id })
            }
            "UndeleteUser" => {
                Call::Undelete(v1::UndeleteUserRequest { tenant, user_id, etag, request_id })
            }
            "PurgeUser" => Call::Purge(v1::PurgeUserRequest {
                tenant,
                user_id,
                etag,
                request_id,
                validate_only,
            }),
            "MergeUsers" => {
                let request = v1::MergeUsersRequest {
                    tenant,
                    primary_user_id,
                    secondary_user_id,
                    ..Default::default()
                };
                Call::Merge(v1::MergeUsersRequest {
                    conflict_policy,
                    validate_only,
                    etag,
                    request_id,
                    ..request
                })
            }
            "UnmergeUsers" => {
                let request =
                    v1::UnmergeUsersRequest { tenant, primary_user_id, ..Default::default() };
                Call::Unmerge(v1::UnmergeUsersRequest {
                    secondary_user_id,
                    etag,
                    request_id,
                    validate_only,
                    ..request
                })
            }
            "ReleaseHold" => {
                Call::Release(v1::ReleaseHoldRequest { tenant, identifier, request_id })
            }
            "DeleteTenant" => {
                let force = true;
                Call::DeleteTenant(v1::DeleteTenantRequest {
                    tenant,
                    etag,
                    force,
                    request_id,
                    validate_only,
                })
            }
            _ => {
                let policies =
                    Some(v1::Policies { keep_last_identity: true, ..Default::default() });
                let update_mask = Some(FieldMask { paths: vec!["keep_last_identity".to_owned()] });
                let request =
                    v1::UpdateTenantRequest { tenant, policies, update_mask, ..Default::default() };
                Call::SetTenant(v1::UpdateTenantRequest {
                    etag,
                    request_id,
                    validate_only,
                    ..request
                })
            }
        }
    }

    /// Sends a call. Returns the whole answer, and the id of its user.
    async fn send(&mut self, call: &Call) -> Result<(String, Option<String>), Status> {
        let (registry, admin) = (&mut self.client.registry, &mut self.client.admin);
        let user = match call.clone() {
            Call::Create(call) => registry.create_user(call).await?.into_inner().user,
            Call::Update(call) => registry.update_user(call).await?.into_inner().user,
            Call::Link(call) => registry.link_identity(call).await?.into_inner().user,
            Call::Unlink(call) => registry.unlink_identity(call).await?.into_inner().user,
            Call::Replace(call) => registry.replace_identity(call).await?.into_inner().user,
            Call::Move(call) => registry.move_identity(call).await?.into_inner().user,
            Call::Verify(call) => registry.verify_identity(call).await?.into_inner().user,
            Call::Disable(call) => registry.disable_user(call).await?.into_inner().user,
            Call::Enable(call) => registry.enable_user(call).await?.into_inner().user,
            Call::Delete(call) => registry.delete_user(call).await?.into_inner().user,
            Call::Undelete(call) => registry.undelete_user(call).await?.into_inner().user,
            Call::Merge(call) => registry.merge_users(call).await?.into_inner().user,
            Call::Unmerge(call) => registry.unmerge_users(call).await?.into_inner().user,
            Call::Purge(call) => {
                return Ok((format!("{:?}", admin.purge_user(call).await?.into_inner()), None));
            }
            Call::Release(call) => {
                return Ok((format!("{:?}", admin.release_hold(call).await?.into_inner()), None));
            }
            Call::SetTenant(call) => {
                return Ok((format!("{:?}", admin.update_tenant(call).await?.into_inner()), None));
            }
            Call::DeleteTenant(call) => {
                return Ok((format!("{:?}", admin.delete_tenant(call).await?.into_inner()), None));
            }
        };
        Ok((format!("{user:?}"), user.map(|user| user.user_id)))
    }

    /// Returns both users, the owners of the names, and the tenant as text.
    async fn snapshot(&mut self) -> String {
        let tenant = self.tenant.clone();
        let user_ids = vec![self.joe.clone(), self.eve.clone()];
        let users = v1::BatchGetUsersRequest { tenant: tenant.clone(), user_ids, read_mask: None };
        let users = self.client.directory.batch_get_users(users).await.unwrap().into_inner();
        let identifiers = ["joe", "joe-too", "eve", "eve-too", "new"].map(handle).to_vec();
        let names = v1::BatchResolveIdentitiesRequest {
            tenant: tenant.clone(),
            identifiers,
            ..Default::default()
        };
        let names =
            self.client.directory.batch_resolve_identities(names).await.unwrap().into_inner();
        let policies = self
            .client
            .admin
            .get_tenant(v1::GetTenantRequest { tenant })
            .await
            .unwrap()
            .into_inner();
        format!("{users:?} {names:?} {policies:?}")
    }

    /// Returns the current etag for a call.
    async fn etag(&mut self, name: &str) -> String {
        let tenant = self.tenant.clone();
        match name {
            "UpdateTenant" | "DeleteTenant" => {
                let request = v1::GetTenantRequest { tenant };
                self.client
                    .admin
                    .get_tenant(request)
                    .await
                    .unwrap()
                    .into_inner()
                    .tenant
                    .unwrap()
                    .etag
            }
            _ => {
                let request =
                    v1::GetUserRequest { tenant, user_id: self.joe.clone(), read_mask: None };
                self.client
                    .directory
                    .get_user(request)
                    .await
                    .unwrap()
                    .into_inner()
                    .user
                    .unwrap()
                    .etag
            }
        }
    }

    async fn purge(&mut self, user_id: String) {
        let request =
            v1::PurgeUserRequest { tenant: self.tenant.clone(), user_id, ..Default::default() };
        self.client.admin.purge_user(request).await.unwrap();
    }
}

fn reason<T: std::fmt::Debug>(outcome: Result<T, Status>) -> String {
    status_details(outcome.unwrap_err()).reason
}

#[tokio::test]
async fn a_repeated_mutation_takes_effect_once() {
    let (_server, client) = fresh_with(&["--tenants", "open"]).await;
    for (n, (name, has_dry_run, when_purged)) in CALLS.into_iter().enumerate() {
        for with_etag in [true, false] {
            let mut scene = Scene::new(&client, name, with_etag).await;
            let etag = if with_etag { scene.etag(name).await } else { String::new() };
            let request_id = format!("{n:08x}-314a-bd53-7a50-013a65ca76d2");
            let parameters =
                Parameters { tenant: scene.tenant.clone(), etag, request_id, validate_only: false };
            let before = scene.snapshot().await;
            if has_dry_run {
                let dry =
                    scene.call(name, Parameters { validate_only: true, ..parameters.clone() });
                scene.send(&dry).await.unwrap();
                assert_eq!(scene.snapshot().await, before, "{name}: a dry run changes state");
            }
            if name != "CreateUser" && name != "ReleaseHold" {
                let stale = Parameters { etag: "another".to_owned(), ..parameters.clone() };
                let stale = Parameters { request_id: String::new(), ..stale };
                let refused = scene.call(name, stale);
                assert_eq!(reason(scene.send(&refused).await), "ETAG_MISMATCH", "{name}");
                assert_eq!(scene.snapshot().await, before, "{name}: a stale call changes state");
            }
            let call = scene.call(name, parameters.clone());
            let first = scene.send(&call).await.unwrap();
            let after = scene.snapshot().await;
            assert!(after != before || name == "ReleaseHold", "{name}: no effect");
            assert_eq!(
                scene.send(&call).await.unwrap(),
                first,
                "{name}, etag: {with_etag}: the second answer"
            );
            assert_eq!(scene.snapshot().await, after, "{name}: it took effect twice");
            if name != "CreateUser" && name != "ReleaseHold" {
                let other =
                    scene.call(name, Parameters { etag: "another".to_owned(), ..parameters });
                let reused = StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED")
                    .field("request_id");
                assert_eq!(status_details(scene.send(&other).await.unwrap_err()), reused, "{name}");
            }
            if let Some(subject) = first.1 {
                scene.purge(subject).await;
            }
            match (when_purged, scene.send(&call).await) {
                (Ok(()), again) => {
                    assert_eq!(again.unwrap().0, first.0, "{name}: the answer after the purge")
                }
                (Err(wanted), again) => {
                    assert_eq!(reason(again), wanted, "{name}: the answer after the purge")
                }
            }
        }
    }
}
