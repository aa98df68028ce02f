//! The log lines of mutations and of calls, and the traces that they belong to.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use polynym_proto::v1;
use serde_json::Value;
use testkit::stubs::directory_service_client::DirectoryServiceClient;

use tonic::{Code, Request};

use super::{Callers, call, connect};
use crate::calls::{email, identity};
use crate::collector::{Received, collector, collector_with_tls};
use crate::scrape::{free_address, metrics};
use crate::server::{Server, polynym};
use crate::support::tls::Authority;

/// The maximum time of a reload.
const TIMEOUT: Duration = Duration::from_secs(60);
const CANARY: &str = "canary-4711@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn each_mutation_has_a_line_without_identifiers() {
    let callers = Callers::new();
    let token = callers.create("sign-up", "admin", "*");
    let log = callers.folder.path().join("log");
    let mut command =
        polynym(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--credentials"]);
    command.arg(callers.path()).stderr(File::create(&log).unwrap());
    let store = format!("embedded:{}", callers.folder.path().join("store").display());
    let server = Server::start_with(&mut command, &["--store", &store]);
    let channel = connect(&server).await;

    let create = async || {
        let user = v1::User {
            display_name: CANARY.to_owned(),
            identities: vec![identity(email(CANARY))],
            ..Default::default()
        };
        let request = v1::CreateUserRequest { user: Some(user), ..Default::default() };
        let path = "/polynym.v1.RegistryService/CreateUser";
        let header = format!("Bearer {token}");
        call::<_, v1::CreateUserResponse>(&channel, path, Some(&header), request).await
    };
    let user_id = create().await.unwrap().user.unwrap().user_id;
    create().await.unwrap_err();
    drop(server);

    let text = fs::read_to_string(log).unwrap();
    assert!(!text.contains("canary"), "{text}");
    assert!(!text.contains(&token), "{text}");
    let parsed = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = parsed.filter(|line| line["message"] == "mutation").collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in &lines {
        assert_eq!(line["caller"], "sign-up");
        assert_eq!((&line["tenant"], &line["method"]), (&"default".into(), &"CreateUser".into()));
        assert!(line["ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!((&lines[0]["user"], &lines[0]["outcome"]), (&user_id.into(), &"done".into()));
    assert_eq!(lines[1]["outcome"], "refused");
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Looks a user up as part of a trace.
async fn resolve_traced(server: &Server) {
    let mut client = DirectoryServiceClient::new(connect(server).await);
    let mut request = Request::new(v1::ResolveIdentityRequest {
        identifier: Some(email(CANARY)),
        ..Default::default()
    });
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    client.resolve_identity(request).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_logged_with_their_trace_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.stderr(File::create(&log).unwrap());
    let server = Server::start_with(&mut command, &["--sample", "--log-calls", "all"]);
    resolve_traced(&server).await;
    drop(server);
    let text = fs::read_to_string(log).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = parsed.filter(|line| line["message"] == "call").collect();
    assert_eq!(lines.len(), 1, "{text}");
    let line = &lines[0];
    assert_eq!((&line["caller"], &line["code"]), (&"anonymous".into(), &"NOT_FOUND".into()));
    assert_eq!(
        (&line["method"], &line["span"]["trace_id"]),
        (&"ResolveIdentity".into(), &TRACE.into())
    );
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_sampled_calls_go_to_a_collector() {
    let (url, received) = collector().await;
    let server = Server::start(&["--sample", "--otlp", &url, "--otlp-sample", "0"]);
    resolve_traced(&server).await;
    server.run(&["resolve", "handle:joe"]);
    server.signal("TERM");
    wait_for_spans(&received).await;
    assert!(received.has(b"ResolveIdentity") && received.has(b"anonymous"));
    let count = |part: &[u8]| received.bytes().windows(part.len()).filter(|w| *w == part).count();
    assert_eq!(count(b"rpc.method"), 1, "the other call is in no trace that is sampled");
    let trace: Vec<_> =
        (0..16).map(|n| u8::from_str_radix(&TRACE[2 * n..2 * n + 2], 16).unwrap()).collect();
    // The operations of the store are in the trace of their call.
    let operations = count(b"db.operation.name");
    assert_eq!((count(b"store resolve"), count(&trace)), (1, 1 + operations));
    assert!(received.has(b"polynym") && !received.has(b"unknown_service"));
    assert!(!received.has(b"canary") && !received.has(b"joe"));
}

/// Waits until a server that has been stopped has sent its spans.
async fn wait_for_spans(received: &Received) {
    for _ in 0..600 {
        if !received.bytes().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("there are no spans");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_variables_of_opentelemetry_configure_the_export() {
    let authority = Authority::new();
    let (url, received) = collector_with_tls(&authority).await;
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0"]);
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", &authority.path("ca.pem")),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=users%20of%20all"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial"),
        ("OTEL_SERVICE_NAME", "directory"),
    ] {
        command.env(name, value);
    }
    let server = Server::start_with(&mut command, &["--sample"]);
    resolve_traced(&server).await;
    server.signal("TERM");
    wait_for_spans(&received).await;
    for part in ["ResolveIdentity", "deployment.environment.name", "trial", "directory"] {
        assert!(received.has(part.as_bytes()), "{part}");
    }
    assert!(received.headers().contains("users of all"), "{}", received.headers());

    command.env("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "none.pem");
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: none.pem"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_leaves_its_id_in_the_log_and_in_a_metric() {
    let callers = Callers::new();
    let good = callers.create("good", "resolver", "*");
    let expired = callers.run(&["create", "former", "--role", "resolver", "--expires", "1s"]);
    let expired = expired.trim_end();
    std::thread::sleep(Duration::from_millis(1_100));
    let (log, operators) = (callers.folder.path().join("log"), free_address());
    let mut command =
        polynym(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--credentials"]);
    command.arg(callers.path()).stderr(File::create(&log).unwrap());
    let admin = ["--sample", "--admin-listen", &operators.to_string()];
    let server = Server::start_with(&mut command, &admin);
    let channel = connect(&server).await;

    let id = expired.split('_').nth(1).unwrap();
    let other = format!("pn_{id}_{}", "A".repeat(43));
    for token in [expired, &other, &good] {
        let path = "/polynym.v1.DirectoryService/ResolveIdentity";
        let request =
            v1::ResolveIdentityRequest { identifier: Some(email(CANARY)), ..Default::default() };
        let header = format!("Bearer {token}");
        let answer: Result<v1::ResolveIdentityResponse, _> =
            call(&channel, path, Some(&header), request).await;
        let is_known = token == good;
        let code = if is_known { Code::NotFound } else { Code::Unauthenticated };
        assert_eq!(answer.unwrap_err().code(), code);
    }
    let scraped = metrics(operators);
    let seconds = |caller: &str| {
        let name = format!("polynym_credential_expires_seconds{{caller=\"{caller}\"}} ");
        let value = scraped.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("{scraped}")).parse::<f64>().unwrap()
    };
    assert!((-3_600.0..0.0).contains(&seconds("former")), "{scraped}");
    let year = 365.0 * 86_400.0;
    assert!((year - 3_600.0..=year + 86_400.0).contains(&seconds("good")), "{scraped}");

    callers.run(&["revoke", "former"]);
    let (since, revoked) = (Instant::now(), "{caller=\"former\"} NaN\n");
    while !metrics(operators).contains(revoked) {
        assert!(since.elapsed() < TIMEOUT, "{}", metrics(operators));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(server);

    let text = fs::read_to_string(log).unwrap();
    assert!(!text.contains(expired) && !text.contains(&good), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused: Vec<_> = lines.filter(|line| line["token"].is_string()).collect();
    assert_eq!(refused.len(), 1, "{text}");
    assert_eq!((&refused[0]["token"], &refused[0]["caller"]), (&id.into(), &"former".into()));
}
