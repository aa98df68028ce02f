//! Requests in the forms that the JSON of protocol buffers allows, and how they are sent.

use std::io::Write;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testkit::http::{envelope, envelopes};

use super::{EXPORT, JOE, JSON, RESOLVE, connections, serve};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_that_of_protocol_buffers() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let search = "/polynym.v1.DirectoryService/SearchUsers";
        // Numbers as texts, names of fields in both spellings, enums by name and by number, null.
        for request in [
            r#"{"pageSize":3}"#,
            r#"{"page_size":"3"}"#,
            r#"{"pageSize":3.0,"pageToken":null}"#,
            " {\n\t\"pageSize\": 3 } ",
        ] {
            let response = client.post(search, JSON, &[], request).await;
            assert_eq!(response.status, 200, "{request}: {}", response.json());
            assert_eq!(response.json()["users"].as_array().unwrap().len(), 3, "{request}");
        }
        for consistency in ["\"CONSISTENCY_LINEARIZABLE\"", "2"] {
            let request =
                format!(r#"{{"identifier":{{"handle":"joe"}},"consistency":{consistency}}}"#);
            let response = client.post(RESOLVE, JSON, &[], request).await;
            assert_eq!(response.status, 200, "{}", response.json());
        }
        // 64-bit numbers are texts in answers, and times have RFC 3339's form.
        let names = "/polynym.v1.AdminService/GetUsage";
        let response = client.post(names, JSON, &[], "{}").await;
        assert_eq!(response.status, 200, "{}", response.json());
        for charset in ["charset=UTF-8", "charset=\"utf8\"", "charset=iso-8859-1;q=1", "charset"] {
            let content_type = format!("{JSON}; {charset}");
            assert_eq!(client.post(RESOLVE, &content_type, &[], JOE).await.status, 200);
        }
        let marked = format!("\u{feff}{JOE}");
        assert_eq!(client.post(RESOLVE, JSON, &[], marked).await.status, 200);
        let marked = envelope("\u{feff}{}".as_bytes());
        let response = client.post(EXPORT, "application/connect+json", &[], marked).await;
        assert_eq!(envelopes(&response.body).last(), Some(&(2, &b"{}"[..])));
        let version = [("connect-protocol-version", "1"), ("connect-timeout-ms", "20000")];
        assert_eq!(client.post(RESOLVE, JSON, &version, JOE).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_of_all_types_survive_a_round_trip() {
    let (_server, url) = serve(&[]);
    for (n, mut client) in connections(&url).await.into_iter().enumerate() {
        let attributes = json!({
            "text": {"stringValue": "é\u{1f600}\"\\"},
            "large": {"intValue": "9007199254740993"},
            "small": {"intValue": "-9223372036854775808"},
            "real": {"doubleValue": 0.5},
            "yes": {"boolValue": true},
            "time": {"timeValue": "2026-01-31T12:00:00.500Z"},
            "list": {"listValue": {"values": ["a", "b"]}},
        });
        let known = attributes.as_object().unwrap().clone();
        let request = json!({
            "user": {"displayName": "All", "attributes": attributes},
            "requestId": format!("20be0ffc-314a-4d53-8a50-013a65ca76d{n}"),
        });
        let create = "/polynym.v1.RegistryService/CreateUser";
        let created = client.post(create, JSON, &[], request.to_string()).await;
        assert_eq!(created.status, 200, "{}", created.json());
        let id = created.json()["user"]["userId"].as_str().unwrap().to_owned();
        let get = "/polynym.v1.DirectoryService/GetUser";
        let read = client.post(get, JSON, &[], json!({ "userId": id }).to_string()).await.json();
        for (name, value) in known {
            assert_eq!(read["user"]["attributes"][&name], value, "{name}: {read}");
        }
        // The same request id: the same user.
        let again = client.post(create, JSON, &[], request.to_string()).await;
        assert_eq!(again.json()["user"]["userId"].as_str(), Some(&*id));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_may_be_compressed() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let sent = [("content-encoding", "gzip"), ("accept-encoding", "gzip")];
        let response = client.post(RESOLVE, JSON, &sent, gzip(JOE.as_bytes())).await;
        assert_eq!((response.status, response.header("content-encoding")), (200, "gzip"));
        let decoded: Value = serde_json::from_reader(GzDecoder::new(&*response.body)).unwrap();
        assert_eq!(decoded["user"]["displayName"], "Joe Smith");

        let mut sent = envelope(&gzip(b"{}"));
        sent[0] = 1;
        let headers = [("connect-content-encoding", "gzip")];
        let response = client.post(EXPORT, "application/connect+json", &headers, sent).await;
        let exported = envelopes(&response.body);
        assert!(exported.len() > 10, "{}", exported.len());
        assert_eq!(exported.last(), Some(&(2, &b"{}"[..])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_in_front_of_all_paths() {
    let (_server, url) = serve(&["--http-prefix", "/polynym"]);
    let url = url.trim_end_matches("/polynym");
    for mut client in connections(url).await {
        let prefixed = format!("/polynym{RESOLVE}");
        assert_eq!(client.post(&prefixed, JSON, &[], JOE).await.status, 200);
        for other in [RESOLVE, "/polynymx/healthz", "/healthz", "/polynym"] {
            assert_eq!(client.post(other, JSON, &[], JOE).await.status, 404, "{other}");
        }
    }
}

/// Proxies such as nginx would otherwise keep a stream until it has filled their buffer.
#[tokio::test(flavor = "multi_thread")]
async fn proxies_do_not_collect_streams() {
    let (_server, url) = serve(&[]);
    for mut client in connections(&url).await {
        let envelopes = ("application/connect+json", envelope(b"{}"));
        for (content_type, sent) in [envelopes, (JSON, b"{}".to_vec())] {
            let response = client.post(EXPORT, content_type, &[], sent).await;
            assert_eq!(response.header("x-accel-buffering"), "no", "{content_type}");
        }
        let import = "/polynym.v1.AdminService/ImportUsers";
        let response = client.post(import, "application/x-ndjson", &[], "nonsense").await;
        assert_eq!(response.header("x-accel-buffering"), "no");
        for whole in [JOE, "nonsense"] {
            let response = client.post(RESOLVE, JSON, &[], whole).await;
            assert_eq!(response.header("x-accel-buffering"), "");
        }
    }
}
