//! The arguments of import and export.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::config::{Client, Flags};

pub const IMPORT_EXAMPLES: &str = "\
Examples:
  polynym import users.jsonl
  polynym import users.csv --map email=E-Mail,handle=Login,attributes.team=Team
  polynym export --server http://old:7171 | polynym import - --server http://new:7171
  polynym import users.jsonl.rejects --on-conflict skip-identity

A file of JSON Lines has a user a line, in the JSON form of the API, as `polynym export` writes it.
Lines that are rejected are written to FILE.rejects, where they can be mended and imported again.
An import that was broken off goes on when the same command is run again: what is there already is
not imported twice. docs/transfer.md has more.

Exit status: 0 all lines were imported or were there already; 1 some were rejected.";

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  polynym export --output users.jsonl
  polynym export --tenant acme | gzip > acme.jsonl.gz
  polynym export --all-tenants | polynym import - --all-tenants --server http://new:7171";

/// `polynym import`.
#[derive(Args)]
pub struct Import {
    /// The file: JSON Lines, CSV where its name ends in .csv, or - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The form of the file, where its name does not tell.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The columns of a CSV file: FIELD=COLUMN, separated by commas. Fields are user_id,
    /// display_name, email, handle, phone, url, social.PROVIDER, attributes.NAME, state,
    /// create_time and update_time.
    #[arg(long = "map", value_name = "MAPPING")]
    pub maps: Vec<String>,
    /// The region whose national form the phone numbers of a CSV file are in, such as US.
    #[arg(long, value_name = "REGION", default_value = "")]
    pub region: String,
    /// The treatment of a line with an identity that another user has, or that is invalid.
    #[arg(long, value_enum, default_value = "reject")]
    pub on_conflict: OnConflict,
    /// Check all lines, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How the ids of new users follow each other.
    #[arg(long, value_enum, default_value = "variable")]
    pub ids: Ids,
    /// Import each line into the tenant that it names, as --all-tenants of export writes it.
    #[arg(long)]
    pub all_tenants: bool,
    /// The file for rejected lines, in place of FILE.rejects.
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// The server, and how to print.
    #[command(flatten)]
    pub settings: Flags<Client>,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A user in JSON a line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
}

/// The treatment of a line with an identity that cannot be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// The line is rejected.
    Reject,
    /// The user is imported without that identity.
    SkipIdentity,
}

/// How the ids of new users follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ids {
    /// Spread over the whole range, as those of users that are registered one by one.
    Variable,
    /// Counting up, so that users of one import lie close together.
    Sequential,
}

/// `polynym export`.
#[derive(Args)]
pub struct Export {
    /// The file to write, in place of standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Export all tenants that the caller may work in.
    #[arg(long)]
    pub all_tenants: bool,
    /// The server.
    #[command(flatten)]
    pub settings: Flags<Client>,
}
