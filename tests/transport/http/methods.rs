//! Every method of the descriptors answers over HTTP as over gRPC.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::Request;
use http_body_util::{BodyExt, Full};
use polynym_proto::DESCRIPTORS;
use polynym_proto::v1::{self, identifier};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};
use prost_types::method_options::IdempotencyLevel;
use testkit::http::{HttpClient, envelope, envelopes};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::VERSIONS;
use crate::access::Callers;
use crate::reflection::Dynamic;
use crate::scrape::{free_address, metrics};

/// The first answer: a message, none (of a stream that is open or has ended), or an error.
type Outcome = Result<Option<DynamicMessage>, Failure>;

/// The code, the message, and the details of an error.
#[derive(Debug, PartialEq)]
struct Failure {
    code: String,
    message: String,
    details: Vec<(String, Vec<u8>)>,
}

const JOES_ID: &str = "5bcb4db0-05a3-b000-001e-019b8d627a80";

fn methods() -> Vec<MethodDescriptor> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let all = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    all.filter(|method| !method.is_client_streaming()).collect()
}

fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// A permitted watch lasts an hour: its first message suffices.
fn is_watch(method: &MethodDescriptor) -> bool {
    method.name() == "Watch"
}

fn is_read(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.clone().unwrap_or_default();
    options.idempotency_level() == IdempotencyLevel::NoSideEffects
}

/// A request that names Joe for reads, and nothing for others: those are answered alike each time.
fn request(method: &MethodDescriptor) -> DynamicMessage {
    let mut request = DynamicMessage::new(method.input());
    if !is_read(method) {
        return request;
    }
    let joe = v1::Identifier { kind: Some(identifier::Kind::Handle("Joe".to_owned())) };
    let identifier = method.parent_pool().get_message_by_name("polynym.v1.Identifier").unwrap();
    let joe = DynamicMessage::decode(identifier, &*joe.encode_to_vec()).unwrap();
    let (joe, id) = (Value::Message(joe), Value::String(JOES_ID.to_owned()));
    for (field, value) in [("user_id", &id), ("identifier", &joe)] {
        let _ = request.try_set_field_by_name(field, value.clone());
    }
    for (field, value) in [("user_ids", id), ("identifiers", joe)] {
        let _ = request.try_set_field_by_name(field, Value::List(vec![value]));
    }
    request
}

fn code_name(code: Code) -> String {
    let words = format!("{code:?}").replace("Cancelled", "Canceled");
    let mut name = String::new();
    for c in words.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

async fn by_grpc(channel: &Channel, method: &MethodDescriptor, token: Option<&str>) -> Outcome {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let mut call = tonic::Request::new(stream::iter([request(method)]));
    if let Some(token) = token {
        let header = format!("Bearer {token}").parse().unwrap();
        call.metadata_mut().insert("authorization", header);
    }
    let route = PathAndQuery::try_from(path(method)).unwrap();
    let answer = async {
        let mut answers = grpc.streaming(call, route, Dynamic(method.output())).await?.into_inner();
        let first = answers.message().await?;
        while !is_watch(method) && answers.message().await?.is_some() {}
        Ok(first)
    };
    answer.await.map_err(|status: Status| {
        let rich = tonic_types::Status::decode(status.details()).unwrap();
        let name = |url: &str| url.rsplit('/').next().unwrap().to_owned();
        let details = rich.details.into_iter().map(|any| (name(&any.type_url), any.value));
        Failure {
            code: code_name(status.code()),
            message: status.message().to_owned(),
            details: details.collect(),
        }
    })
}

fn failure(error: &serde_json::Value) -> Failure {
    let details = error["details"].as_array().unwrap().iter().map(|detail| {
        let value = STANDARD_NO_PAD.decode(detail["value"].as_str().unwrap()).unwrap();
        (detail["type"].as_str().unwrap().to_owned(), value)
    });
    Failure {
        code: error["code"].as_str().unwrap().to_owned(),
        message: error["message"].as_str().unwrap().to_owned(),
        details: details.collect(),
    }
}

async fn by_http(
    client: &mut HttpClient,
    method: &MethodDescriptor,
    token: Option<&str>,
    is_json: bool,
) -> Outcome {
    let message = match is_json {
        true => serde_json::to_vec(&request(method)).unwrap(),
        false => request(method).encode_to_vec(),
    };
    let codec = if is_json { "json" } else { "proto" };
    let is_stream = method.is_server_streaming();
    let (content_type, body) = match is_stream {
        true => (format!("application/connect+{codec}"), envelope(&message)),
        false => (format!("application/{codec}"), message),
    };
    let mut builder = Request::post(path(method)).header("content-type", &content_type);
    if let Some(token) = token {
        builder = builder.header("authorization", format!("Bearer {token}"));
    }
    let decode = |bytes: &[u8]| match is_json {
        true => {
            let mut json = serde_json::Deserializer::from_slice(bytes);
            DynamicMessage::deserialize(method.output(), &mut json).unwrap()
        }
        false => DynamicMessage::decode(method.output(), bytes).unwrap(),
    };
    let request = builder.body(Full::from(body)).unwrap();
    if !is_stream {
        let response = client.send(request).await;
        if response.status == 200 {
            assert_eq!(response.header("content-type"), content_type);
            return Ok(Some(decode(&response.body)));
        }
        return Err(failure(&response.json()));
    }

    let (parts, mut body) = client.open(request).await.into_parts();
    assert_eq!(parts.status, 200);
    assert_eq!(parts.headers["content-type"], content_type.as_str());
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
        if is_watch(method) && !envelopes(&bytes).is_empty() {
            break;
        }
    }
    match envelopes(&bytes).first() {
        Some((0, message)) => Ok(Some(decode(message))),
        Some((2, end)) => {
            let end: serde_json::Value = serde_json::from_slice(end).unwrap();
            end.get("error").map_or(Ok(None), |error| Err(failure(error)))
        }
        Some(other) => panic!("{other:?}"),
        None => Ok(None),
    }
}

/// The outcomes over HTTP/1.1 and HTTP/2, each as JSON and as protocol buffers.
async fn all_by_http(
    url: &str,
    method: &MethodDescriptor,
    token: Option<&str>,
) -> Vec<(String, Outcome)> {
    let ways = VERSIONS.into_iter().flat_map(|version| [(version, true), (version, false)]);
    let calls = ways.map(async |(version, is_json)| {
        let mut client = HttpClient::connect(url, version).await;
        let outcome = by_http(&mut client, method, token, is_json).await;
        (format!("{version:?}, JSON {is_json}"), outcome)
    });
    if token.is_none() {
        // Refusals take 100 ms.
        return join_all(calls).await;
    }
    stream::iter(calls).then(|call| call).collect().await
}

/// Callers of each role, one for another tenant alone, and none.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_answers_as_over_grpc() {
    let callers = Callers::new();
    let mut tokens: Vec<_> = ["resolver", "viewer", "registrar", "admin"]
        .map(|role| Some(callers.create(role, role, "*")))
        .to_vec();
    tokens.push(Some(callers.create("foreign", "admin", "another")));
    tokens.push(None);
    let operators = free_address();
    let mut server =
        callers.serve(&["--http-listen", "127.0.0.1:0", "--admin-listen", &operators.to_string()]);
    let url = server.http_url();
    let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();

    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for method in methods() {
        for token in &tokens {
            let expected = by_grpc(&channel, &method, token.as_deref()).await;
            let outcomes = all_by_http(&url, &method, token.as_deref()).await;
            let name = expected.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok");
            *counts.entry(name.to_owned()).or_default() += 1;
            for (way, outcome) in outcomes {
                let position = format!("{} over {way}", path(&method));
                // Usage counts these calls, a stream tells the time of its start, and owners are
                // known since a time that moves on.
                let is_same = is_read(&method)
                    && !method.is_server_streaming()
                    && !["GetUsage", "ListOwners"].contains(&method.name());
                match (&expected, outcome) {
                    (Ok(_), Ok(_)) if !is_same => {}
                    (expected, outcome) => assert_eq!(*expected, outcome, "{position}"),
                }
            }
        }
    }
    println!("{counts:?}");
    for name in ["ok", "unauthenticated", "permission_denied", "invalid_argument"] {
        assert!(counts[name] > 20, "{name}: {counts:?}");
    }

    // Each call was counted once: of gRPC's, and of the four over HTTP. A watch that its caller
    // left is counted once the server has noticed.
    let is_whole =
        |line: &&str| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap() % 5 == 0;
    let start = Instant::now();
    loop {
        let scraped = metrics(operators);
        let of_calls = scraped.lines().filter(|line| line.starts_with("polynym_calls_total{"));
        let (whole, partial): (Vec<_>, Vec<_>) = of_calls.partition(is_whole);
        if partial.is_empty() {
            assert!(whole.len() > 150, "{whole:?}");
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{partial:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
