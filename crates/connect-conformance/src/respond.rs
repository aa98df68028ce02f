//! The responses that requests of the suite define, in the form of gRPC.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use polynym_transport::request_body::PREFIX;
use prost::Message;
use prost_types::Any;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::proto::conformance_payload::RequestInfo;
use crate::proto::unary_response_definition::Response as UnaryOutcome;
use crate::proto::{
    ConformancePayload, Error, Header, ServerStreamResponse, StreamResponseDefinition,
    UnaryResponse, UnaryResponseDefinition,
};

/// The package of the suite in the type of an `Any`.
const PACKAGE: &str = "type.googleapis.com/connectrpc.conformance.v1";

/// Describes a request, whose only message has the type `name`.
pub fn request_info(headers: &HeaderMap, name: &str, message: Vec<u8>) -> RequestInfo {
    let values = |name: &HeaderName| {
        let all = headers.get_all(name).iter();
        all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let header = |name: &HeaderName| Header { name: name.to_string(), value: values(name) };
    let timeout = headers.get("connect-timeout-ms").and_then(|value| value.to_str().ok());
    RequestInfo {
        request_headers: headers.keys().map(header).collect(),
        timeout_ms: timeout.and_then(|millis| millis.parse().ok()),
        requests: vec![Any { type_url: format!("{PACKAGE}.{name}"), value: message }],
        connect_get_info: None,
    }
}

/// The response of a unary method.
pub async fn unary(
    definition: Option<UnaryResponseDefinition>,
    info: RequestInfo,
) -> Response<Body> {
    let definition = definition.unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(definition.response_delay_ms.into())).await;
    let trailers = headers(&definition.response_trailers);
    let data = match definition.response {
        Some(UnaryOutcome::Error(error)) => {
            let frames = vec![Frame::trailers(error_trailers(&error, Some(info), trailers))];
            return response(&definition.response_headers, stream::iter(frames));
        }
        Some(UnaryOutcome::ResponseData(data)) => data,
        None => Vec::new(),
    };
    let payload = Some(ConformancePayload { data, request_info: Some(info) });
    let frames = vec![message(&UnaryResponse { payload }), Frame::trailers(ok_trailers(trailers))];
    response(&definition.response_headers, stream::iter(frames))
}

/// The response of a method with a stream.
pub async fn stream(
    definition: Option<StreamResponseDefinition>,
    info: RequestInfo,
) -> Response<Body> {
    let definition = definition.unwrap_or_default();
    let delay = Duration::from_millis(definition.response_delay_ms.into());
    let trailers = headers(&definition.response_trailers);
    let is_empty = definition.response_data.is_empty();
    let mut request_info = Some(info);
    let last = match &definition.error {
        Some(error) => error_trailers(error, request_info.take_if(|_| is_empty), trailers),
        None => ok_trailers(trailers),
    };
    let messages: Vec<_> = definition
        .response_data
        .into_iter()
        .map(|data| ConformancePayload { data, request_info: request_info.take() })
        .map(|payload| message(&ServerStreamResponse { payload: Some(payload) }))
        .collect();
    let delayed = stream::iter(messages).then(move |frame| async move {
        tokio::time::sleep(delay).await;
        frame
    });
    response(&definition.response_headers, delayed.chain(stream::iter([Frame::trailers(last)])))
}

fn response(
    leading: &[Header],
    frames: impl futures_util::Stream<Item = Frame<Bytes>> + Send + 'static,
) -> Response<Body> {
    let body = StreamBody::new(frames.map(Ok::<_, Status>));
    let mut response = Response::new(Body::new(body));
    *response.headers_mut() = headers(leading);
    response
}

/// A framed message.
fn message(message: &impl Message) -> Frame<Bytes> {
    let mut framed = vec![0; PREFIX];
    framed[1..].copy_from_slice(&(message.encoded_len() as u32).to_be_bytes());
    framed.extend_from_slice(&message.encode_to_vec());
    Frame::data(framed.into())
}

fn ok_trailers(mut trailers: HeaderMap) -> HeaderMap {
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    trailers
}

/// The trailers of an error, whose last detail is the description of the request.
fn error_trailers(error: &Error, info: Option<RequestInfo>, mut trailers: HeaderMap) -> HeaderMap {
    let described = info.map(|info| Any {
        type_url: format!("{PACKAGE}.ConformancePayload.RequestInfo"),
        value: info.encode_to_vec(),
    });
    let rich = tonic_types::Status {
        code: error.code,
        message: error.message().to_owned(),
        details: error.details.iter().cloned().chain(described).collect(),
    };
    let code = Code::from_i32(error.code);
    let status = Status::with_details(code, error.message(), rich.encode_to_vec().into());
    // Metadata of a status would be leading headers, too.
    let _ = status.add_header(&mut trailers);
    trailers
}

fn headers(list: &[Header]) -> HeaderMap {
    let pairs =
        list.iter().flat_map(|header| header.value.iter().map(|value| (&header.name, value)));
    pairs.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?))).collect()
}
