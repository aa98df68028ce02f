//! Generates the API's types and services from `proto/`, without a protoc to install.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

const PROTOS: [&str; 5] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
    "google/rpc/error_details.proto",
];

/// The responses that carry users as they are stored: the services answer with these types, which
/// have the same wire form as the messages.
const RAW: [(&str, &str); 6] = [
    (".polynym.v1.ResolveIdentityResponse", "crate::grpc::raw_response::Resolved"),
    (".polynym.v1.BatchResolveIdentitiesResponse", "crate::grpc::raw_response::BatchResolved"),
    (".polynym.v1.GetUserResponse", "crate::grpc::raw_response::Got"),
    (".polynym.v1.SearchUsersResponse", "crate::grpc::raw_response::Searched"),
    (".polynym.v1.BatchGetUsersResponse", "crate::grpc::raw_response::BatchGot"),
    (".polynym.v1.ExportUsersResponse", "crate::grpc::raw_response::Exported"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .build_server(false)
        .btree_map(".")
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .compile_fds(descriptors.clone())?;
    let services = out.join("services");
    fs::create_dir_all(&services)?;
    let builder = tonic_prost_build::configure().build_client(false).out_dir(services);
    let builder = builder
        .extern_path(".polynym.v1", "crate::proto::v1")
        .extern_path(".google", "::prost_types");
    RAW.iter()
        .fold(builder, |builder, (message, path)| builder.extern_path(message, path))
        .compile_fds(descriptors)?;
    Ok(())
}
