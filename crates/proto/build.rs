//! Generates the messages of the API from `proto/`, without an installed protoc, and the kinds of
//! events.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost_types::{DescriptorProto, EnumValueDescriptorProto, FileDescriptorSet};

const PROTOS: [&str; 5] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
    "google/rpc/error_details.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    fs::write(out.join("event.rs"), event_kinds(&descriptors)?)?;
    prost_build::Config::new().btree_map(["."]).enable_type_names().compile_fds(descriptors)?;
    Ok(())
}

/// The type and the changes of an event: each change has a type of the same name and number.
fn event_kinds(descriptors: &FileDescriptorSet) -> Result<String, String> {
    let is_event = |message: &&DescriptorProto| message.name() == "Event";
    let mut messages = descriptors.file.iter().flat_map(|file| &file.message_type);
    let event = messages.find(is_event).ok_or("no message is named Event")?;
    let changes = event.field.iter().filter(|field| field.oneof_index.is_some());
    let mut enums = descriptors.file.iter().flat_map(|file| &file.enum_type);
    let types = enums.find(|types| types.name() == "EventType").ok_or("no enum is EventType")?;
    for change in changes.clone() {
        let name = format!("EVENT_TYPE_{}", change.name().to_uppercase());
        let is_its_type = |value: &EnumValueDescriptorProto| {
            value.name() == name && value.number() == change.number()
        };
        if !types.value.iter().any(is_its_type) {
            return Err(format!("{name} has not the number {}", change.number()));
        }
    }
    let names = changes.map(|field| {
        let words = field.name().split('_');
        words.map(|word| word[..1].to_uppercase() + &word[1..]).collect::<String>()
    });
    Ok(format!("event_kinds! {{ {} }}", names.collect::<Vec<_>>().join(" ")))
}
