//! `polynym token`: the credentials file of a server. Works without one.

mod file;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::failure::Failure;
use super::files;
use super::output;
use crate::access::{self, Credentials, Role};
use crate::config::{Flags, Output};

pub const EXAMPLES: &str = "\
Examples:
  polynym token create billing --role resolver --credentials callers.toml > billing.token
  polynym token list --credentials callers.toml
  polynym token revoke billing --credentials callers.toml

A server that runs with --credentials uses a change within 5 seconds.";

const CREATE_EXAMPLES: &str = "\
Examples:
  polynym token create billing --role resolver --credentials callers.toml
  polynym token create ops --role admin --tenants '*' --credentials callers.toml
  polynym token create eu --role registrar --tenants 'default,eu-*' --expires 90d \\
    --credentials callers.toml

Prints the token, once: the file keeps its hash alone. A caller may have several tokens, so that
they can be rotated: create the new one, put it in use, and revoke the old one by its id.";

const LIST_EXAMPLES: &str = "Example:\n  polynym token list --credentials callers.toml --json";
const REVOKE_EXAMPLES: &str = "\
Examples:
  polynym token revoke billing --credentials callers.toml
  polynym token revoke k3x0qh2vma --credentials callers.toml";
const CHECK_EXAMPLES: &str = "\
Examples:
  polynym token check --credentials callers.toml
  polynym token check --credentials callers.toml --token-file billing.token

Exit status: 0 the file is sound, and the token is valid if one is given; 1 otherwise.";

#[derive(Subcommand)]
pub enum Token {
    /// Add a token of a caller, and print it.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Create),
    /// Show the callers and the ids of their tokens.
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Take a token away, or all tokens of a caller.
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke(Revoke),
    /// Check a credentials file, and whose token a file has.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
}

#[derive(Args)]
pub struct Create {
    /// The name of the caller, in logs and for its requests' ids.
    name: String,
    /// The rights: resolver (looks up), registrar (changes users, too) or admin (all).
    #[arg(long)]
    role: Role,
    /// The tenants: names, prefixes with * at the end, or *.
    #[arg(long, value_delimiter = ',', default_value = "default")]
    tenants: Vec<String>,
    /// When the token expires: a length of time such as 90d, or a time such as
    /// 2030-01-01T00:00:00Z. Never unless given.
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    expires: Option<SystemTime>,
    /// The credentials file; it is made where there is none.
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
        Token::Revoke(command) => revoke(&command),
        Token::Check(command) => check(&command),
    }
}

/// Prints the token once the file is safe on the disk.
fn create(command: &Create) -> Result<(), Failure> {
    let text = access::generate_token().map_err(Failure::Other)?;
    let text = text.expose_secret();
    let token = access::Token::parse(text)
        .ok_or_else(|| Failure::Other("the new token is malformed".to_owned()))?;
    let entry = file::Entry {
        name: &command.name,
        role: command.role,
        tenants: &command.tenants,
        hash: token.hash().to_string(),
        expires: command.expires,
    };
    file::edit(&command.credentials, |document| file::add(document, &entry))?;
    output::print(&format!("{}\n", text))
}

fn revoke(command: &Revoke) -> Result<(), Failure> {
    let count =
        file::edit(&command.credentials, |document| file::remove(document, &command.which))?;
    output::print(&format!("revoked: {count}\n"))
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
        expires: credential.expires.map(|time| humantime::format_rfc3339_seconds(time).to_string()),
        expired: credential.has_expired(now),
    };
    credentials.list().into_iter().map(row).collect()
}

fn list(command: &List) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    let rows = rows(&file::read(&command.credentials)?);
    if settings.json {
        return rows.iter().try_for_each(output::print_json);
    }

    let mut table = output::table(["caller", "role", "tenants", "credential", "expires"]);
    for row in rows {
        let expires = row.expires.unwrap_or_else(|| "never".to_owned());
        let expires = if row.expired { format!("{expires} (expired)") } else { expires };
        let credential: Vec<_> = [row.token, row.certificate].into_iter().flatten().collect();
        let (role, tenants) = (row.role.to_owned(), row.tenants.join(" "));
        table.add_row([row.name, role, tenants, credential.join(" "), expires]);
    }
    output::print_table(&table)
}

fn check(command: &Check) -> Result<(), Failure> {
    let credentials = file::read(&command.credentials)?;
    let Some(path) = &command.token_file else {
        let count = credentials.list().len();
        if count == 0 {
            let message = "it has no callers, and a server does not use it: add one with `polynym \
                token create`";
            return Err(Failure::Other(format!("{}: {message}", command.credentials.display())));
        }
        return output::print(&format!("the file is sound: {count} credentials\n"));
    };
    let text = std::fs::read_to_string(path).map_err(|error| files::fault(path, error))?;
    let token = access::Token::parse(text.trim())
        .ok_or_else(|| Failure::Other(format!("{}: there is no token in it", path.display())))?;
    // The certificate that may belong to the token is not here to be checked.
    let is_same = |hash: &access::TokenHash| hash.matches(token);
    let entry = credentials.list().into_iter().find(|one| one.token.as_ref().is_some_and(is_same));
    let names: Vec<_> = entry.and_then(|entry| entry.certificate.clone()).into_iter().collect();
    let caller = credentials.caller(Some(token), &names, SystemTime::now()).ok_or_else(|| {
        Failure::Other("the token is unknown, was revoked, or has expired".to_owned())
    })?;

    output::print(&format!("{}: {} of {}\n", caller.name, caller.role, caller.tenants))
}

/// The last time that a credentials file can have, the end of the year 9999.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// A time, or a length of time from now.
fn expiry(text: &str) -> Result<SystemTime, String> {
    let from_now = || SystemTime::now().checked_add(humantime::parse_duration(text).ok()?);
    let time = humantime::parse_rfc3339(text).ok().or_else(from_now);
    let last = SystemTime::UNIX_EPOCH + LAST;
    let time = time.filter(|time| (SystemTime::now()..=last).contains(time));
    time.ok_or_else(|| "write a time to come, such as 90d, 12h or 2030-01-01T00:00:00Z".to_owned())
}
