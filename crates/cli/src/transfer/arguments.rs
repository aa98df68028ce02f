//! The arguments of import and export.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::config::{ChangeClient, Client, Flags};

pub const IMPORT_EXAMPLES: &str = "\
Examples:
  polynym import users.jsonl
  polynym import customers.csv --inspect > customers.toml
  polynym import customers.csv --map-file customers.toml
  polynym import users.csv --map email=E-Mail,handle=Login,attributes.team=Team
  polynym export --server http://old:7171 | polynym import - --server http://new:7171
  polynym import users.jsonl.rejects --on-conflict skip-identity
  polynym import december.csv --map-file customers.toml --on-existing update --dry-run
  polynym import december.csv --map-file customers.toml --on-existing update --match employee
  polynym import harbour-realm.json --format keycloak --dry-run

The exports of Keycloak, Firebase, Auth0, Ory Kratos, Okta and Entra, LDIF and vCards are read as
they are: docs/bring-users.md says what of them becomes what, and what is left out. Password hashes
are refused.

A file of JSON Lines has one user per line, in the JSON form of the API, as `polynym export` writes
it. Rejected lines are written to FILE.rejects, and rejected rows of FILE.csv to FILE.rejects.csv,
to be corrected and imported again. To continue an interrupted import, run the same command again:
it imports no user twice.

Exit status: 0 all lines are imported, now or before; 1 some were rejected.";

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  polynym export --output users.jsonl
  polynym export --tenant acme | gzip > acme.jsonl.gz
  polynym export --output berlin.csv --columns display_name,email --filter 'state = ACTIVE'
  polynym export --tenant acme | polynym import - --tenant test --any-tenant --new-ids
  polynym export --all-tenants | polynym import - --all-tenants --server http://new:7171";

/// `polynym import`.
#[derive(Args)]
pub struct Import {
    /// The file: JSON Lines, CSV if its name ends in .csv, .tsv or .txt, or the export of another
    /// user directory; - for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The format of the file. By default, its content decides if that is unambiguous, then its
    /// name.
    #[arg(long, value_enum)]
    pub format: Option<ImportFormat>,
    /// How to read a CSV file.
    #[command(flatten)]
    pub table: TableArgs,
    /// The action for a line with an invalid identity, or with one that another user owns.
    #[arg(long, value_enum, default_value = "reject")]
    pub on_conflict: OnConflict,
    /// The action for a line whose user exists.
    #[arg(long, value_enum, default_value = "reject")]
    pub on_existing: OnExisting,
    /// The field by which a line without a user_id finds its user: email, handle, phone, url,
    /// social.PROVIDER, the name of an attribute, or a column. By default all identities of the
    /// line, which must belong to one user.
    #[arg(long = "match", value_name = "FIELD")]
    pub matches: Option<String>,
    /// Check all lines without importing them, and show what they would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Write all that a dry run would change to a CSV file: line, user, field, before and after.
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    pub changes: Option<PathBuf>,
    /// How to generate the ids of new users.
    #[arg(long, value_enum, default_value = "variable")]
    pub ids: Ids,
    /// Import each line into its own tenant, from an export with --all-tenants.
    #[arg(long)]
    pub all_tenants: bool,
    /// Import all lines into --tenant, whatever tenant they name.
    #[arg(long, conflicts_with = "all_tenants")]
    pub any_tenant: bool,
    /// Give users new ids, as for a copy in the same store. Merged users are left out.
    #[arg(long)]
    pub new_ids: bool,
    /// The file for rejected lines, instead of FILE.rejects or FILE.rejects.csv.
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// The server, and the output.
    #[command(flatten)]
    pub settings: Flags<ChangeClient>,
}

/// How to read a CSV file.
#[derive(Args)]
#[command(next_help_heading = "CSV files")]
pub struct TableArgs {
    /// The columns: FIELD=COLUMN, separated by commas. Fields are user_id, display_name, email,
    /// handle, phone, region, url, social.PROVIDER, attributes.NAME, state, create_time and
    /// update_time. email[;]=COLUMN splits cells, display_name=FIRST+LAST joins columns. Without
    /// it, columns with names of fields have these.
    #[arg(long = "map", value_name = "MAPPING")]
    pub maps: Vec<String>,
    /// A file of TOML with these options, as --inspect writes it. Options on the command line come
    /// first.
    #[arg(long, value_name = "FILE")]
    pub map_file: Option<PathBuf>,
    /// Propose how to read the file, on standard output as a map file, and show on standard error
    /// what would happen. Needs no server.
    #[arg(long)]
    pub inspect: bool,
    /// The encoding, such as windows-1252. By default a byte order mark decides, or it is UTF-8.
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// The sign between cells: comma, semicolon, tab or another sign. By default it is found.
    #[arg(long, value_name = "SIGN")]
    pub separator: Option<String>,
    /// How numbers, dates, yes and no are written, such as de or en-US. By default 1234.5,
    /// 2026-01-31, true and false.
    #[arg(long, value_name = "TAG")]
    pub locale: Option<String>,
    /// The region of national phone numbers, such as US, in rows that have no own one.
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Which phone numbers are taken.
    #[arg(long, value_enum)]
    pub phones: Option<PhonesArg>,
    /// The words for which a cell counts as empty, separated by commas; '' for none. By default
    /// NULL, N/A, NaN, None, \\N and the like.
    #[arg(long, value_name = "WORDS")]
    pub absent: Option<String>,
}

/// Which phone numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhonesArg {
    /// In international form, and in national form of the row's region.
    National,
    /// In international form alone.
    Strict,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON Lines: one user per line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
}

/// The format of a file to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// JSON Lines: one user per line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
    /// A realm of Keycloak as JSON, with its users.
    Keycloak,
    /// The JSON of `firebase auth:export`.
    Firebase,
    /// The JSON Lines of an export of Auth0.
    Auth0,
    /// The identities of Ory Kratos as JSON.
    Kratos,
    /// CSV with the columns of Okta.
    Okta,
    /// The CSV file of users of Microsoft Entra.
    Entra,
    /// LDIF, with people of inetOrgPerson or Active Directory.
    Ldif,
    /// vCard 3.0 or 4.0.
    Vcard,
}

/// The action for a line with an identity that cannot be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnConflict {
    /// Reject the line.
    Reject,
    /// Import the user without that identity.
    SkipIdentity,
}

/// The action for a line whose user exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnExisting {
    /// Reject the line, unless it describes the user as it is.
    Reject,
    /// Leave the user as it is.
    Skip,
    /// Set what the line has: names, attributes, state; add its identities.
    Update,
    /// The same, and remove what the line lacks of the mapped fields.
    Replace,
    /// Set what the user lacks and the line has; leave what the user has.
    Fill,
}

/// How to generate the ids of new users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ids {
    /// Spread over the whole range, as for registered users.
    Variable,
    /// Ascending, so that the users of one import are adjacent.
    Sequential,
}

/// `polynym export`.
#[derive(Args)]
pub struct Export {
    /// The file to write, instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The form: JSON Lines with all that a user has, or CSV for spreadsheets. By default, the name
    /// of the file decides.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The columns of CSV: fields as for import, separated by commas. By default user_id,
    /// display_name, state, email, handle, phone, url, create_time and update_time.
    #[arg(long, value_name = "FIELDS")]
    pub columns: Option<String>,
    /// Export the users that a filter matches, as `user search` does.
    #[arg(long, value_name = "FILTER", conflicts_with = "all_tenants")]
    pub filter: Option<String>,
    /// Export all tenants of the caller.
    #[arg(long)]
    pub all_tenants: bool,
    /// The server.
    #[command(flatten)]
    pub settings: Flags<Client>,
}
