//! `polynym id`.

use std::io::{BufWriter, Write};

use clap::{Args, Subcommand};
use locality_uuid::{Generator, LocalityId, Mode, TEXT_LEN};
use prost_types::Timestamp;
use serde::Serialize;

use crate::config::{Flags, Output};
use crate::failure::Failure;
use crate::output;

pub const EXAMPLES: &str = "\
Examples:
  polynym id new -n 3
  polynym id inspect 20be0ffc-314a-bd53-7a50-013a65ca76d2";

const NEW_EXAMPLES: &str = "Example:\n  polynym id new -n 1000 --sequential";
const INSPECT_EXAMPLES: &str =
    "Example:\n  polynym id inspect 20be0ffc-314a-bd53-7a50-013a65ca76d2 --json";

#[derive(Subcommand)]
pub enum Id {
    /// Print new ids, one per line.
    #[command(after_help = NEW_EXAMPLES)]
    New(New),
    /// Show the fields of an id.
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
}

#[derive(Args)]
pub struct New {
    /// The number of ids.
    #[arg(short = 'n', value_name = "N", default_value_t = 1)]
    count: u64,
    /// Generate adjacent ids instead of ids spread over the whole range.
    #[arg(long)]
    sequential: bool,
}

#[derive(Args)]
pub struct Inspect {
    /// The id.
    #[arg(value_name = "UUID")]
    id: LocalityId,
    #[command(flatten)]
    settings: Flags<Output>,
}

pub fn run(command: Id) -> Result<(), Failure> {
    match command {
        Id::New(command) => print_new(&command),
        Id::Inspect(command) => inspect(&command),
    }
}

fn print_new(command: &New) -> Result<(), Failure> {
    let ids = Generator::new(if command.sequential { Mode::Sequential } else { Mode::Variable });
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = [b'\n'; TEXT_LEN + 1];
    for _ in 0..command.count {
        let mut text = [0; TEXT_LEN];
        ids.next_id().encode_text(&mut text);
        line[..TEXT_LEN].copy_from_slice(&text);
        out.write_all(&line)?;
    }
    Ok(out.flush()?)
}

/// The fields of an id; of another UUID version, the version alone.
#[derive(Serialize)]
struct IdFields {
    id: LocalityId,
    /// The hex digit in the id.
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequential_counter: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

impl From<LocalityId> for IdFields {
    fn from(id: LocalityId) -> Self {
        Self {
            id,
            version: format!("{:x}", id.version()),
            counter: id.counter(),
            sequential_counter: id.sequential_counter(),
            process_id: id.process_id(),
            node: id.node().map(|node| format!("{node:07x}")),
            time: id.timestamp_millis().map(rfc3339),
        }
    }
}

fn rfc3339(millis: u64) -> String {
    let nanos = (millis % 1_000 * 1_000_000) as i32;
    Timestamp { seconds: (millis / 1_000) as i64, nanos }.to_string()
}

fn inspect(command: &Inspect) -> Result<(), Failure> {
    let fields = IdFields::from(command.id);
    if command.settings.load()?.json {
        return output::print_json(&fields);
    }

    let mut table = output::table(["id", &fields.id.to_string()]);
    table.add_row(["version", &fields.version]);
    let rows = [
        ("counter, reversed digits", fields.counter.map(|n| n.to_string())),
        ("counter, sequential", fields.sequential_counter.map(|n| n.to_string())),
        ("process", fields.process_id.map(|n| n.to_string())),
        ("node", fields.node),
        ("time", fields.time),
    ];
    for (name, value) in rows.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        table.add_row([name, value.as_str()]);
    }

    output::print_table(&table)
}
