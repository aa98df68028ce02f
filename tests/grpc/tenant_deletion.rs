//! Deletion of tenants: the answers to callers, and the work of the servers afterwards, also after
//! a kill.

use std::time::{Duration, Instant};

use futures_util::stream;
use polynym_directory::Clock;
use polynym_proto::v1;
use tokio::runtime::Builder;
use tokio::task::{block_in_place, spawn_blocking};
use tonic::{Code, Status};

use v1::import_users_request::Options;
use v1::import_users_response::Progress;

use super::{JOE, fresh, fresh_with_clock, store_in, user};
use crate::server::{Server, polynym};
use crate::support::calls::{Client, email, handle, identity};
use crate::support::scenarios::clocks::{Scene, skip_quiet_time};
use crate::support::status::{StatusDetails, status_details};

const ACME: &str = "acme";
/// The number of users of the tenant whose server is killed.
const USERS: usize = 300;
const TIMEOUT: Duration = Duration::from_secs(300);

async fn make(client: &mut Client) -> v1::Tenant {
    let request = v1::UpdateTenantRequest { tenant: ACME.to_owned(), ..Default::default() };
    client.admin.update_tenant(request).await.unwrap().into_inner().tenant.unwrap()
}

async fn register(client: &mut Client, name: &str) -> Result<v1::User, Status> {
    let user = Some(user(name, vec![handle(name), email(&format!("{name}@example.com"))]));
    let request = v1::CreateUserRequest { tenant: ACME.to_owned(), user, ..Default::default() };
    Ok(client.registry.create_user(request).await?.into_inner().user.unwrap())
}

async fn delete(client: &mut Client, force: bool) -> Result<v1::Tenant, Status> {
    let request = v1::DeleteTenantRequest { tenant: ACME.to_owned(), force, ..Default::default() };
    Ok(client.admin.delete_tenant(request).await?.into_inner().tenant.unwrap())
}

async fn tenant(client: &mut Client) -> Option<v1::Tenant> {
    let request = v1::GetTenantRequest { tenant: ACME.to_owned() };
    client.admin.get_tenant(request).await.ok().and_then(|answer| answer.into_inner().tenant)
}

async fn is_found(client: &mut Client, name: &str) -> bool {
    let identifier = Some(handle(name));
    let request =
        v1::ResolveIdentityRequest { tenant: ACME.to_owned(), identifier, ..Default::default() };
    client.directory.resolve_identity(request).await.is_ok()
}

async fn until_gone(client: &mut Client, clock: &Clock) {
    let start = Instant::now();
    while tenant(client).await.is_some() {
        skip_quiet_time(clock);
        assert!(start.elapsed() < TIMEOUT, "the tenant is not deleted");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_tenant_with_users_is_deleted_only_by_force() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    let missing = StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND");
    assert_eq!(status_details(delete(&mut client, false).await.unwrap_err()), missing);
    client.create(user("Joe", vec![email(JOE)])).await.unwrap();
    make(&mut client).await;
    let joe = register(&mut client, "joe").await.unwrap();
    let refused = status_details(delete(&mut client, false).await.unwrap_err());
    assert_eq!(refused, StatusDetails::new(Code::FailedPrecondition, "TENANT_NOT_EMPTY"));
    assert!(tenant(&mut client).await.unwrap().delete_time.is_none());

    let marked = delete(&mut client, true).await.unwrap();
    assert!(marked.delete_time.is_some() && marked.delete_users);
    assert_eq!(tenant(&mut client).await.unwrap(), marked);
    assert_eq!(status_details(register(&mut client, "eve").await.unwrap_err()), missing);

    let user_id = joe.user_id.clone();
    let disable = v1::DisableUserRequest { tenant: ACME.to_owned(), user_id, ..Default::default() };
    assert_eq!(status_details(client.registry.disable_user(disable).await.unwrap_err()), missing);
    assert!(is_found(&mut client, "joe").await, "users resolve until they are purged");

    until_gone(&mut client, &clock).await;
    assert!(!is_found(&mut client, "joe").await);
    assert!(client.resolve(email(JOE)).await.is_ok(), "another tenant's user");
    make(&mut client).await;
    assert_ne!(
        register(&mut client, "joe").await.unwrap().user_id,
        joe.user_id,
        "no identifier is held"
    );
}

/// Imports these lines into a tenant. Returns the progress at the end.
async fn import(client: &mut Client, tenant: &str, lines: Vec<v1::ImportUsersRequest>) -> Progress {
    let options = Some(Options { tenant: tenant.to_owned(), ..Default::default() });
    let first = v1::ImportUsersRequest { options, ..Default::default() };
    let line = |(line, content)| v1::ImportUsersRequest { line, ..content };
    let requests: Vec<_> = [first].into_iter().chain((1..).zip(lines).map(line)).collect();
    let mut responses =
        client.admin.import_users(stream::iter(requests)).await.unwrap().into_inner();
    let mut progress = Progress::default();
    while let Some(response) = responses.message().await.unwrap() {
        progress = response.progress.unwrap();
    }
    progress
}

fn line(user: v1::User) -> v1::ImportUsersRequest {
    v1::ImportUsersRequest { user: Some(user), ..Default::default() }
}

fn numbered(n: u32) -> v1::User {
    let user_id = format!("{n:08}-0001-b000-0001-000000000000");
    v1::User { user_id, ..Default::default() }
}

#[tokio::test]
async fn a_tenant_whose_users_name_others_is_deleted_and_imported_again() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    make(&mut client).await;
    let state = v1::State::Merged.into();
    let orphan = v1::User { state, merged_into: numbered(2).user_id, ..numbered(1) };
    let foreign = v1::User { identities: vec![identity(email(JOE))], ..numbered(4) };
    let merged_user_ids = vec![foreign.user_id.clone()];
    let internals = Some(v1::UserInternals { merged_user_ids, ..Default::default() });
    let listing = v1::ImportUsersRequest { internals, ..line(numbered(3)) };
    let lines = vec![line(orphan), line(user("Joe", vec![handle("joe")]))];
    let progress = import(&mut client, ACME, [&lines[..], &[listing]].concat()).await;
    assert_eq!((progress.created, progress.orphans), (3, 1));
    assert_eq!(import(&mut client, ACME, lines.clone()).await.existing, 2);
    assert_eq!(import(&mut client, "", vec![line(foreign.clone())]).await.created, 1);

    delete(&mut client, true).await.unwrap();
    until_gone(&mut client, &clock).await;
    let kept = client.resolve(email(JOE)).await.unwrap().user.unwrap();
    assert_eq!(kept.user_id, foreign.user_id, "a user of another tenant");
    make(&mut client).await;
    let progress = import(&mut client, ACME, lines).await;
    assert_eq!((progress.created, progress.existing), (2, 0), "the lines count as imported");
    assert!(is_found(&mut client, "joe").await);
}

#[tokio::test]
async fn an_empty_tenant_is_deleted() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    make(&mut client).await;
    let marked = delete(&mut client, false).await.unwrap();
    assert!(marked.delete_time.is_some() && !marked.delete_users);
    until_gone(&mut client, &clock).await;
}

/// The tenant has users of every state. The server is killed during the purge; the next server
/// completes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_deletion_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["--store", &store_in(&folder)]);
    let mut client = Client::connect(&server.url).await;
    make(&mut client).await;
    let mut ids = Vec::new();
    for n in 0..USERS {
        ids.push(register(&mut client, &format!("user{n}")).await.unwrap().user_id);
    }

    for n in 0..20 {
        let (tenant, user_id) = (ACME.to_owned(), ids[n].clone());
        match n % 4 {
            0 => {
                let request = v1::DeleteUserRequest { tenant, user_id, ..Default::default() };
                client.registry.delete_user(request).await.unwrap();
            }
            1 => {
                let request = v1::DisableUserRequest { tenant, user_id, ..Default::default() };
                client.registry.disable_user(request).await.unwrap();
            }
            // Merged into one user, which is merged into another below.
            2 => {
                let (primary_user_id, secondary_user_id) = (ids[30].clone(), user_id);
                let request = v1::MergeUsersRequest {
                    tenant,
                    primary_user_id,
                    secondary_user_id,
                    ..Default::default()
                };
                client.registry.merge_users(request).await.unwrap();
            }
            _ => {
                let identifier = Some(handle(&format!("user{n}")));
                let request =
                    v1::UnlinkIdentityRequest { tenant, user_id, identifier, ..Default::default() };
                client.registry.unlink_identity(request).await.unwrap();
            }
        }
    }

    let (tenant_name, primary_user_id) = (ACME.to_owned(), ids[31].clone());
    let request = v1::MergeUsersRequest {
        tenant: tenant_name,
        primary_user_id,
        secondary_user_id: ids[30].clone(),
        ..Default::default()
    };
    client.registry.merge_users(request).await.unwrap();

    delete(&mut client, true).await.unwrap();
    let start = Instant::now();
    let watched = format!("user{}", 40);
    while is_found(&mut client, &watched).await {
        assert!(start.elapsed() < TIMEOUT, "no user is purged");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    server.signal("KILL");
    drop(server);

    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let path = folder.path().join("store");
    let next_server = runtime.spawn(async move { Scene::embedded(&path).await });
    let Scene { url, clock, mut client } = next_server.await.unwrap();
    until_gone(&mut client, &clock).await;
    make(&mut client).await;
    for n in 0..USERS {
        register(&mut client, &format!("user{n}")).await.unwrap();
    }

    let run = |more: &[&str]| {
        let mut command = polynym(&["tenant", "delete", "--tenant", ACME, "--force"]);
        command.args(more).env("POLYNYM_SERVER", &url);
        spawn_blocking(move || command.output().unwrap())
    };
    let output = run(&[]).await.unwrap();
    assert_eq!(output.status.code(), Some(2), "without a terminal there is no prompt");
    let deletion = run(&["--yes"]);
    until_gone(&mut client, &clock).await;
    let output = deletion.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "acme is deleted\n");

    drop(client);
    block_in_place(|| drop(runtime));

    let verified = polynym(&["store", "verify", "--store", &store_in(&folder)]).output().unwrap();
    let printed = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success() && printed.starts_with("0 users and 0 claims"), "{printed}");
}

#[tokio::test]
async fn a_tenant_shows_its_pending_deletion() {
    let (server, mut client) = fresh().await;
    make(&mut client).await;
    let identities = vec![identity(handle("joe"))];
    let user = Some(v1::User { identities, ..Default::default() });
    let request = v1::CreateUserRequest { tenant: ACME.to_owned(), user, ..Default::default() };
    client.registry.create_user(request).await.unwrap();
    let run = |arguments: &[&str]| {
        let output = server.server.run(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let delete = ["tenant", "delete", "--tenant", ACME, "--force", "--yes"];
    assert_eq!(run(&[&delete[..], &["--dry-run"]].concat()), "acme would be deleted\n");
    assert!(tenant(&mut client).await.unwrap().delete_time.is_none());
    assert_eq!(run(&[&delete[..], &["--no-wait"]].concat()), "acme is being deleted\n");
    assert!(run(&["tenant", "get", "--tenant", ACME]).contains("with its users"));
}
