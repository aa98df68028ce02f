//! Generates the messages and stubs of the API from `proto/`, without an installed protoc.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost_build::Config;

const PROTOS: [&str; 5] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
    "google/rpc/error_details.proto",
];

/// The responses that carry stored users. The server stubs use these types instead of the messages;
/// both have the same wire form.
const RAW_RESPONSES: [(&str, &str); 6] = [
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
    Config::new().btree_map(["."]).compile_fds(descriptors.clone())?;

    for folder in ["client", "server"] {
        let folder_path = out.join(folder);
        fs::create_dir_all(&folder_path)?;
        let mut builder = tonic_prost_build::configure()
            .build_client(folder == "client")
            .build_server(folder == "server")
            .out_dir(folder_path)
            .extern_path(".polynym.v1", "crate::proto::v1")
            .extern_path(".google.rpc", "crate::proto::google::rpc");
        if folder == "server" {
            for (message, path) in RAW_RESPONSES {
                builder = builder.extern_path(message, path);
            }
        }
        builder.compile_fds(descriptors.clone())?;
    }
    Ok(())
}
