//! A client that learns the API from the reflection of a server, and prints responses as grpcurl
//! does.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ReflectMessage,
};
use prost_types::FileDescriptorProto;
use serde_json::{Map, Value};
use tokio_stream::once;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest as ReflectionCall;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse as ReflectionReply;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

/// The version of the reflection service. Their messages differ only in the name of the package,
/// which is not sent.
#[derive(Clone, Copy, Debug)]
pub enum Version {
    V1,
    V1Alpha,
}

/// The API as described by reflection.
pub struct Api {
    channel: Channel,
    version: Version,
    services: Vec<String>,
    pool: DescriptorPool,
}

impl Api {
    /// Lists the services of the server at `channel`, and fetches all files that describe them.
    pub async fn discover(channel: Channel, version: Version) -> Result<Self, Status> {
        let mut api = Self { channel, version, services: Vec::new(), pool: DescriptorPool::new() };
        let ReflectionReply::ListServicesResponse(list) =
            api.ask(ReflectionCall::ListServices(String::new())).await?
        else {
            return Err(Status::data_loss("reflection lists no services"));
        };

        api.services = list.service.into_iter().map(|service| service.name).collect();
        for service in api.services.clone() {
            api.learn(&service).await?;
        }

        Ok(api)
    }

    /// The services in the order of the server.
    pub fn services(&self) -> &[String] {
        &self.services
    }

    /// The descriptors fetched so far.
    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }

    /// Fetches the file that defines `symbol`, such as `google.rpc.ErrorInfo`, and its imports.
    pub async fn learn(&mut self, symbol: &str) -> Result<(), Status> {
        let mut queue = vec![ReflectionCall::FileContainingSymbol(symbol.to_owned())];
        let mut requested = BTreeSet::new();
        let mut files = BTreeMap::new();

        while let Some(ask) = queue.pop() {
            for file in self.files(ask).await? {
                let imports = file
                    .dependency
                    .iter()
                    .filter(|name| self.pool.get_file_by_name(name).is_none());
                let new = imports.filter(|name| requested.insert((*name).clone()));
                queue.extend(new.map(|name| ReflectionCall::FileByFilename(name.clone())));
                files.insert(file.name().to_owned(), file);
            }
        }

        self.pool
            .add_file_descriptor_protos(files.into_values())
            .map_err(|error| Status::data_loss(error.to_string()))
    }

    async fn files(&self, ask: ReflectionCall) -> Result<Vec<FileDescriptorProto>, Status> {
        let ReflectionReply::FileDescriptorResponse(files) = self.ask(ask).await? else {
            return Err(Status::data_loss("reflection sends no file"));
        };
        let decode = |file: Vec<u8>| FileDescriptorProto::decode(file.as_slice());
        let decoded: Result<_, _> = files.file_descriptor_proto.into_iter().map(decode).collect();
        decoded.map_err(|error| Status::data_loss(error.to_string()))
    }

    async fn ask(&self, ask: ReflectionCall) -> Result<ReflectionReply, Status> {
        let route = match self.version {
            Version::V1 => "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            Version::V1Alpha => "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        };
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(ask) };
        let codec = ProstCodec::<ServerReflectionRequest, ServerReflectionResponse>::default();
        let mut client = ready(&self.channel).await?;
        let path = http::uri::PathAndQuery::from_static(route);
        let mut responses =
            client.streaming(Request::new(once(request)), path, codec).await?.into_inner();
        let response = responses.message().await?.and_then(|response| response.message_response);

        match response.ok_or_else(|| Status::data_loss("reflection says nothing"))? {
            ReflectionReply::ErrorResponse(error) => {
                Err(Status::new(error.error_code.into(), error.error_message))
            }
            reply => Ok(reply),
        }
    }

    /// Calls a unary method, `package.Service/Method`, with a request in JSON.
    pub async fn call(&self, method: &str, json: &str) -> Result<Response<DynamicMessage>, Status> {
        let method =
            self.method(method).ok_or_else(|| Status::not_found(format!("no method {method}")))?;
        let invalid = |error: serde_json::Error| Status::invalid_argument(error.to_string());
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let request =
            DynamicMessage::deserialize(method.input(), &mut deserializer).map_err(invalid)?;
        deserializer.end().map_err(invalid)?;
        let text = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let path = text.parse().map_err(|_| Status::invalid_argument("no path"))?;

        ready(&self.channel)
            .await?
            .unary(Request::new(request), path, Dynamic(method.output()))
            .await
    }

    fn method(&self, path: &str) -> Option<MethodDescriptor> {
        let (service, name) = path.split_once('/')?;
        self.pool.get_service_by_name(service)?.methods().find(|method| method.name() == name)
    }
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(client)
}

/// A codec for messages whose type is known at run time only; the field is the type of the
/// response.
pub struct Dynamic(pub MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(
        &mut self,
        message: DynamicMessage,
        buffer: &mut EncodeBuf<'_>,
    ) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), buffer);
        message.map(Some).map_err(|error| Status::data_loss(error.to_string()))
    }
}

/// Prints a message as grpcurl does: fields in the order of their numbers, keys of maps and fields
/// of an `Any` sorted, two spaces per level, and the special characters of HTML escaped.
///
/// # Panics
/// If the message holds an `Any` of an unknown type.
pub fn print(message: &DynamicMessage) -> String {
    let value = serde_json::to_value(message).expect("all types are known");
    let mut out = String::new();
    print_value(&value, Some(&Kind::Message(message.descriptor())), 0, &mut out);
    out.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Prints the value of a field of type `kind`.
fn print_value(value: &Value, kind: Option<&Kind>, level: usize, out: &mut String) {
    match value {
        Value::Object(entries) => {
            let fields = fields(entries, kind.and_then(Kind::as_message));
            print_items("{}", &fields, level, out, |(name, value, field), out| {
                out.push_str(&format!("{}: ", Value::from(*name)));
                print_value(
                    value,
                    field.as_ref().map(FieldDescriptor::kind).as_ref(),
                    level + 1,
                    out,
                );
            });
        }
        Value::Array(items) => {
            print_items("[]", items, level, out, |item, out| {
                print_value(item, kind, level + 1, out)
            });
        }
        plain => out.push_str(&plain.to_string()),
    }
}

type Field<'a> = (&'a str, &'a Value, Option<FieldDescriptor>);

/// Returns the entries of an object in the order of printing. `message` is its type, if it is a
/// message.
fn fields<'a>(
    entries: &'a Map<String, Value>,
    message: Option<&MessageDescriptor>,
) -> Vec<Field<'a>> {
    let url = entries.get("@type").and_then(Value::as_str);
    let name = url.and_then(|url| url.rsplit('/').next());
    let packed = name.and_then(|name| message?.parent_pool().get_message_by_name(name));
    let is_map = message.is_some_and(MessageDescriptor::is_map_entry);
    let field = |name: &str| match message {
        Some(entry) if is_map => Some(entry.map_entry_value_field()),
        message => packed.as_ref().or(message)?.get_field_by_json_name(name),
    };
    let mut fields: Vec<Field<'_>> =
        entries.iter().map(|(name, value)| (name.as_str(), value, field(name))).collect();
    if packed.is_none() && !is_map {
        fields.sort_by_key(|(_, _, field)| field.as_ref().map(FieldDescriptor::number));
    } else {
        fields.sort_by_key(|(name, _, _)| *name);
    }
    fields
}

fn print_items<T>(
    braces: &str,
    items: &[T],
    level: usize,
    out: &mut String,
    print: impl Fn(&T, &mut String),
) {
    out.push_str(&braces[..1]);
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(level + 1));
        print(item, out);
    }

    if !items.is_empty() {
        out.push('\n');
        out.push_str(&"  ".repeat(level));
    }

    out.push_str(&braces[1..]);
}
