//! The limits of each caller.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polynym_proto::DESCRIPTORS;
use polynym_proto::v1::{self, identifier};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{Callers, RESOLVE, call, connect};
use crate::server::Server;

/// Adds a rate to all entries of the file.
fn limit(callers: &Callers, rate: &str) {
    let text = fs::read_to_string(callers.path()).unwrap();
    let limited = text.replace("token =", &format!("rate = {rate}\ntoken ="));
    fs::write(callers.path(), limited).unwrap();
}

fn handle(name: &str) -> v1::Identifier {
    v1::Identifier { kind: Some(identifier::Kind::Handle(name.to_owned())) }
}

/// Resolves a handle on a new connection.
async fn resolve(server: &Server, token: &str, name: &str) -> Result<(), Status> {
    let request =
        v1::ResolveIdentityRequest { identifier: Some(handle(name)), ..Default::default() };
    let header = format!("Bearer {token}");
    call(&connect(server).await, RESOLVE, Some(&header), request).await
}

fn is_limited(outcome: &Result<(), Status>) -> bool {
    let Err(status) = outcome else { return false };
    let reason = status.get_details_error_info().map(|info| info.reason);
    let is_limited = reason.as_deref() == Some("RATE_LIMITED");
    if is_limited {
        assert_eq!(status.code(), Code::ResourceExhausted);
        let delay = status.get_details_retry_info().and_then(|retry| retry.retry_delay).unwrap();
        assert!(delay > Duration::ZERO && delay < Duration::from_secs(120), "{delay:?}");
    }
    is_limited
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_a_second_are_counted_over_all_connections() {
    let callers = Callers::new();
    let tokens = ["one", "two"].map(|name| callers.create(name, "resolver", "*"));
    limit(&callers, "{ calls = 5 }");
    let server = callers.serve(&[]);
    let mut outcomes = Vec::new();
    let begun = Instant::now();
    for _ in 0..40 {
        outcomes.push(resolve(&server, &tokens[0], "joe").await);
    }
    let most = 5 + (begun.elapsed().as_secs_f64() * 5.0).ceil() as usize;
    let answered = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((5..=most).contains(&answered), "{answered} of at most {most}");
    let limited = outcomes.iter().filter(|outcome| is_limited(outcome)).count();
    assert_eq!(answered + limited, 40);
    resolve(&server, &tokens[1], "joe").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    resolve(&server, &tokens[0], "joe").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn misses_stop_every_look_up_of_their_caller() {
    let callers = Callers::new();
    let tokens = ["one", "two"].map(|name| callers.create(name, "registrar", "*"));
    limit(&callers, "{ misses = 1 }");
    let server = callers.serve(&[]);
    for _ in 0..30 {
        resolve(&server, &tokens[0], "joe").await.unwrap();
    }
    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: (0..100).map(|n| handle(&format!("nobody{n}"))).collect(),
        ..Default::default()
    };
    let header = format!("Bearer {}", tokens[0]);
    let channel = connect(&server).await;
    let path = "/polynym.v1.DirectoryService/BatchResolveIdentities";
    call::<_, ()>(&channel, path, Some(&header), request).await.unwrap();
    // A minute and a half are spent.
    for name in ["joe", "nobody"] {
        let outcome = resolve(&server, &tokens[0], name).await;
        assert!(is_limited(&outcome), "{name}: {outcome:?}");
    }
    resolve(&server, &tokens[1], "joe").await.unwrap();

    let check = v1::CheckIdentityRequest { identifier: Some(handle("joe")), ..Default::default() };
    let header = format!("Bearer {}", tokens[1]);
    let path = "/polynym.v1.DirectoryService/CheckIdentity";
    let mut outcomes = Vec::new();
    for _ in 0..60 {
        outcomes.push(call::<_, ()>(&channel, path, Some(&header), check.clone()).await);
    }
    let limited = outcomes.iter().filter(|outcome| is_limited(outcome)).count();
    assert!((1..60).contains(&limited), "{limited}");
}

/// A request that names users and identifiers that do not exist.
fn request_of_nobody(method: &MethodDescriptor) -> DynamicMessage {
    let mut request = DynamicMessage::new(method.input());
    let decoded = DynamicMessage::decode(
        method.parent_pool().get_message_by_name("polynym.v1.Identifier").unwrap(),
        &*handle("nobody").encode_to_vec(),
    );
    let nobody = Value::Message(decoded.unwrap());
    let id = Value::String("20be0ffc-314a-bd53-7a50-013a65ca76d2".to_owned());
    let text = Value::String("nobody".to_owned());
    for (field, value) in [("user_id", &id), ("identifier", &nobody), ("text", &text)] {
        let _ = request.try_set_field_by_name(field, value.clone());
    }
    for (field, value) in [("user_ids", id), ("identifiers", nobody)] {
        let _ = request.try_set_field_by_name(field, Value::List(vec![value]));
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn every_look_up_of_nobody_is_a_miss() {
    let callers = Callers::new();
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let service = pool.get_service_by_name("polynym.v1.DirectoryService").unwrap();
    // NormalizeIdentity reads nothing; the others are for registrars.
    let others =
        ["NormalizeIdentity", "SearchUsers", "ListHistory", "ListOwners", "ListEvents", "Watch"];
    let methods: Vec<_> =
        service.methods().filter(|method| !others.contains(&method.name())).collect();
    let tokens: Vec<_> = (0..methods.len())
        .map(|n| callers.create(&format!("caller{n}"), "resolver", "*"))
        .collect();
    limit(&callers, "{ misses = 1 }");
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    for (method, token) in methods.iter().zip(tokens) {
        let (path, header) =
            (format!("/{}/{}", service.full_name(), method.name()), format!("Bearer {token}"));
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            let request = request_of_nobody(method);
            outcomes.push(call::<_, ()>(&channel, &path, Some(&header), request).await);
        }
        assert!(outcomes.iter().any(is_limited), "{path}: {outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_half_of_the_connections() {
    let callers = Callers::new();
    let tokens = ["one", "two"].map(|name| callers.create(name, "resolver", "*"));
    let server = callers.serve(&["--max-connections", "8"]);
    let request =
        v1::ResolveIdentityRequest { identifier: Some(handle("joe")), ..Default::default() };
    let headers = tokens.map(|token| format!("Bearer {token}"));
    let mut open = Vec::new();
    for n in 0..5 {
        let channel = connect(&server).await;
        let outcome = call(&channel, RESOLVE, Some(&headers[0]), request.clone()).await;
        assert_eq!(is_limited(&outcome), n == 4, "{n}: {outcome:?}");
        open.push(channel);
    }
    let other = connect(&server).await;
    call::<_, ()>(&other, RESOLVE, Some(&headers[1]), request.clone()).await.unwrap();
    drop(open);
    // Its connections are free once the server has noticed.
    let mut outcome = Err(Status::ok(""));
    for _ in 0..600 {
        let channel = connect(&server).await;
        outcome = call::<_, ()>(&channel, RESOLVE, Some(&headers[0]), request.clone()).await;
        if outcome.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    outcome.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_without_a_valid_call_make_room_for_others() {
    let callers = Callers::new();
    let token = callers.create("one", "resolver", "*");
    let server = callers.serve(&["--max-connections", "40"]);
    let address = server.url.trim_start_matches("http://").to_owned();
    let silent: Vec<_> = (0..35).map(|_| TcpStream::connect(&address).unwrap()).collect();
    resolve(&server, &token, "joe").await.unwrap();
    let is_closed = |stream: &&TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        (&mut &**stream).read(&mut [0]).is_ok_and(|count| count == 0)
    };
    let (since, mut ended) = (Instant::now(), 0);
    while ended < 25 && since.elapsed() < Duration::from_secs(60) {
        ended = silent.iter().filter(is_closed).count();
    }
    assert!((25..=26).contains(&ended), "{ended} of 35: a quarter of 40 may stay");
}
