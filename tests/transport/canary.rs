//! A unique text goes through every field of every method. Logs, metrics, traces and errors must
//! not contain it.

use std::fs::{self, File};
use std::time::Duration;

use futures_util::stream;
use polynym_proto::DESCRIPTORS;
use prost::bytes::Bytes;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::collector::collector;
use crate::scrape::{free_address, metrics};
use crate::server::{Server, polynym};

/// An email, an equal handle, and a phone number, all unique.
const TEXTS: [&str; 3] = ["canary-4711@example.com", "canary4711", "+14155554711"];
const USER: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

/// The values that a message is filled with.
#[derive(Clone, Copy)]
struct Filling {
    /// The chosen member of each oneof.
    choice: usize,
    text: &'static str,
    /// Whether tenants and users have valid names.
    is_addressed: bool,
}

fn message(of: &MessageDescriptor, filling: Filling, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for field in of.fields().filter(|_| depth < 6) {
        if let Some(oneof) = field.containing_oneof() {
            let members: Vec<_> = oneof.fields().collect();
            if members[filling.choice % members.len()] != field {
                continue;
            }
        }
        let text = || Value::String(filling.text.to_owned());
        let value = if field.is_map() {
            Value::Map([(MapKey::String(filling.text.to_owned()), text())].into())
        } else if field.is_list() {
            Value::List(vec![single(&field, filling, depth)])
        } else {
            single(&field, filling, depth)
        };
        let _ = message.try_set_field(&field, value);
    }
    message
}

fn single(field: &FieldDescriptor, filling: Filling, depth: usize) -> Value {
    match field.kind() {
        Kind::Message(of) => Value::Message(message(&of, filling, depth + 1)),
        Kind::String => Value::String(match field.name() {
            // Tenants are not personal data, and are logged.
            "tenant" => if filling.is_addressed { "default" } else { "nothing" }.to_owned(),
            "user_id" | "user_ids" if filling.is_addressed => USER.to_owned(),
            "request_id" | "etag" if filling.is_addressed => String::new(),
            _ => filling.text.to_owned(),
        }),
        Kind::Bytes => Value::Bytes(Bytes::from_static(filling.text.as_bytes())),
        Kind::Bool => Value::Bool(filling.choice.is_multiple_of(2)),
        Kind::Enum(_) => Value::EnumNumber(1),
        Kind::Double => Value::F64(1.0),
        Kind::Float => Value::F32(1.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(1),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(1),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(1),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(1),
    }
}

async fn call(channel: &Channel, path: &str, message: DynamicMessage) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let route = PathAndQuery::try_from(path).unwrap();
    let codec: ProstCodec<DynamicMessage, ()> = ProstCodec::default();
    // A call with one message and one answer is a stream of one each.
    let mut request = Request::new(stream::iter([message]));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    let mut answers = grpc.streaming(request, route, codec).await?.into_inner();
    // A watch lasts an hour: its first message suffices.
    while answers.message().await?.is_some() && !path.ends_with("/Watch") {}
    Ok(())
}

fn has_canary(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    text.contains("canary") || text.contains("5554711")
}

/// All ways to fill a message.
fn fillings() -> impl Iterator<Item = Filling> {
    (0..36).map(|n| Filling { choice: n / 6, text: TEXTS[n % 3], is_addressed: n % 6 < 3 })
}

#[tokio::test(flavor = "multi_thread")]
async fn personal_data_is_in_no_log_metric_trace_or_error() {
    let (collector, received) = collector().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let operators = free_address();
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "debug"]);
    command.stderr(File::create(&log).unwrap());
    let address = operators.to_string();
    let more = ["--sample", "--log-calls=all", "--log-reads", "--otlp", &collector];
    command.args(["--admin-listen", &address]);
    let server = Server::start_with(&mut command, &more);
    let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();

    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let (mut done, mut refused) = (0, 0);
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    for method in methods {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        for filling in fillings() {
            let outcome = call(&channel, &path, message(&method.input(), filling, 0)).await;
            let Err(status) = outcome else {
                done += 1;
                continue;
            };
            assert_ne!(status.code(), Code::Internal, "{path}: {status:?}");
            assert!(!has_canary(status.message().as_bytes()), "{path}: {status:?}");
            assert!(!has_canary(status.details()), "{path}: {status:?}");
            refused += 1;
        }
    }
    println!("{done} calls were answered, {refused} refused");
    assert!(done > 50 && refused > 100);

    assert!(!has_canary(metrics(operators).as_bytes()));
    server.signal("TERM");
    for _ in 0..600 {
        if received.bytes().len() > 10_000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let spans = received.bytes();
    assert!(spans.len() > 10_000 && !has_canary(&spans), "{} bytes", spans.len());
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| has_canary(line.as_bytes())).collect();
    assert!(text.lines().count() > done + refused && lines.is_empty(), "{lines:?}");
}
