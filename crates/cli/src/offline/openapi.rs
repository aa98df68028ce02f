//! `polynym openapi`.

use clap::Args;

use crate::failure::Failure;
use crate::output;

pub const EXAMPLES: &str = "\
Examples:
  polynym openapi > openapi.json
  polynym openapi --prefix /polynym > openapi.json";

#[derive(Args)]
pub struct Openapi {
    /// The beginning of the server's paths, its --http-prefix.
    #[arg(long, value_name = "PATH", default_value = "")]
    prefix: String,
}

pub fn run(command: &Openapi) -> Result<(), Failure> {
    let document = polynym_openapi::document(&command.prefix);
    let document = document.map_err(|error| Failure::Other(error.to_string()))?;
    output::print(&format!("{document:#}\n"))
}
