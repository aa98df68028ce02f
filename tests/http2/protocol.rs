//! Requests that break the protocol: each gets an answer that says what is wrong.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Frame, SizeHint};
use polynym::proto::v1;
use prost::Message;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::block_on;
use super::place::{Place, in_each_place};
use crate::calls::{Client, email, handle, identity};
use crate::status::{Told, told};

const RESOLVE: &str = "/polynym.v1.DirectoryService/ResolveIdentity";
const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// A body that is there at once.
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

/// A message with its prefix.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn joe() -> Vec<u8> {
    framed(
        &v1::ResolveIdentityRequest { identifier: Some(handle("joe")), ..Default::default() }
            .encode_to_vec(),
    )
}

/// Requests over one connection.
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

    /// The status of a call that is refused at once.
    async fn refused(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Told {
        let headers =
            [&[("content-type", "application/grpc"), ("te", "trailers")], headers].concat();
        let (status, headers) = self.send("POST", path, &headers, body).await;
        assert_eq!(status, StatusCode::OK);
        told(Status::from_header_map(&headers).expect("a status at once"))
    }
}

/// Runs a test against a server of its own.
fn with_http<F: Future<Output = ()>>(place: &Place, test: impl FnOnce(Http, Client) -> F) {
    let server = place.serve(&[]);
    block_on(async {
        let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
        test(Http(channel), Client::connect(&server.url).await).await;
    });
}

in_each_place! {
    malformed_messages_are_the_callers_fault
    what_is_not_served_is_told_with_a_reason
    deadlines_and_headers_have_a_form_and_a_size
    only_grpc_is_a_call
    fields_out_of_range_are_named
}

fn malformed_messages_are_the_callers_fault(place: &Place) {
    with_http(place, async |mut http: Http, _| {
        let invalid = || Told::new(Code::InvalidArgument, "MESSAGE_INVALID");
        let whole = joe();
        let two = [&whole[..], &whole].concat();
        let flagged = |flag: u8| [&[flag], &whole[1..]].concat();
        let bodies = [
            ("a number for an identifier", framed(&[0x10, 1])),
            ("a text that is cut short", framed(&[0x12, 9, 0x12, 20, b'j'])),
            ("no UTF-8", framed(&[0x12, 4, 0x12, 2, 0xff, 0xfe])),
            ("nothing", Vec::new()),
            ("half a prefix", vec![0, 0]),
            ("less than was said", whole[..whole.len() - 3].to_vec()),
            ("two messages", two),
            ("more than a message", [&whole[..], b"xx"].concat()),
            ("compressed by nothing", flagged(1)),
            ("an unknown flag", flagged(7)),
        ];
        for (what, body) in bodies {
            assert_eq!(http.refused(RESOLVE, &[], &body).await, invalid(), "{what}");
        }
        let large = [&[0], &(2u32 << 20).to_be_bytes()[..], b"x"].concat();
        let told = http.refused(RESOLVE, &[], &large).await;
        assert_eq!(
            (told.code, told.reason.as_str()),
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
        );
        assert_eq!(told.metadata["limit"], (1 << 20).to_string());
    });
}

fn what_is_not_served_is_told_with_a_reason(place: &Place) {
    with_http(place, async |mut http: Http, _| {
        let unknown = |reason| Told::new(Code::Unimplemented, reason);
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
        let gzip = [("grpc-encoding", "gzip")];
        for flag in [0, 1] {
            let body = [&[flag], &joe()[1..]].concat();
            assert_eq!(
                http.refused(RESOLVE, &gzip, &body).await,
                unknown("COMPRESSION_UNSUPPORTED"),
                "{flag}"
            );
        }
        let mut health = HealthClient::new(http.0);
        let nope = HealthCheckRequest { service: "nope".to_owned() };
        let told = told(health.check(nope.clone()).await.unwrap_err());
        assert_eq!(told, Told::new(Code::NotFound, "SERVICE_UNKNOWN"));
        let mut watching = health.watch(nope).await.unwrap().into_inner();
        assert_eq!(
            watching.message().await.unwrap().unwrap().status(),
            ServingStatus::ServiceUnknown
        );
    });
}

fn deadlines_and_headers_have_a_form_and_a_size(place: &Place) {
    with_http(place, async |mut http: Http, _| {
        for timeout in ["", "abc", "-1S", "1.5S", "1", "999999999H"] {
            let told = http.refused(RESOLVE, &[("grpc-timeout", timeout)], &joe()).await;
            assert_eq!(told, Told::new(Code::InvalidArgument, "TIMEOUT_INVALID"), "{timeout:?}");
        }
        let large = "y".repeat(9_000);
        let told = http.refused(RESOLVE, &[("x", &large)], &joe()).await;
        assert_eq!(
            (told.code, told.reason.as_str()),
            (Code::ResourceExhausted, "HEADERS_TOO_LARGE")
        );
        let fair = "y".repeat(7_000);
        assert_eq!(
            http.refused(RESOLVE, &[("x", &fair)], &joe()).await,
            Told::new(Code::NotFound, "IDENTITY_NOT_FOUND")
        );
    });
}

/// What a page in a browser can send to another site without being asked for leave.
fn only_grpc_is_a_call(place: &Place) {
    with_http(place, async |mut http: Http, mut client| {
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
        assert_eq!(told(client.resolve(handle("mallory")).await.unwrap_err()).code, Code::NotFound);
        let (status, _) =
            http.send("POST", CREATE, &[("content-type", "application/grpc+proto")], &create).await;
        assert_eq!(status, StatusCode::OK);
        client.resolve(handle("mallory")).await.unwrap();
    });
}

fn fields_out_of_range_are_named(place: &Place) {
    with_http(place, async |_, mut client: Client| {
        for (seconds, nanos) in
            [(-1, 0), (0, -1), (1 << 62, 0), (315_576_000_001, 0), (0, 1_000_000_000)]
        {
            let max_staleness = Some(prost_types::Duration { seconds, nanos });
            let identifier = Some(email("joe@example.com"));
            let request =
                v1::ResolveIdentityRequest { identifier, max_staleness, ..Default::default() };
            let told = told(client.directory.resolve_identity(request).await.unwrap_err());
            assert_eq!(
                told,
                Told::new(Code::InvalidArgument, "FIELD_INVALID").field("max_staleness"),
                "{seconds} {nanos}"
            );
        }
    });
}
