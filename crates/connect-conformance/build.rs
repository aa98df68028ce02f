//! Generates the messages of the conformance suite from `proto/`, a part of the module
//! connectrpc.com/conformance v1.0.7 under its own licence.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

const PROTOS: [&str; 2] =
    ["connectrpc/conformance/v1/server_compat.proto", "connectrpc/conformance/v1/service.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(PROTOS, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
