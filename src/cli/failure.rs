//! What ends a command without success, how it is told, and which exit status that gives.

use std::io;
use std::process::ExitCode;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::output::printable;
use crate::config::Faults;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is wrong.
    Config(Faults),
    /// The server answered with an error. The request's id is there where sending it again is safe.
    Call(Box<Status>, Option<String>),
    /// Something else, in a sentence.
    Other(String),
    /// All was told already.
    Told,
    /// Nobody reads what is printed.
    Unread,
}

impl Failure {
    /// Tells what went wrong on standard error. The exit status is 2 for wrong usage, 1 for a failure, and 0 where the
    /// reader of standard output has seen enough.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Config(faults) => {
                eprintln!("error: {faults}");
                return ExitCode::from(2);
            }
            Failure::Call(status, request_id) => eprintln!("{}", describe(status, request_id.as_deref())),
            Failure::Other(message) => eprintln!("error: {message}"),
            Failure::Told => {}
            Failure::Unread => return ExitCode::SUCCESS,
        }
        ExitCode::FAILURE
    }
}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Self {
        Failure::Config(faults)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Call(Box::new(status), None)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::Other(format!("cannot write: {error}")),
        }
    }
}

/// Message, reason, field and what to do, each on a line.
fn describe(status: &Status, request_id: Option<&str>) -> String {
    let details = status.get_error_details();
    let reason = details.error_info().map_or("", |info| info.reason.as_str());
    let mut lines = vec![format!("error: {}", printable(status.message()))];
    lines.push(format!("  reason: {} ({})", printable(or_code(reason, status.code())), code_name(status.code())));
    for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
        lines.push(format!("  field: {}", printable(&violation.field)));
    }
    if let Some(owner) = details.error_info().and_then(|info| info.metadata.get("owner")) {
        lines.push(format!("  owner: {}", printable(owner)));
    }
    if let Some(until) = details.error_info().and_then(|info| info.metadata.get("until")) {
        lines.push(format!("  until: {}", printable(until)));
    }
    if let Some(into) = details.error_info().and_then(|info| info.metadata.get("merged_into")) {
        lines.push(format!("  merged into: {}", printable(into)));
    }
    if let Some(advice) = advice(reason, status.code()) {
        lines.push(format!("  what to do: {advice}"));
    }
    if let Some(id) = request_id.filter(|_| is_open(status.code())) {
        lines.push(format!("  it may have happened: sent again with --request-id {id} it happens once at most"));
    }
    lines.join("\n")
}

fn or_code(reason: &str, code: Code) -> &str {
    match (reason, code) {
        ("", Code::Unavailable) => "the server cannot be reached",
        ("", Code::Unimplemented) => "the server does not have this call",
        ("", _) => "not given",
        (reason, _) => reason,
    }
}

/// Whether a mutation may have happened although its call failed.
fn is_open(code: Code) -> bool {
    matches!(code, Code::Unknown | Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled)
}

/// The code's name in gRPC's own spelling: `NOT_FOUND`.
fn code_name(code: Code) -> String {
    let mut name = String::new();
    for c in format!("{code:?}").chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

fn advice(reason: &str, code: Code) -> Option<&'static str> {
    Some(match reason {
        "IDENTIFIER_INVALID" => "docs/identifiers.md has the rules of each kind",
        "IDENTITY_NOT_FOUND" => "check the spelling and the --tenant; `polynym user get` shows what a user has",
        "USER_NOT_FOUND" => "check the id and the --tenant",
        "IDENTITY_TAKEN" => "look at its owner with `polynym user get`: it may be another person",
        "IDENTITY_HELD" => "wait until then, or end the hold with `polynym identity release`",
        "IDENTITY_CONFUSABLE" => "take one that looks different; `polynym identity normalize` shows what it looks like",
        "USER_DISABLED" => "see it with --show-disabled, or let it in with `polynym user enable`",
        "USER_DELETED" => "restore it with `polynym user undelete` first",
        "MERGE_CONFLICT" => "see what differs with --dry-run, and choose a side with --conflicts",
        "TENANT_NOT_FOUND" => "make it with `polynym tenant set`",
        "ETAG_MISMATCH" => "read the user with `polynym user get` and use the etag that it has now",
        "REQUEST_ID_REUSED" => "leave --request-id out, or give a new UUID",
        "BATCH_TOO_LARGE" => "ask for fewer at once",
        "OVERLOADED" | "STORE_UNAVAILABLE" => "try again a little later",
        _ => match code {
            Code::Unavailable => "check that the server runs, and the --server",
            Code::DeadlineExceeded | Code::Cancelled => "try again, with a longer --timeout",
            Code::Internal => "look into the server's log",
            _ => return None,
        },
    })
}
