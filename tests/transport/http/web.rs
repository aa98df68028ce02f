//! The protocols for browsers: gRPC-Web, and watches as lines and as server-sent events.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use polynym_proto::v1;
use prost::Message;
use serde_json::Value;
use testkit::http::{HttpClient, envelope, envelopes};

use super::{EXPORT, JSON, RESOLVE, connections, serve};

const BINARY: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text";
const WATCH: &str = "/polynym.v1.DirectoryService/Watch";

fn resolve(handle: &str) -> Vec<u8> {
    let handle = v1::identifier::Kind::Handle(handle.to_owned());
    let identifier = v1::Identifier { kind: Some(handle) };
    let request = v1::ResolveIdentityRequest { identifier: Some(identifier), ..Default::default() };
    envelope(&request.encode_to_vec())
}

/// Decodes parts in base64, each of which may be padded.
fn decoded(text: &[u8]) -> Vec<u8> {
    text.chunks(4).flat_map(|part| STANDARD.decode(part).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_web_has_its_trailers_in_the_body() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let found = client.post(RESOLVE, BINARY, &[], resolve("joe")).await;
        assert_eq!((found.status, found.header("content-type")), (200, BINARY));
        let [(0, message), (0x80, trailers)] = envelopes(&found.body)[..] else {
            panic!("{:?}", found.body)
        };
        let response = v1::ResolveIdentityResponse::decode(message).unwrap();
        assert_eq!(response.user.unwrap().display_name, "Joe Smith");
        assert!(trailers.starts_with(b"grpc-status: 0\r\n"), "{trailers:?}");

        let unknown = client.post(RESOLVE, BINARY, &[], resolve("nobody")).await;
        let [(0x80, trailers)] = envelopes(&unknown.body)[..] else { panic!("{:?}", unknown.body) };
        let trailers = str::from_utf8(trailers).unwrap();
        assert!(trailers.contains("grpc-status: 5\r\n"), "{trailers}");
        assert!(trailers.contains("grpc-status-details-bin: "), "{trailers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_web_may_be_text() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let body = STANDARD.encode(resolve("joe"));
        let found = client.post(RESOLVE, TEXT, &[], body).await;
        let bytes = decoded(&found.body);
        let [(0, _), (0x80, trailers)] = envelopes(&bytes)[..] else { panic!("{bytes:?}") };
        assert!(trailers.starts_with(b"grpc-status: 0"), "{trailers:?}");

        let broken = client.post(RESOLVE, TEXT, &[], "***").await;
        let bytes = decoded(&broken.body);
        let [(0x80, trailers)] = envelopes(&bytes)[..] else { panic!("{bytes:?}") };
        assert!(trailers.starts_with(b"grpc-status: 3"), "{trailers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_responses_are_in_grpc_web_and_streams_of_requests_are_not() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let export = client.post(EXPORT, BINARY, &[], envelope(&[])).await;
        let frames = envelopes(&export.body);
        assert!(frames.len() > 1, "{frames:?}");
        let (flag, trailers) = frames[frames.len() - 1];
        assert_eq!((flag, &trailers[..14]), (0x80, &b"grpc-status: 0"[..]));

        let import = "/polynym.v1.AdminService/ImportUsers";
        assert_eq!(client.post(import, BINARY, &[], envelope(&[])).await.status, 415);
        let wrong = [("grpc-timeout", "soon")];
        let late = client.post(RESOLVE, BINARY, &wrong, resolve("joe")).await;
        let [(0x80, trailers)] = envelopes(&late.body)[..] else { panic!("{:?}", late.body) };
        assert!(trailers.starts_with(b"grpc-status: 3"), "{trailers:?}");
    }
}

/// Reads a response until it has the text.
async fn read_until(body: &mut Incoming, text: &str) -> String {
    let mut read = BytesMut::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        read.extend(body.frame().await.unwrap().unwrap().into_data().ok());
    }
    String::from_utf8(read.to_vec()).unwrap()
}

async fn create(client: &mut HttpClient, name: &str) {
    let path = "/polynym.v1.RegistryService/CreateUser";
    let user = format!(r#"{{"user":{{"displayName":"{name}"}}}}"#);
    assert_eq!(client.post(path, JSON, &[], user).await.status, 200);
}

fn request(method: &str, uri: String) -> http::request::Builder {
    Request::builder().method(method).uri(uri)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_may_be_lines() {
    let (_server, url) = serve(&[]);
    let [mut writer, mut reader] = connections(&url).await;
    let request = request("POST", WATCH.to_owned()).header("content-type", JSON);
    let response = reader.open(request.body(Full::new(Bytes::from("{}"))).unwrap()).await;
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let mut body = response.into_body();
    read_until(&mut body, "heartbeat").await;
    create(&mut writer, "Ann").await;
    let line = read_until(&mut body, "\n").await;
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["event"]["method"], "CreateUser", "{line}");
    assert!(line["resumeToken"].is_string(), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_may_be_server_sent_events_and_resumes_after_the_last_one() {
    let (_server, url) = serve(&[]);
    let [mut writer, mut reader] = connections(&url).await;
    let address = format!("{WATCH}?types=user_created");
    let events = |id: Option<&str>| {
        let mut request = request("GET", address.clone()).header("accept", "text/event-stream");
        if let Some(id) = id {
            request = request.header("last-event-id", id);
        }
        request.body(Full::default()).unwrap()
    };
    let response = reader.open(events(None)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = read_until(&mut response.into_body(), "\n\n").await;
    assert!(first.starts_with("event: heartbeat\nid: "), "{first}");
    let id = first.lines().nth(1).unwrap().strip_prefix("id: ").unwrap();

    create(&mut writer, "Ann").await;
    let [_, mut reader] = connections(&url).await;
    let mut body = reader.open(events(Some(id))).await.into_body();
    let read = read_until(&mut body, "userCreated").await;
    let event = read.split("\n\n").find(|event| event.contains("userCreated")).unwrap();
    assert!(event.starts_with("id: "), "{read}");

    let wrong = request("GET", format!("{WATCH}?user=1")).header("accept", "text/event-stream");
    let response = writer.send(wrong.body(Full::default()).unwrap()).await;
    assert_eq!((response.status, &*response.reason()), (400, "FIELD_INVALID"));
    // Without the header, a GET is no call.
    let other = request("GET", WATCH.to_owned()).body(Full::default()).unwrap();
    let response = writer.send(other).await;
    assert_eq!((response.status, response.header("allow")), (405, "GET, POST"));
    let message = response.json()["message"].to_string();
    assert!(message.contains("accept: text/event-stream"), "{message}");
}
