//! No call reaches another tenant: neither that of a caller of one tenant alone, nor one in a
//! tenant that names users, notices and operations of another.

use std::fs;

use futures_util::stream;
use polynym_proto::DESCRIPTORS;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage,
    Value,
};
use prost_types::method_options::IdempotencyLevel;
use serde_json::Value as Json;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::{Callers, connect};
use crate::server::Server;
use crate::status::status_details;
use testkit::output::{stderr, stdout};

/// Methods whose request names no tenant, or the begin of names.
const WITHOUT_TENANT: [&str; 3] = ["ListTenants", "NormalizeIdentity", "BackupStore"];

/// What the requests name.
struct Names {
    tenant: &'static str,
    user: String,
    other: String,
    notice: String,
}

/// A request whose fields name these things; the first member of each choice.
fn request(of: &MessageDescriptor, names: &Names, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    if of.name() == "Identifier" {
        message.set_field_by_name("handle", Value::String("joe".to_owned()));
        return message;
    }
    for field in of.fields() {
        let is_chosen = field
            .containing_oneof()
            .is_none_or(|oneof| oneof.fields().next() == Some(field.clone()));
        let value = match (field.kind(), field.name()) {
            (Kind::Message(of), _) if depth < 4 && is_chosen && !field.is_map() => {
                match of.full_name().starts_with("polynym.")
                    && !["Identity", "Policies"].contains(&of.name())
                {
                    true => Value::Message(request(&of, names, depth + 1)),
                    false => continue,
                }
            }
            (Kind::String, name) => match name {
                "tenant" => Value::String(names.tenant.to_owned()),
                "secondary_user_id" | "from_user_id" => Value::String(names.other.clone()),
                name if name.starts_with("user_id") || name.ends_with("user_id") => {
                    Value::String(names.user.clone())
                }
                "notice_id" | "notice_ids" => Value::String(names.notice.clone()),
                "bulk_id" | "operation_id" => Value::String("leavers".to_owned()),
                "subject" | "display_name" => Value::String("changed".to_owned()),
                _ => continue,
            },
            (Kind::Bool, "verified" | "force") => Value::Bool(true),
            _ => continue,
        };
        let value = if field.is_list() { Value::List(vec![value]) } else { value };
        message.set_field(&field, value);
    }
    message
}

/// Calls a method, and reads its first answer.
async fn send(
    channel: &Channel,
    method: &MethodDescriptor,
    token: &str,
    names: &Names,
) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let message = request(&method.input(), names, 0);
    let messages = if method.is_client_streaming() { lines(&message) } else { vec![message] };
    let mut request = Request::new(stream::iter(messages));
    let header = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", header);
    let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
    let codec: ProstCodec<DynamicMessage, ()> = ProstCodec::default();
    let path = PathAndQuery::try_from(path).unwrap();
    let mut answers = grpc.streaming(request, path, codec).await?.into_inner();
    while answers.message().await?.is_some() && method.name() != "Watch" {}
    Ok(())
}

/// The messages of an import: options without a tenant, a user of the tenant, and a hold of it.
fn lines(all: &DynamicMessage) -> Vec<DynamicMessage> {
    let mut options = DynamicMessage::new(all.descriptor());
    let mut replacing = all.get_field_by_name("options").unwrap().into_owned();
    if let Value::Message(options) = &mut replacing {
        options.set_field_by_name("on_existing", Value::EnumNumber(4));
        options.clear_field_by_name("tenant");
        options.clear_field_by_name("fields");
    }
    options.set_field_by_name("options", replacing);
    let line = |number, name: &str| {
        let mut line = DynamicMessage::new(all.descriptor());
        line.set_field_by_name("line", Value::I64(number));
        line.set_field_by_name(name, all.get_field_by_name(name).unwrap().into_owned());
        line
    };
    vec![options, line(1, "user"), line(2, "ownerless_hold"), line(3, "tenant_record")]
}

fn methods() -> Vec<MethodDescriptor> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect()
}

fn is_read(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.clone().unwrap_or_default();
    options.idempotency_level() == IdempotencyLevel::NoSideEffects
}

/// A server whose tenant `one` has users in several states, a notice and a bulk change.
struct Scene {
    server: Server,
    file: String,
    users: Vec<String>,
    notice: String,
}

impl Scene {
    fn new(server: Server, file: String) -> Self {
        let mut scene = Self { server, file, users: Vec::new(), notice: String::new() };
        for tenant in ["one", "two"] {
            scene.run(&["tenant", "set", "--create", "--tenant", tenant]);
        }
        for name in ["joe", "eve", "dan", "mia"] {
            let identity = format!("handle:{name}");
            let created = scene.one(&["user", "create", "--identity", &identity]);
            scene.users.push(created["user"]["userId"].as_str().unwrap().to_owned());
        }
        let sent = scene.one(&["inbox", "send", "handle:joe", "--subject", "one"]);
        scene.notice = sent["noticeId"].as_str().unwrap().to_owned();
        let all = ["--filter", "", "--yes", "--operation-id", "leavers", "--follow"];
        let set = ["bulk", "start", "set", "--attribute", "team=search", "--tenant", "one"];
        scene.run(&[&set[..], &all].concat());
        scene.one(&["user", "delete", "handle:dan"]);
        scene.one(&["user", "merge", "handle:joe", "handle:mia"]);
        scene
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.server.run(&[arguments, &["--token-file", &self.file]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// Runs a command in tenant `one`.
    fn one(&self, arguments: &[&str]) -> Json {
        let text = self.run(&[arguments, &["--tenant", "one", "--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Everything in tenant `one`.
    fn content(&self) -> Vec<String> {
        let run =
            |arguments: &[&str]| self.run(&[arguments, &["--tenant", "one", "--json"]].concat());
        vec![
            self.run(&["export", "--tenant", "one"]),
            run(&["inbox", "list", "handle:joe"]),
            run(&["bulk", "get", "leavers"]),
            run(&["tenant", "get"]),
            run(&["tenant", "events"]),
        ]
    }

    fn names(&self, tenant: &'static str, user: usize) -> Names {
        let (user, other) = (self.users[user].clone(), self.users[1].clone());
        Names { tenant, user, other, notice: self.notice.clone() }
    }
}

fn scene() -> (Callers, Scene, String, String) {
    let callers = Callers::new();
    let all = callers.create("all", "admin", "*");
    let two = callers.create("two", "admin", "two");
    let file = callers.path().with_file_name("all.token");
    fs::write(&file, &all).unwrap();
    let server = callers.serve(&[]);
    let scene = Scene::new(server, file.to_str().unwrap().to_owned());
    (callers, scene, all, two)
}

/// A caller of one tenant can call nothing in another.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_one_tenant_reaches_no_other() {
    let (_callers, scene, _, two) = tokio::task::block_in_place(scene);
    let channel = connect(&scene.server).await;
    let before = tokio::task::block_in_place(|| scene.content());
    let mut denied = 0;
    for method in methods().iter().filter(|method| !WITHOUT_TENANT.contains(&method.name())) {
        let refused = send(&channel, method, &two, &scene.names("one", 0)).await;
        let refused = status_details(refused.expect_err(method.name()));
        let found = (refused.code, &*refused.reason);
        assert_eq!(found, (Code::PermissionDenied, "TENANT_DENIED"), "{}", method.name());
        denied += 1;
    }
    assert!(denied > 40, "{denied}");
    assert_eq!(tokio::task::block_in_place(|| scene.content()), before);
}

/// A call in one tenant that names what is in another changes nothing there.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_one_tenant_changes_no_other() {
    let (_callers, scene, all, _) = tokio::task::block_in_place(scene);
    let channel = connect(&scene.server).await;
    let before = tokio::task::block_in_place(|| scene.content());
    let mut methods = methods();
    // The deletion of the tenant is the last call in it.
    methods.sort_by_key(|method| method.name() == "DeleteTenant");
    let (mut done, mut refused) = (Vec::new(), 0);
    for method in &methods {
        for user in 0..scene.users.len() {
            match send(&channel, method, &all, &scene.names("two", user)).await {
                Ok(()) => done.push(method.name().to_owned()),
                Err(status) => {
                    let reason = status_details(status).reason;
                    assert_ne!(reason, "", "{}", method.name());
                    refused += 1;
                }
            }
        }
        if !is_read(method) {
            let after = tokio::task::block_in_place(|| scene.content());
            assert_eq!(after, before, "{}", method.name());
        }
    }
    done.dedup();
    for name in ["StartBulkChange", "UndoOperation", "SendNotice", "UpdateTenant", "DeleteTenant"] {
        assert!(done.iter().any(|known| known == name), "{name} did nothing: {done:?}");
    }
    assert!(refused > 60, "{refused}");
}
