//! `polynym token`: the tokens in a credentials file.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::config::{Flags, Output};
use crate::failure::Failure;
use crate::{files, output};
use polynym_access::edits::{self, NewToken, Which};
use polynym_access::{self as access, CallerStates, Credentials, RateLimits, Role};
use polynym_presentation::time;

pub const EXAMPLES: &str = "\
Examples:
  polynym token create billing --role resolver --credentials callers.toml > billing.token
  polynym token list --credentials callers.toml
  polynym token extend billing --expires 90d --credentials callers.toml
  polynym token revoke billing --credentials callers.toml

A server that runs with --credentials applies changes within 5 seconds.";

const CREATE_EXAMPLES: &str = "\
Examples:
  polynym token create billing --role resolver --credentials callers.toml
  polynym token create ops --role admin --tenants '*' --credentials callers.toml
  polynym token create prometheus --role monitor --credentials callers.toml > prometheus.token
  polynym token create eu --role registrar --tenants 'default,eu-*' --expires 90d \\
    --credentials callers.toml

Prints the token once: the file stores only its hash. A caller may have several tokens: to rotate
them, create a new one, deploy it, and revoke the old one by its id.";

const EXTEND_EXAMPLES: &str = "\
Examples:
  polynym token extend billing --credentials callers.toml
  polynym token extend k3x0qh2vma --expires 30d --credentials callers.toml

The token stays the same. One that may have been seen by others is replaced by a new one instead.";
const LIST_EXAMPLES: &str = "Example:\n  polynym token list --credentials callers.toml --json";
const REVOKE_EXAMPLES: &str = "\
Examples:
  polynym token revoke billing --credentials callers.toml
  polynym token revoke k3x0qh2vma --credentials callers.toml";
const CHECK_EXAMPLES: &str = "\
Examples:
  polynym token check --credentials callers.toml
  polynym token check --credentials callers.toml --token-file billing.token

Exit status: 0 the file, and the token if given, are valid; 1 otherwise.";

#[derive(Subcommand)]
pub enum Token {
    /// Create a token for a caller, and print it.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Create),
    /// List the callers and the ids of their tokens.
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Give a token, or all credentials of a caller, another expiry.
    #[command(after_help = EXTEND_EXAMPLES)]
    Extend(Extend),
    /// Revoke a token, or all tokens of a caller.
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke(Revoke),
    /// Check a credentials file, or a token against it.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
}

#[derive(Args)]
pub struct Create {
    /// The name of the caller, for logs and as the namespace of its request ids.
    name: String,
    /// The role: monitor (only reads metrics), resolver (looks up users), viewer (also searches and
    /// reads histories), registrar (also changes users) or admin (everything).
    #[arg(long)]
    role: Role,
    /// The tenants: names, prefixes with * at the end, or *.
    #[arg(long, value_delimiter = ',', default_value = "default")]
    tenants: Vec<String>,
    /// When the token expires: a duration such as 90d, or a time such as 2030-01-01T00:00:00Z, or
    /// never. By default, in a year.
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = expiry)]
    expires: Expiry,
    /// The credentials file. It is created if it does not exist.
    #[arg(long, value_name = "FILE")]
    credentials: PathBuf,
}

#[derive(Args)]
pub struct List {
    /// The credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: PathBuf,
    #[command(flatten)]
    settings: Flags<Output>,
}

#[derive(Args)]
pub struct Extend {
    /// The name of a caller, or the id of a token.
    #[arg(value_name = "NAME|TOKEN_ID")]
    which: String,
    /// When it expires: a duration from now such as 90d, or a time such as 2030-01-01T00:00:00Z, or
    /// never. By default, in a year.
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = expiry)]
    expires: Expiry,
    /// The credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: PathBuf,
}

#[derive(Args)]
pub struct Revoke {
    /// The name of a caller, or the id of a token.
    #[arg(value_name = "NAME|TOKEN_ID")]
    which: String,
    /// The credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: PathBuf,
}

#[derive(Args)]
pub struct Check {
    /// The credentials file.
    #[arg(long, value_name = "FILE")]
    credentials: PathBuf,
    /// The file of a token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

pub fn run(command: Token) -> Result<(), Failure> {
    match command {
        Token::Create(command) => create(&command),
        Token::List(command) => list(&command),
        Token::Extend(command) => extend(&command),
        Token::Revoke(command) => revoke(&command),
        Token::Check(command) => check(&command),
    }
}

/// Prints the token once the file is synced to the disk.
fn create(command: &Create) -> Result<(), Failure> {
    let new = NewToken {
        name: command.name.clone(),
        role: command.role,
        tenants: command.tenants.clone(),
        limits: None,
        expires: command.expires.0,
    };
    let created = edits::create(&command.credentials, &new, |_| ());
    let secret = created.map_err(|error| files::failure(&command.credentials, error))?;
    output::print(&format!("{}\n", secret.expose_secret()))
}

fn extend(command: &Extend) -> Result<(), Failure> {
    let (path, which) = (&command.credentials, Which::CallerOrToken(command.which.clone()));
    let count = edits::extend(path, &which, command.expires.0, |_| ());
    let count = count.map_err(|error| files::failure(path, error))?;
    output::print(&format!("extended: {count}\n"))
}

fn revoke(command: &Revoke) -> Result<(), Failure> {
    let (path, which) = (&command.credentials, Which::CallerOrToken(command.which.clone()));
    let count = edits::revoke(path, &which, |_| ());
    let count = count.map_err(|error| files::failure(path, error))?;
    output::print(&format!("revoked: {count}\n"))
}

/// Reads and checks a credentials file.
fn read(path: &Path) -> Result<Credentials, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| files::failure(path, error))?;
    Credentials::parse(&text, RateLimits::default(), &CallerStates::default())
        .map_err(|error| files::failure(path, error))
}

#[derive(Serialize)]
struct Row {
    name: String,
    role: &'static str,
    tenants: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    expired: bool,
}

fn rows(credentials: &Credentials) -> Vec<Row> {
    let now = SystemTime::now();
    let row = |credential: &access::Credential| Row {
        name: credential.caller.name.clone(),
        role: credential.caller.role.name(),
        tenants: credential.caller.tenants.patterns().to_vec(),
        token: credential.token.as_ref().map(|hash| hash.id().to_owned()),
        certificate: credential.certificate.clone(),
        expires: credential.expires.map(time::second),
        expired: credential.has_expired(now),
    };
    credentials.list().into_iter().map(row).collect()
}

fn list(command: &List) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    let rows = rows(&read(&command.credentials)?);
    if settings.json {
        return rows.iter().try_for_each(output::print_json);
    }

    let mut table = output::table(["caller", "role", "tenants", "credential", "expires"]);
    for row in rows {
        let mut expires = row.expires.unwrap_or_else(|| "never".to_owned());
        if row.expired {
            expires.push_str(" (expired)");
        }
        let credentials: Vec<_> = [row.token, row.certificate].into_iter().flatten().collect();
        let (role, tenants) = (row.role.to_owned(), row.tenants.join(" "));
        table.add_row([row.name, role, tenants, credentials.join(" "), expires]);
    }
    output::print_table(&table)
}

fn check(command: &Check) -> Result<(), Failure> {
    let credentials = read(&command.credentials)?;
    let Some(path) = &command.token_file else {
        return check_file(&command.credentials, &credentials);
    };
    let text = std::fs::read_to_string(path).map_err(|error| files::failure(path, error))?;
    let token = access::Token::parse(text.trim())
        .ok_or_else(|| files::failure(path, "the file has no token"))?;
    // A credential may also require a certificate, which this command takes for given.
    let names: Vec<_> = credentials
        .list()
        .into_iter()
        .find(|entry| entry.token.as_ref().is_some_and(|hash| hash.matches(token)))
        .and_then(|entry| entry.certificate.clone())
        .into_iter()
        .collect();
    let caller = credentials.caller(Some(token), &names, SystemTime::now()).ok_or_else(|| {
        Failure::Other("the token is unknown, was revoked, or has expired".to_owned())
    })?;

    output::print(&format!("{}: {} of {}\n", caller.name, caller.role, caller.tenants))
}

fn check_file(path: &Path, credentials: &Credentials) -> Result<(), Failure> {
    let count = credentials.list().len();
    let people = credentials.provider().map(|provider| {
        let (issuer, grants) = (&provider.issuer, provider.grants().len());
        format!(", people sign in by {issuer} with {grants} grants")
    });
    if count == 0 && people.is_none() {
        let message = "no callers, so a server rejects it: add one with `polynym token create`";
        return Err(files::failure(path, message));
    }
    let people = people.unwrap_or_default();
    output::print(&format!("the file is valid: {count} credentials{people}\n"))
}

/// When a token expires; none for never.
#[derive(Clone, Copy, Debug)]
struct Expiry(Option<SystemTime>);

/// Parses a time, a duration from now, or `never`.
fn expiry(text: &str) -> Result<Expiry, &'static str> {
    time::expiry(text).map(Expiry)
}
