//! The testbed's own calls, past the proxy.

use prost::Message;
use prost::bytes::{Buf, BufMut};
use prost_reflect::{DynamicMessage, MethodDescriptor};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::api::{self, DIRECT_TIMEOUT};
use crate::{Outcome, context};

/// The error of a call: its code, and its reason and field if it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectError {
    /// The name of the code, such as `NOT_FOUND`.
    pub code: String,
    /// The reason; may be empty.
    pub reason: String,
    /// The invalid field; may be empty.
    pub field: String,
}

impl From<&Status> for DirectError {
    fn from(status: &Status) -> Self {
        let details = status.get_error_details();
        let violation = details.bad_request().and_then(|bad| bad.field_violations.first());
        Self {
            code: code_name(status.code()),
            reason: details.error_info().map(|info| info.reason.clone()).unwrap_or_default(),
            field: violation.map(|violation| violation.field.clone()).unwrap_or_default(),
        }
    }
}

/// The name of a code, such as `NOT_FOUND`.
pub fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// A connection to the server with a caller's token.
#[derive(Clone)]
pub struct Direct {
    channel: Channel,
    authorization: MetadataValue<Ascii>,
}

impl Direct {
    /// Connects to `address` at the first call.
    pub fn new(address: &str, token: &str) -> Outcome<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let channel = endpoint.map_err(context("the server's address"))?.connect_lazy();
        let authorization = format!("Bearer {token}").parse().map_err(context("the token"))?;
        Ok(Self { channel, authorization })
    }

    /// Makes one call.
    pub async fn call(
        &self,
        method: &MethodDescriptor,
        request: &DynamicMessage,
    ) -> Outcome<Result<DynamicMessage, DirectError>> {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let path: http::uri::PathAndQuery = path.parse().map_err(context("the path"))?;
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(context("the server"))?;
        let mut request = Request::new(request.encode_to_vec());
        request.set_timeout(DIRECT_TIMEOUT);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        match grpc.unary(request, path, RawCodec).await {
            Ok(answer) => {
                let bytes = answer.into_inner();
                let message = DynamicMessage::decode(method.output(), bytes.as_slice());
                Ok(Ok(message.map_err(context("an answer"))?))
            }
            Err(status) => Ok(Err(DirectError::from(&status))),
        }
    }

    /// Makes one call that must succeed.
    pub async fn succeed(
        &self,
        method: &MethodDescriptor,
        request: &DynamicMessage,
    ) -> Outcome<DynamicMessage> {
        let outcome = self.call(method, request).await?;
        outcome.map_err(|error| format!("{} failed directly: {error:?}", method.name()))
    }

    /// The items of all pages: `field` is the repeated one of the response.
    pub async fn pages(
        &self,
        method: &MethodDescriptor,
        request: &DynamicMessage,
        field: &str,
    ) -> Outcome<Result<Vec<DynamicMessage>, DirectError>> {
        let (mut request, mut items) = (request.clone(), Vec::new());
        loop {
            let page = match self.call(method, &request).await? {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            items.extend(api::list(&page, field));
            let next = api::text(&page, "next_page_token");
            if next.is_empty() {
                return Ok(Ok(items));
            }
            request.set_field_by_name("page_token", prost_reflect::Value::String(next));
        }
    }
}

/// Sends and receives encoded messages.
#[derive(Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}
