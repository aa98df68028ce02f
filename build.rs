//! Generates the API's types and services from `proto/`, without a protoc to install.

use std::error::Error;
use std::path::PathBuf;

const PROTOS: [&str; 3] =
    ["polynym/v1/directory_service.proto", "polynym/v1/registry_service.proto", "google/rpc/error_details.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .btree_map(".")
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .compile_fds(descriptors)?;
    Ok(())
}
