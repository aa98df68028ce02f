//! Requests that violate the protocol: each is answered with an error that names the violation.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Frame, SizeHint};
use polynym_proto::v1;
use prost::Message;
use tonic::body::Body;
use tonic::codegen::{CompressionEncoding, Service};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::block_on;
use super::store::{TestStore, tests_on_store};
use crate::calls::{Client, email, handle, identity, user};
use crate::status::{StatusDetails, status_details};

const RESOLVE: &str = "/polynym.v1.DirectoryService/ResolveIdentity";
const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// A body that is complete at once.
struct Whole(Option<Bytes>);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Returns a message with its gRPC prefix.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn joe() -> Vec<u8> {
    framed(
        &v1::ResolveIdentityRequest { identifier: Some(handle("joe")), ..Default::default() }
            .encode_to_vec(),
    )
}

/// An HTTP client on one connection.
struct Http(Channel);

impl Http {
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (StatusCode, HeaderMap) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body =
            Body::new(Whole(Some(Bytes::copy_from_slice(body)).filter(|body| !body.is_empty())));
        std::future::poll_fn(|cx| self.0.poll_ready(cx)).await.unwrap();
        let response = self.0.call(request.body(body).unwrap()).await.unwrap();
        (response.status(), response.headers().clone())
    }

    /// Makes a call that is refused at once and returns its status.
    async fn refused(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> StatusDetails {
        let headers =
            [&[("content-type", "application/grpc"), ("te", "trailers")], headers].concat();
        let (status, headers) = self.send("POST", path, &headers, body).await;
        assert_eq!(status, StatusCode::OK);
        status_details(Status::from_header_map(&headers).expect("a status at once"))
    }
}

/// Runs a test against a server of its own.
fn with_http<F: Future<Output = ()>>(store: &TestStore, test: impl FnOnce(Http, Client) -> F) {
    let server = store.serve(&[]);
    block_on(async {
        let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
        test(Http(channel), Client::connect(&server.url).await).await;
    });
}

tests_on_store! {
    malformed_messages_are_invalid_arguments
    unsupported_requests_are_refused_with_a_reason
    compressed_messages_have_the_limits_of_others
    malformed_deadlines_and_large_headers_are_refused
    only_grpc_requests_are_calls
    fields_out_of_range_are_named
}

fn malformed_messages_are_invalid_arguments(store: &TestStore) {
    with_http(store, async |mut http: Http, _| {
        let invalid = || StatusDetails::new(Code::InvalidArgument, "MESSAGE_INVALID");
        let whole = joe();
        let two = [&whole[..], &whole].concat();
        let flagged = |flag: u8| [&[flag], &whole[1..]].concat();
        let bodies = [
            ("a number for an identifier", framed(&[0x10, 1])),
            ("a text that is cut short", framed(&[0x12, 9, 0x12, 20, b'j'])),
            ("no UTF-8", framed(&[0x12, 4, 0x12, 2, 0xff, 0xfe])),
            ("an empty body", Vec::new()),
            ("half a prefix", vec![0, 0]),
            ("less than the prefix announces", whole[..whole.len() - 3].to_vec()),
            ("two messages", two),
            ("more than a message", [&whole[..], b"xx"].concat()),
            ("compressed without an encoding", flagged(1)),
            ("an unknown flag", flagged(7)),
        ];
        for (what, body) in bodies {
            assert_eq!(http.refused(RESOLVE, &[], &body).await, invalid(), "{what}");
        }
        let large = [&[0], &(2u32 << 20).to_be_bytes()[..], b"x"].concat();
        let status = http.refused(RESOLVE, &[], &large).await;
        assert_eq!(
            (status.code, status.reason.as_str()),
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
        );
        assert_eq!(status.metadata["limit"], (1 << 20).to_string());
    });
}

fn unsupported_requests_are_refused_with_a_reason(store: &TestStore) {
    with_http(store, async |mut http: Http, _| {
        let unknown = |reason| StatusDetails::new(Code::Unimplemented, reason);
        for path in [
            "/polynym.v1.DirectoryService/Nope",
            "/polynym.v1.RegistryService/",
            "/grpc.health.v1.Health/Nope",
        ] {
            assert_eq!(
                http.refused(path, &[], &framed(&[])).await,
                unknown("METHOD_UNKNOWN"),
                "{path}"
            );
        }
        for path in ["/", "/nope.v1.Nope/Nope"] {
            assert_eq!(
                http.refused(path, &[], &framed(&[])).await,
                unknown("SERVICE_UNKNOWN"),
                "{path}"
            );
        }
        let brotli = [("grpc-encoding", "br")];
        for flag in [0, 1] {
            let body = [&[flag], &joe()[1..]].concat();
            assert_eq!(
                http.refused(RESOLVE, &brotli, &body).await,
                unknown("COMPRESSION_UNSUPPORTED"),
                "{flag}"
            );
        }
        let mut health = HealthClient::new(http.0);
        let nope = HealthCheckRequest { service: "nope".to_owned() };
        let status = status_details(health.check(nope.clone()).await.unwrap_err());
        assert_eq!(status, StatusDetails::new(Code::NotFound, "SERVICE_UNKNOWN"));
        let mut watching = health.watch(nope).await.unwrap().into_inner();
        assert_eq!(
            watching.message().await.unwrap().unwrap().status(),
            ServingStatus::ServiceUnknown
        );
    });
}

/// A message, compressed, with its prefix.
fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(message).unwrap();
    let mut framed = framed(&encoder.finish().unwrap());
    framed[0] = 1;
    framed
}

fn compressed_messages_have_the_limits_of_others(store: &TestStore) {
    with_http(store, async |mut http: Http, mut client: Client| {
        let gzip = [("grpc-encoding", "gzip")];
        let nobody = StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND");
        for body in [gzipped(&joe()[5..]), joe()] {
            assert_eq!(http.refused(RESOLVE, &gzip, &body).await, nobody);
        }

        // A kilobyte that becomes more than a message may have.
        let limit = 1 << 20;
        for size in [limit + 1, 4 << 20] {
            let bomb = gzipped(&vec![0; size]);
            assert!(bomb.len() < limit / 10);
            let status = http.refused(RESOLVE, &gzip, &bomb).await;
            assert_eq!(
                (status.code, &*status.reason),
                (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
            );
            assert_eq!(status.metadata["limit"], limit.to_string());
        }
        let identifier = || Some(handle("joe"));
        let items = (0..1_001).filter_map(|_| identifier()).collect();
        let batch = v1::BatchResolveIdentitiesRequest { identifiers: items, ..Default::default() };
        let batch_path = "/polynym.v1.DirectoryService/BatchResolveIdentities";
        let status = http.refused(batch_path, &gzip, &gzipped(&batch.encode_to_vec())).await;
        assert_eq!(status.reason, "BATCH_TOO_LARGE");
        let mut broken = gzipped(&joe()[5..]);
        let middle = broken.len() / 2;
        broken[middle] ^= 0xff;
        let status = http.refused(RESOLVE, &gzip, &broken).await;
        assert_eq!(status, StatusDetails::new(Code::InvalidArgument, "MESSAGE_INVALID"));

        // Streams.
        let line = |n: i64, name: &str, note: usize| v1::ImportUsersRequest {
            line: n,
            user: Some(v1::User { display_name: "x".repeat(note), ..user("", vec![handle(name)]) }),
            ..Default::default()
        };
        let options = Some(v1::import_users_request::Options::default());
        let first = || v1::ImportUsersRequest { options: options.clone(), ..Default::default() };
        let mut admin = client.admin.clone().send_compressed(CompressionEncoding::Gzip);
        let lines = tokio_stream::iter([first(), line(1, "ann", 10)]);
        let mut answers = admin.import_users(lines).await.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}
        assert_eq!(
            client.resolve(handle("ann")).await.unwrap().user.unwrap().display_name.len(),
            10
        );
        let lines = tokio_stream::iter([first(), line(1, "bob", 4 << 20)]);
        let refused = match admin.import_users(lines).await {
            Ok(answers) => {
                let mut answers = answers.into_inner();
                loop {
                    match answers.message().await {
                        Ok(answer) => assert!(answer.is_some(), "the line was accepted"),
                        Err(refused) => break refused,
                    }
                }
            }
            Err(refused) => refused,
        };
        let status = status_details(refused);
        assert_eq!((status.code, &*status.reason), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
    });
}

fn malformed_deadlines_and_large_headers_are_refused(store: &TestStore) {
    with_http(store, async |mut http: Http, _| {
        for timeout in ["", "abc", "-1S", "1.5S", "1", "999999999H"] {
            let status = http.refused(RESOLVE, &[("grpc-timeout", timeout)], &joe()).await;
            assert_eq!(
                status,
                StatusDetails::new(Code::InvalidArgument, "TIMEOUT_INVALID"),
                "{timeout:?}"
            );
        }
        let large = "y".repeat(9_000);
        let status = http.refused(RESOLVE, &[("x", &large)], &joe()).await;
        assert_eq!(
            (status.code, status.reason.as_str()),
            (Code::ResourceExhausted, "HEADERS_TOO_LARGE")
        );
        let fair = "y".repeat(7_000);
        assert_eq!(
            http.refused(RESOLVE, &[("x", &fair)], &joe()).await,
            StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND")
        );
    });
}

/// A browser page can send some of these requests to another site without a preflight.
fn only_grpc_requests_are_calls(store: &TestStore) {
    with_http(store, async |mut http: Http, mut client| {
        let user = v1::User { identities: vec![identity(handle("mallory"))], ..Default::default() };
        let create = framed(
            &v1::CreateUserRequest { user: Some(user), ..Default::default() }.encode_to_vec(),
        );
        for method in ["GET", "PUT", "OPTIONS", "HEAD"] {
            let (status, headers) =
                http.send(method, CREATE, &[("content-type", "application/grpc")], &create).await;
            assert_eq!(
                (status, headers["allow"].to_str().unwrap()),
                (StatusCode::METHOD_NOT_ALLOWED, "POST"),
                "{method}"
            );
        }
        for content_type in
            [&[("content-type", "text/plain")][..], &[("content-type", "application/json")], &[]]
        {
            let (status, _) = http.send("POST", CREATE, content_type, &create).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type:?}");
        }
        assert_eq!(
            status_details(client.resolve(handle("mallory")).await.unwrap_err()).code,
            Code::NotFound
        );
        let (status, _) =
            http.send("POST", CREATE, &[("content-type", "application/grpc+proto")], &create).await;
        assert_eq!(status, StatusCode::OK);
        client.resolve(handle("mallory")).await.unwrap();
    });
}

fn fields_out_of_range_are_named(store: &TestStore) {
    with_http(store, async |_, mut client: Client| {
        for (seconds, nanos) in
            [(-1, 0), (0, -1), (1 << 62, 0), (315_576_000_001, 0), (0, 1_000_000_000)]
        {
            let max_staleness = Some(prost_types::Duration { seconds, nanos });
            let identifier = Some(email("joe@example.com"));
            let request =
                v1::ResolveIdentityRequest { identifier, max_staleness, ..Default::default() };
            let status =
                status_details(client.directory.resolve_identity(request).await.unwrap_err());
            assert_eq!(
                status,
                StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("max_staleness"),
                "{seconds} {nanos}"
            );
        }
    });
}
