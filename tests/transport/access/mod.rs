//! Access to a server: tokens, roles, tenants, the reload of the credentials file, and TLS.

mod attacks;
mod bulk_undo;
mod certificates;
mod commands;
mod limits;
mod log;
mod reads;
mod reload;
mod shares;
mod tenants;
pub mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polynym_proto::DESCRIPTORS;
use polynym_proto::v1::{self, ListTenantsRequest};
use prost_reflect::DescriptorPool;
use tempfile::TempDir;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::calls::Client;
use crate::server::{Server, polynym};
use crate::status::{StatusDetails, status_details};

const RESOLVE: &str = "/polynym.v1.DirectoryService/ResolveIdentity";
const ROLES: [&str; 5] = ["monitor", "resolver", "viewer", "registrar", "admin"];
/// The methods that show what a resolver may not see, and change nothing.
const VIEWS: [&str; 13] = [
    "SearchUsers",
    "ListHistory",
    "ListOwners",
    "ListEvents",
    "Watch",
    "ListNotices",
    "CountUnread",
    "GetTenant",
    "ListTenants",
    "ListTenantHistory",
    "ListAttributeNames",
    "GetBulkChange",
    "ListBulkChanges",
];

/// A folder with a credentials file.
pub struct Callers {
    folder: TempDir,
}

impl Callers {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("callers.toml")
    }

    /// Runs `polynym token` on the file. Returns the standard output.
    pub fn run(&self, arguments: &[&str]) -> String {
        let path = self.path();
        let output = polynym(&[&["token"], arguments].concat())
            .args([Path::new("--credentials"), &path])
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Creates a token.
    pub fn create(&self, name: &str, role: &str, tenants: &str) -> String {
        let token = self.run(&["create", name, "--role", role, "--tenants", tenants]);
        token.trim_end().to_owned()
    }

    /// Starts a server with these credentials and with its log in the folder.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let path = self.path();
        let own = ["--credentials", path.to_str().unwrap(), "--sample"];
        Server::start_logged(&[&own, arguments].concat(), &self.log())
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// Waits until a server has logged this number of invalid files, which change nothing.
fn wait_for_invalid_files(log: &Path, count: usize) {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(log).unwrap();
        if text.lines().filter(|line| line.contains("invalid: the previous")).count() == count {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{count} invalid files: {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn connect(server: &Server) -> Channel {
    Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap()
}

/// Calls a method with the text of an `authorization` header, if there is one.
async fn call<M: prost::Message + 'static, A: prost::Message + Default + 'static>(
    channel: &Channel,
    path: &str,
    authorization: Option<&str>,
    message: M,
) -> Result<A, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let mut request = Request::new(message);
    if let Some(text) = authorization {
        request.metadata_mut().insert("authorization", text.parse().unwrap());
    }
    let codec: ProstCodec<M, A> = ProstCodec::default();
    Ok(grpc.unary(request, PathAndQuery::try_from(path).unwrap(), codec).await?.into_inner())
}

/// The refusal of a call with an empty message, if it is refused.
async fn refusal(channel: &Channel, path: &str, token: &str) -> Option<StatusDetails> {
    let header = format!("Bearer {token}");
    if !path.ends_with("/Watch") {
        let answer: Result<(), _> = call(channel, path, Some(&header), ()).await;
        return answer.err().map(status_details);
    }
    // A watch that is permitted lasts an hour: its first message permits it.
    let mut request = Request::new(v1::WatchRequest::default());
    request.metadata_mut().insert("authorization", header.parse().unwrap());
    let mut directory = Client::over(channel.clone()).directory;
    let first = async { directory.watch(request).await?.into_inner().message().await };
    first.await.err().map(status_details)
}

/// The paths of all methods of the API, with the least role of each.
fn methods() -> Vec<(String, usize)> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let least = |service: &str| match service {
        "DirectoryService" => 1,
        "RegistryService" | "InboxService" => 3,
        "AdminService" => 4,
        other => panic!("{other}"),
    };
    let services = pool.services().flat_map(|service| {
        let path = format!("/{}/", service.full_name());
        let least = least(service.name());
        service
            .methods()
            .map(|method| {
                let is_view = VIEWS.contains(&method.name());
                (format!("{path}{}", method.name()), if is_view { 2 } else { least })
            })
            .collect::<Vec<_>>()
    });
    services.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_call_its_methods_and_no_others() {
    let callers = Callers::new();
    let tokens = ROLES.map(|role| callers.create(role, role, "*"));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let denied = StatusDetails::new(Code::PermissionDenied, "ROLE_DENIED");
    let mut denials = 0;
    for (path, least) in methods() {
        for (role, token) in tokens.iter().enumerate() {
            let refusal = refusal(&channel, &path, token).await;
            let is_denied = refusal.as_ref().is_some_and(|refusal| {
                (refusal.code, refusal.reason.as_str()) == (denied.code, denied.reason.as_str())
            });
            assert_eq!(is_denied, role < least, "{path} by {}: {refusal:?}", ROLES[role]);
            denials += usize::from(is_denied);
        }
    }
    assert!(denials > 20, "{denials}");
}

/// A monitor does not even learn the names of the methods.
#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_calls_nothing_but_health() {
    let callers = Callers::new();
    let monitor = callers.create("monitor", "monitor", "*");
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let refused = refusal(&channel, reflection, &monitor).await.unwrap();
    assert_eq!(refused.reason, "ROLE_DENIED", "{refused:?}");
    assert!(refusal(&channel, "/grpc.health.v1.Health/Check", &monitor).await.is_none());
}

/// A plan counts users, including those outside the filter.
#[tokio::test(flavor = "multi_thread")]
async fn plans_of_searches_are_for_admins() {
    let callers = Callers::new();
    let [registrar, admin] = ["registrar", "admin"].map(|role| callers.create(role, role, "*"));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let search = async |token: &str, explain: bool| {
        let header = format!("Bearer {token}");
        let request = v1::SearchUsersRequest { explain, ..Default::default() };
        let path = "/polynym.v1.DirectoryService/SearchUsers";
        let answer: Result<v1::SearchUsersResponse, _> =
            call(&channel, path, Some(&header), request).await;
        answer.map(|answer| answer.plan.is_some()).map_err(|status| status_details(status).reason)
    };
    assert_eq!(search(&registrar, false).await, Ok(false));
    assert_eq!(search(&registrar, true).await, Err("ROLE_DENIED".to_owned()));
    assert_eq!(search(&admin, true).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_finds_by_identifiers_alone() {
    let callers = Callers::new();
    let [resolver, viewer] = ["resolver", "viewer"].map(|role| callers.create(role, role, "*"));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let find = async |token: &str, text: &str| {
        let header = format!("Bearer {token}");
        let request = v1::FindUsersRequest { text: text.to_owned(), ..Default::default() };
        let path = "/polynym.v1.DirectoryService/FindUsers";
        let answer: Result<v1::FindUsersResponse, _> =
            call(&channel, path, Some(&header), request).await;
        answer.map(|answer| answer.matches.len()).map_err(|status| {
            let message = status.message().to_owned();
            (status_details(status).reason, message)
        })
    };
    assert_eq!(find(&viewer, "smith joe").await, Ok(1));
    assert_eq!(find(&resolver, "Joe <joe.smith@example.com>").await, Ok(1));
    assert_eq!(find(&resolver, "smith").await, Ok(0), "it is read as a handle");
    let (reason, message) = find(&resolver, "smith joe").await.unwrap_err();
    assert_eq!(reason, "ROLE_DENIED");
    assert!(message.contains("names no identifier") && message.contains("viewer"), "{message}");
    assert!(!message.contains("smith"), "{message}");
}

/// A message after the answer would count as a fault of the connection, and HTTP/2 ends it after
/// 1,024 faults.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_do_not_end_a_connection() {
    let callers = Callers::new();
    let token = callers.create("a", "resolver", "*");
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    for n in 0..4_000 {
        let denied = refusal(&channel, "/polynym.v1.AdminService/PurgeUser", &token).await;
        assert_eq!(denied.unwrap().reason, "ROLE_DENIED", "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_need_a_valid_token() {
    let callers = Callers::new();
    let good = callers.create("a", "resolver", "*");
    let other = Callers::new().create("a", "resolver", "*");
    let soon = callers.run(&["create", "b", "--role", "admin", "--expires", "1s"]);
    let revoked = callers.create("c", "admin", "*");
    callers.run(&["revoke", "c"]);
    std::thread::sleep(Duration::from_millis(1_100));

    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let bearer = |token: &str| format!("Bearer {token}");
    // The secret is 256 bits in base64url, whose letters include the separator.
    let (id, secret) = good.split_at(good.len() - 43);
    let wrong = [
        String::new(),
        good.clone(),
        format!("Basic {good}"),
        bearer(&good[..good.len() - 1]),
        bearer(&format!("{good}A")),
        bearer(&format!("{id}{}", secret.chars().rev().collect::<String>())),
        bearer(&other),
        bearer(soon.trim_end()),
        bearer(&revoked),
        bearer(&"x".repeat(4_000)),
    ];
    let refused = |status: Status| {
        let details = status_details(status);
        assert_eq!(
            (details.code, details.reason.as_str()),
            (Code::Unauthenticated, "CREDENTIAL_INVALID")
        );
    };
    for path in methods().iter().map(|(path, _)| path.as_str()).chain(["/grpc.x/Y", "/"]) {
        refused(call::<_, ()>(&channel, path, None, ()).await.unwrap_err());
    }
    for header in wrong {
        refused(call::<_, ()>(&channel, RESOLVE, Some(&header), ()).await.unwrap_err());
    }
    let missing = refusal(&channel, RESOLVE, &good).await.unwrap();
    assert_eq!(missing.reason, "IDENTIFIER_INVALID", "the credential is good");
    for second in [&good, &other] {
        let mut request = Request::new(());
        for token in [&good, second] {
            request.metadata_mut().append("authorization", bearer(token).parse().unwrap());
        }
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await.unwrap();
        let codec: ProstCodec<(), ()> = ProstCodec::default();
        refused(grpc.unary(request, PathAndQuery::from_static(RESOLVE), codec).await.unwrap_err());
    }

    let health: Result<(), _> = call(&channel, "/grpc.health.v1.Health/Check", None, ()).await;
    health.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_tenant_looks_like_a_missing_one() {
    let callers = Callers::new();
    let header = format!("Bearer {}", callers.create("a", "admin", "eu-*,us"));
    let all = format!("Bearer {}", callers.create("b", "admin", "*"));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;

    let ask = |tenant: &str| v1::GetUserRequest {
        tenant: tenant.to_owned(),
        user_id: "20be0ffc-314a-bd53-7a50-013a65ca76d2".to_owned(),
        read_mask: None,
    };
    let path = "/polynym.v1.DirectoryService/GetUser";
    let get = async |tenant: &str| {
        let status = call::<_, ()>(&channel, path, Some(&header), ask(tenant)).await.unwrap_err();
        (status.code(), status.message().to_owned(), status.details().to_vec())
    };
    let (theirs, absent) = (get("default").await, get("nothing").await);
    assert_eq!(theirs.0, Code::PermissionDenied);
    assert_eq!((&theirs, &get("").await), (&absent, &absent));
    assert_eq!(get("eu-1").await.0, Code::NotFound, "a tenant of its own that does not exist");

    let update = |tenant: &str| v1::UpdateTenantRequest {
        tenant: tenant.to_owned(),
        policies: Some(v1::Policies::default()),
        ..Default::default()
    };
    for tenant in ["ap", "eu-1", "eu-2", "us", "us2"] {
        let path = "/polynym.v1.AdminService/UpdateTenant";
        call::<_, ()>(&channel, path, Some(&all), update(tenant)).await.unwrap();
    }
    let list = async |header: &str, page_size, token: &str| {
        let path = "/polynym.v1.AdminService/ListTenants";
        let page_token = token.to_owned();
        let request = ListTenantsRequest { page_size, page_token, ..Default::default() };
        let page: v1::ListTenantsResponse =
            call(&channel, path, Some(header), request).await.unwrap();
        let names: Vec<_> = page.tenants.into_iter().map(|tenant| tenant.tenant).collect();
        (names, page.next_page_token)
    };
    assert_eq!(list(&header, 2, "").await, (names(&["eu-1", "eu-2"]), "eu-2".to_owned()));
    assert_eq!(list(&header, 2, "eu-2").await, (names(&["us"]), String::new()));
    let (mut taken, alphabet) = (0, b"aeprsuz-01/\0");
    for n in 0..2_000_u32 {
        let random = n.wrapping_mul(2_654_435_761).to_be_bytes();
        let letter = |byte: &u8| char::from(alphabet[usize::from(*byte) % alphabet.len()]);
        let page_token: String = random.iter().map(letter).collect();
        let request = ListTenantsRequest { page_size: 3, page_token, ..Default::default() };
        let path = "/polynym.v1.AdminService/ListTenants";
        match call::<_, v1::ListTenantsResponse>(&channel, path, Some(&header), request).await {
            Ok(page) => {
                let is_own = |name: &str| name.starts_with("eu-") || name == "us";
                assert!(page.tenants.iter().all(|tenant| is_own(&tenant.tenant)), "{page:?}");
                taken += 1;
            }
            Err(status) => assert_eq!(status_details(status).reason, "PAGE_TOKEN_INVALID"),
        }
    }
    assert!((100..2_000).contains(&taken), "{taken}");
    assert_eq!(list(&all, 10, "").await.0, names(&["ap", "default", "eu-1", "eu-2", "us", "us2"]));
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Two callers that chose the same id made two requests.
#[tokio::test(flavor = "multi_thread")]
async fn request_ids_belong_to_their_caller() {
    let callers = Callers::new();
    let headers = ["a", "b"].map(|name| format!("Bearer {}", callers.create(name, "admin", "*")));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let create = async |header: &str| {
        let request = v1::CreateUserRequest {
            user: Some(v1::User { display_name: "X".to_owned(), ..Default::default() }),
            request_id: "0197c8a2-0b7e-7cc0-9d5a-111111111111".to_owned(),
            ..Default::default()
        };
        let path = "/polynym.v1.RegistryService/CreateUser";
        let created: v1::CreateUserResponse =
            call(&channel, path, Some(header), request).await.unwrap();
        created.user.unwrap().user_id
    };
    let first = create(&headers[0]).await;
    assert_eq!(create(&headers[0]).await, first);
    assert_ne!(create(&headers[1]).await, first);
}
