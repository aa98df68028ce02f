//! Bad input: each is refused in Connect's form, and the connection stays usable.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;
use testkit::http::{HttpClient, HttpResponse, envelope, envelopes};

use super::{EXPORT, JOE, JSON, RESOLVE, connections, serve};

/// A name that no test expects in an error.
const CHECK: &str = "/polynym.v1.DirectoryService/CheckIdentity";

async fn is_usable(client: &mut HttpClient) {
    assert_eq!(client.post(RESOLVE, JSON, &[], JOE).await.status, 200);
}

/// The HTTP status, the code and the reason of an error.
fn refusal(response: &HttpResponse) -> (u16, String, String) {
    assert_eq!(response.header("content-type"), JSON);
    let code = response.json()["code"].as_str().unwrap().to_owned();
    (response.status, code, response.reason())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_not_of_their_type_are_refused_and_named() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let invalid = (400, "invalid_argument".to_owned(), "MESSAGE_INVALID".to_owned());
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        for (text, named) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("null", "null"),
            ("[]", "sequence"),
            ("\"joe\"", "string"),
            ("{} {}", "trailing"),
            ("identifier=joe", "expected"),
            (r#"{"identifer":{"handle":"joe"}}"#, "identifer"),
            (r#"{"identifier":{"handel":"joe"}}"#, "handel"),
            (r#"{"identifier":{"handle":"joe","handle":"joe"}}"#, "oneof"),
            (r#"{"identifier":{"handle":"joe"},"showDisabled":true,"showDisabled":true}"#, "twice"),
            (r#"{"identifier":"joe"}"#, "expected a map"),
            (r#"{"identifier":{"handle":7}}"#, "integer"),
            (r#"{"identifier":{"phone":{"number":14155552671}}}"#, "integer"),
            (r#"{"identifier":{"phone":{"number":1415555.2671}}}"#, "floating point"),
            (r#"{"identifier":{"joe@example.com":1}}"#, "field name"),
            (r#"{"identifier":{"+14155552671":1}}"#, "field name"),
            (r#"{"joe@example.com":1,"joe@example.com":2}"#, "field name"),
            (r#"{"identifier":{"handle":["joe"]}}"#, "sequence"),
            (r#"{"identifier":{"handle":"joe","email":"joe@example.com"}}"#, "oneof"),
            (r#"{"identifier":{"handle":"joe"},"consistency":"SOON"}"#, "enum value"),
            (r#"{"identifier":{"handle":"joe"},"showDisabled":"yes"}"#, "string"),
            (r#"{"identifier":{"handle":"joe"},"asOf":"yesterday"}"#, ""),
            (&format!(r#"{{"identifier":{deep}}}"#), "sequence"),
            ("{\"identifier\":{\"handle\":\"\u{fffd}", "EOF"),
        ] {
            let response = client.post(RESOLVE, JSON, &[], text.to_owned()).await;
            assert_eq!(refusal(&response), invalid, "{text}");
            let message = response.json()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(named), "{text}: {message}");
            let is_quoted = ["joe", "1415", "2671"].iter().any(|value| message.contains(value));
            assert!(!is_quoted, "values may be personal data: {message}");
        }
        let no_text = client.post(RESOLVE, JSON, &[], &b"{\"\xff\":1}"[..]).await;
        assert_eq!(refusal(&no_text), invalid);
        let binary = client.post(RESOLVE, "application/proto", &[], &b"\x0a\xff"[..]).await;
        assert_eq!(refusal(&binary), invalid);
        is_usable(&mut client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_calls_are_refused() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        for (path, content_type) in [
            (RESOLVE, "text/plain"),
            (RESOLVE, "application/x-www-form-urlencoded"),
            (RESOLVE, "application/grpc"),
            (RESOLVE, "application/connect+json"),
            (EXPORT, "text/plain"),
            (EXPORT, "application/proto"),
            ("/polynym.v1.AdminService/FindDuplicates", JSON),
            ("/polynym.v1.AdminService/ImportUsers", JSON),
            ("/polynym.v1.AdminService/ImportUsers", "application/connect+json"),
        ] {
            let response = client.post(path, content_type, &[], JOE).await;
            let refused = (415, "unknown".to_owned(), "CONTENT_TYPE_WRONG".to_owned());
            assert_eq!(refusal(&response), refused, "{path} {content_type}");
        }
        let lines = "/polynym.v1.AdminService/ImportUsers";
        let by_curl = client.post(lines, "application/x-www-form-urlencoded", &[], "{}{}").await;
        let message = by_curl.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("--data-binary"), "{message}");
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH] {
            let uri = format!("{RESOLVE}?message=%7B%7D&encoding=json&connect=v1");
            let request = Request::builder().method(&method).uri(uri).body(Full::default());
            let response = client.send(request.unwrap()).await;
            let refused = (405, "unknown".to_owned(), "HTTP_METHOD_WRONG".to_owned());
            assert_eq!(refusal(&response), refused, "{method}");
            assert_eq!(response.header("allow"), "POST");
        }
        for path in ["/", "/polynym.v1.DirectoryService", &format!("{RESOLVE}/"), "//", "/x?y=z"] {
            let response = client.post(path, JSON, &[], JOE).await;
            let refused = (404, "unimplemented".to_owned(), "METHOD_UNKNOWN".to_owned());
            assert_eq!(refusal(&response), refused, "{path}");
        }
        let misspelt = client.post(&CHECK.replace("Check", "Chek"), JSON, &[], JOE).await;
        let message = misspelt.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("did you mean {CHECK}?")), "{message}");
        is_usable(&mut client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_headers_are_refused() {
    let (_server, url) = serve(&[]);
    let large = "x".repeat(9 << 10);
    for mut client in connections(&url).await {
        for (header, expected) in [
            (("connect-timeout-ms", "1s"), (400, "invalid_argument", "TIMEOUT_INVALID")),
            (("connect-timeout-ms", "99999999999"), (400, "invalid_argument", "TIMEOUT_INVALID")),
            (
                ("connect-protocol-version", "2"),
                (400, "invalid_argument", "PROTOCOL_VERSION_INVALID"),
            ),
            (("content-encoding", "br"), (501, "unimplemented", "COMPRESSION_UNSUPPORTED")),
            (("x-large", &*large), (431, "resource_exhausted", "HEADERS_TOO_LARGE")),
        ] {
            let response = client.post(RESOLVE, JSON, &[header], JOE).await;
            let (status, code, reason) = refusal(&response);
            assert_eq!((status, &*code, &*reason), expected, "{}", header.0);
            is_usable(&mut client).await;
        }
        // Streams report it in their last message.
        let header = [("connect-timeout-ms", "soon")];
        let sent = envelope(b"{}");
        let response = client.post(EXPORT, "application/connect+json", &header, sent).await;
        let [(2, end)] = envelopes(&response.body)[..] else { panic!("{response:?}") };
        let end: Value = serde_json::from_slice(end).unwrap();
        assert_eq!((response.status, &end["error"]["code"]), (200, &"invalid_argument".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_takes_one_message() {
    let (_server, url) = serve(&[]);
    let one = envelope(b"{}");
    let unknown_flags = [&[8][..], &one[1..]].concat();
    let compressed = [&[1][..], &one[1..]].concat();
    let large = [&[0][..], &u32::MAX.to_be_bytes(), b"{}"].concat();
    for mut client in connections(&url).await {
        for (sent, code) in [
            (Vec::new(), "unimplemented"),
            ([&one[..], &one].concat(), "unimplemented"),
            (one[..6].to_vec(), "invalid_argument"),
            (one[..3].to_vec(), "invalid_argument"),
            (unknown_flags.clone(), "invalid_argument"),
            (compressed.clone(), "internal"),
            (large.clone(), "resource_exhausted"),
        ] {
            let shown = format!("{sent:?}");
            let response = client.post(EXPORT, "application/connect+json", &[], sent).await;
            let [(2, end)] = envelopes(&response.body)[..] else { panic!("{shown}: {response:?}") };
            let end: Value = serde_json::from_slice(end).unwrap();
            assert_eq!(end["error"]["code"], code, "{shown}");
        }
        is_usable(&mut client).await;
    }
}

/// What is unpacked counts, in bytes and in values.
#[tokio::test(flavor = "multi_thread")]
async fn large_messages_are_refused_by_what_they_unpack_to() {
    let (server, url) = serve(&[]);
    let before = server.memory();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..256 {
        bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let too_large = (429, "resource_exhausted".to_owned(), "MESSAGE_TOO_LARGE".to_owned());
    let batch = "/polynym.v1.DirectoryService/BatchResolveIdentities";
    for mut client in connections(&url).await {
        for _ in 0..4 {
            let gzip = [("content-encoding", "gzip")];
            for content_type in [JSON, "application/proto"] {
                let response = client.post(RESOLVE, content_type, &gzip, bomb.clone()).await;
                assert_eq!(refusal(&response), too_large, "{content_type}");
            }
        }
        let not_gzip = client.post(RESOLVE, JSON, &[("content-encoding", "gzip")], JOE).await;
        assert_eq!(refusal(&not_gzip).2, "MESSAGE_INVALID");
        // Two bytes each, and more than a hundred as messages.
        let items = format!("{{\"identifiers\":[{}{{}}]}}", "{},".repeat(300_000));
        for _ in 0..4 {
            let response = client.post(batch, JSON, &[], items.clone()).await;
            let reason = response.reason();
            assert!(["OVERLOADED", "BATCH_TOO_LARGE"].contains(&&*reason), "{reason}");
        }
        is_usable(&mut client).await;
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 256 << 20, "{} MiB", grown >> 20);
}
