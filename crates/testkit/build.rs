//! Generates the client stubs of the services from `proto/`.

use std::error::Error;

const SERVICES: [&str; 4] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".polynym.v1", "::polynym_proto::v1")
        .extern_path(".google.rpc", "::polynym_proto::google::rpc")
        .compile_fds(protox::compile(SERVICES, ["../../proto"])?)?;
    Ok(())
}
