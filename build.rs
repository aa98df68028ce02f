//! Generates the server stubs of the services from `proto/`.

use std::error::Error;

const SERVICES: [&str; 4] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
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
    let builder = tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".polynym.v1", "::polynym_proto::v1")
        .extern_path(".google.rpc", "::polynym_proto::google::rpc");
    RAW_RESPONSES
        .iter()
        .fold(builder, |builder, (message, path)| builder.extern_path(message, path))
        .compile_fds(protox::compile(SERVICES, ["proto"])?)?;
    Ok(())
}
