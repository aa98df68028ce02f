//! A client of the HTTP listener, over HTTP/1.1 or HTTP/2 without encryption.

use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

/// A connection to a server.
pub struct HttpClient {
    /// The address, such as `127.0.0.1:7180`.
    host: String,
    sender: Sender,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A response, with its whole body.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl HttpResponse {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let text = || String::from_utf8_lossy(&self.body).into_owned();
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", text()))
    }

    /// The text of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The reason of an error.
    pub fn reason(&self) -> String {
        let error = self.json();
        let details = error["details"].as_array().unwrap_or_else(|| panic!("no details: {error}"));
        let info = details.iter().find(|detail| detail["type"] == "google.rpc.ErrorInfo");
        info.unwrap()["debug"]["reason"].as_str().unwrap().to_owned()
    }
}

impl HttpClient {
    /// Connects to a URL such as `http://127.0.0.1:7180`.
    pub async fn connect(url: &str, version: Version) -> Self {
        let host = url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let io = TokioIo::new(stream);
        let sender = if version == Version::HTTP_2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            Sender::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            Sender::Http1(sender)
        };
        Self { host, sender }
    }

    /// Sends a message by POST, and waits for the whole response.
    pub async fn post(
        &mut self,
        path: &str,
        content_type: &str,
        headers: &[(&str, &str)],
        message: impl Into<Bytes>,
    ) -> HttpResponse {
        let mut builder = Request::post(path).header(CONTENT_TYPE, content_type);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        self.send(builder.body(Full::new(message.into())).unwrap()).await
    }

    /// Sends a request, and waits for the whole response.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> HttpResponse {
        let (parts, body) = self.open(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        HttpResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a request, and waits for the headers of the response.
    pub async fn open(&mut self, mut request: Request<Full<Bytes>>) -> Response<Incoming> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                let host = self.host.parse().unwrap();
                request.headers_mut().entry(HOST).or_insert(host);
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
            Sender::Http2(sender) => {
                let host = match request.headers_mut().remove(HOST) {
                    Some(host) => host.to_str().unwrap().to_owned(),
                    None => self.host.clone(),
                };
                *request.uri_mut() = format!("http://{host}{}", request.uri()).parse().unwrap();
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
        }
    }
}

/// The messages of a stream so far, each with its flags: complete envelopes of `bytes`.
pub fn envelopes(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let Some((&[flags, ref length @ ..], rest)) = bytes.split_first_chunk::<5>() {
        let Some((message, rest)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)
        else {
            break;
        };
        found.push((flags, message));
        bytes = rest;
    }
    found
}

/// A message in an envelope.
pub fn envelope(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}
