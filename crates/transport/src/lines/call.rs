//! A call with lines.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, Version};
use http_body::Frame;
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::{Code, Status};

use super::exchange::Exchange;
use super::request::LineStream;
use super::{EVENTS, LineForm, LineMethod, LineReader, LineRequest, LineWriter, NDJSON, response};
use crate::budgets::state::Reservation;
use crate::budgets::streams::OpenStream;
use crate::calls::call_protocol::{CallProtocol, EndFrame, Refused};
use crate::connect::call::ConnectCall;
use crate::connect::{error, header, request};
use crate::method::messages::Messages;
use crate::protocol;
use crate::request_body::{PREFIX, RequestBody, set_length};
use crate::rich_status::{internal, plain};

/// The header with the id of the last event that a client has had.
const LAST_EVENT_ID: &str = "last-event-id";

/// A call with lines.
pub struct LineCall {
    /// The call as one with a JSON message: its headers, and its message unless it has lines.
    json: ConnectCall,
    /// Taken when the request opens.
    reader: Mutex<Option<Box<dyn LineReader>>>,
    /// Taken for the response.
    writer: Mutex<Option<Box<dyn LineWriter>>>,
    form: LineForm,
    /// An encoded message whose fields are set in that of the request.
    fields: Vec<u8>,
    exchange: Arc<Exchange>,
}

impl LineCall {
    /// The call of a request to a method with lines; none if it is a call without them.
    ///
    /// # Errors
    /// The request is no call: the response says why.
    pub fn new(
        method: &LineMethod,
        messages: Arc<Messages>,
        request: &Request<Incoming>,
    ) -> Result<Option<Self>, Refused> {
        let headers = request.headers();
        let form = form(method, headers);
        let is_get = request.method() == HttpMethod::GET && form == LineForm::Events;
        if method.has_events && request.method() == HttpMethod::GET && !is_get {
            return Err(wrong_accept().into());
        }
        request::check(request, if is_get { "GET" } else { "POST" })?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match (content_type.map(request::media_type).as_deref(), method.takes_lines) {
            (Some(NDJSON), true) | (Some("application/json"), false) => {}
            _ if is_get => {}
            (_, true) => return Err(wrong_content_type().into()),
            (_, false) => return Ok(None),
        }
        if request.version() < Version::HTTP_11 {
            return Err(wrong_version().into());
        }
        let json =
            ConnectCall::with_json(messages, headers).map_err(|status| error::response(&status))?;
        if method.takes_lines && json.is_gzip {
            return Err(error::response(&protocol::lines_compressed()).into());
        }
        let format = (method.format)(LineRequest {
            query: request.uri().query().unwrap_or_default(),
            is_get,
            form,
            last_event_id: headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()),
        });
        let format = format.map_err(|invalid| {
            Refused::from(error::response(&protocol::parameter_invalid(&invalid.message)))
        })?;
        Ok(Some(Self {
            json,
            reader: Mutex::new(format.reader),
            writer: Mutex::new(Some(format.writer)),
            form,
            fields: format.fields,
            exchange: Arc::default(),
        }))
    }
}

impl CallProtocol for LineCall {
    fn validate(&self, request: &Request<Incoming>) -> Result<Option<Duration>, Refused> {
        self.json.validate(request)
    }

    async fn read_message(
        &self,
        request: Request<Incoming>,
        limit: usize,
        reservation: &mut Reservation,
    ) -> Result<Request<RequestBody>, Status> {
        if request.method() == HttpMethod::GET {
            let mut request = request.map(|_| RequestBody::Complete(vec![0; PREFIX].into()));
            header::remove_grpc(request.headers_mut());
            return Ok(request.map(|body| with_fields(body, &self.fields)));
        }
        let request = request::read_message(&self.json, request, limit, reservation).await?;
        Ok(request.map(|body| with_fields(body, &self.fields)))
    }

    async fn open(
        &self,
        mut request: Request<Incoming>,
        limit: usize,
        timeout: Duration,
        stream: &OpenStream,
    ) -> Result<Request<RequestBody>, Status> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(reader) = reader else {
            return self.read_message(request, limit, &mut stream.reserve_message()).await;
        };
        header::remove_grpc(request.headers_mut());
        let exchange = self.exchange.clone();
        Ok(request.map(|body| {
            RequestBody::with_lines(body, timeout, |messages| {
                LineStream::new(messages, reader, exchange)
            })
        }))
    }

    async fn respond(
        &self,
        response: Response<Body>,
        _: Option<&mut Reservation>,
    ) -> Response<Body> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match writer {
            Some(writer) => {
                response::respond(response, self.form, writer, self.exchange.clone()).await
            }
            // The call has ended before its first line.
            None => error::response(
                &Status::from_header_map(response.headers()).unwrap_or_else(internal),
            ),
        }
    }

    fn end_frame(&self) -> EndFrame {
        match self.form {
            LineForm::Json => |status| Some(Frame::data(LineForm::Json.error(status))),
            LineForm::Events => |status| Some(Frame::data(LineForm::Events.error(status))),
        }
    }
}

/// The form of the response that a request accepts.
fn form(method: &LineMethod, headers: &HeaderMap) -> LineForm {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|list| list.split(','));
    match method.has_events && types.any(|item| request::media_type(item) == EVENTS) {
        true => LineForm::Events,
        false => LineForm::Json,
    }
}

/// Sets fields in a framed message: of a field that is there twice, the last one counts.
fn with_fields(body: RequestBody, fields: &[u8]) -> RequestBody {
    match body {
        RequestBody::Complete(message) if !fields.is_empty() => {
            let mut framed = [&message, fields].concat();
            set_length(&mut framed);
            RequestBody::Complete(framed.into())
        }
        body => body,
    }
}

/// In HTTP/1.0 the end of a connection is that of the lines, even if the server was killed.
fn wrong_version() -> Response<Body> {
    let message = "lines need HTTP/1.1 or later, in which an interrupted response shows";
    let status = plain(Code::InvalidArgument, "PROTOCOL_VERSION_INVALID", message);
    error::with_http_status(StatusCode::HTTP_VERSION_NOT_SUPPORTED, &status)
}

fn wrong_accept() -> Response<Body> {
    let status = protocol::http_method_wrong("POST, or GET with accept: text/event-stream");
    let mut response = error::with_http_status(StatusCode::METHOD_NOT_ALLOWED, &status);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
    response
}

fn wrong_content_type() -> Response<Body> {
    let message = "this method takes lines: the content type must be application/x-ndjson; with \
        curl, send a file by -T FILE, or by --data-binary @FILE, as -d removes its line breaks";
    let status = protocol::content_type_wrong(message);
    let mut response = error::with_http_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, &status);
    response.headers_mut().insert("accept-post", HeaderValue::from_static(NDJSON));
    response
}
