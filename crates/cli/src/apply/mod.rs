//! `polynym apply` and `polynym get`: tenants as files.
//!
//! `source` finds and bounds the files, `node` reads them as trees, and `reader` checks them and
//! makes tenants of them, with `definition`, all before the first call. `plan` compares them with
//! those of the server, `show` prints the differences, and `change` applies them. `document` and
//! `write` make a file of tenants, and `schema` describes such files.

mod change;
mod definition;
mod difference;
mod document;
pub mod get;
mod node;
mod plan;
mod reader;
mod schema;
mod show;
mod source;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;

use clap::Args;

use crate::client::Session;
use crate::config::{ChangeServer, Flags};
use crate::failure::Failure;
use crate::output;
use reader::Declared;
use show::Summary;

pub const EXAMPLES: &str = "\
Examples:
  polynym apply -f tenants.yaml --dry-run
  polynym apply -f tenants/ --prune acme-test
  polynym apply --schema > tenants.schema.json

The files decide: a policy that they do not name gets the value of a new tenant. Tenants that they
do not name stay as they are.

Exit status: 0 the tenants are what the files describe; 1 an error; with --dry-run, 2 if something
would change.";

/// The tenant that is never deleted.
const DEFAULT_TENANT: &str = "default";

#[derive(Args)]
pub struct Apply {
    /// A file of YAML or JSON, `-` for standard input, or a directory with such files; can be
    /// repeated.
    #[arg(short, long = "file", value_name = "PATH", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// Show the differences without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Delete this tenant, which has no users and which the files do not name; can be repeated.
    #[arg(long, value_name = "TENANT")]
    prune: Vec<String>,
    /// Print the JSON schema of the files. Needs no server.
    #[arg(long, conflicts_with_all = ["files", "dry_run", "prune"])]
    schema: bool,
    #[command(flatten)]
    settings: Flags<ChangeServer>,
}

pub async fn run(command: Apply) -> Result<(), Failure> {
    if command.schema {
        return output::print(&format!("{:#}\n", schema::document()));
    }
    let mut faults = Vec::new();
    let sources = source::read(&command.files, &mut faults);
    let tenants = reader::tenants(&sources, &mut faults);
    if !faults.is_empty() {
        return Err(source::failure(&sources, faults));
    }
    check_pruned(&command.prune, &tenants)?;

    let session = Session::open_operation(&command.settings, "apply").await?;
    let steps = plan::steps(&session, &tenants, &command.prune, &mut faults).await?;
    if !faults.is_empty() {
        return Err(source::failure(&sources, faults));
    }
    steps.iter().try_for_each(|step| show::step(&session, step))?;
    let summary = Summary::new(&steps, tenants.len(), command.dry_run);
    if command.dry_run {
        summary.show(&session)?;
        return if steps.is_empty() { Ok(()) } else { Err(Failure::WouldChange) };
    }
    change::apply(&session, steps).await?;
    summary.show(&session)
}

/// Rejects the deletion of tenants that the files name, and of the default tenant.
fn check_pruned(pruned: &[String], tenants: &[Declared]) -> Result<(), Failure> {
    for name in pruned {
        let rule = match name.as_str() {
            "" | DEFAULT_TENANT => "the default tenant is never deleted",
            name if tenants.iter().any(|tenant| tenant.name == name) => {
                "the files describe this tenant: remove it from them, or leave out --prune"
            }
            _ => continue,
        };
        return Err(Failure::Other(format!("--prune {}: {rule}", output::printable(name))));
    }
    Ok(())
}
