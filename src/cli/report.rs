//! Reports of failed commands: the message on standard error, and the exit status.

use std::process::ExitCode;

use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::failure::Failure;
use super::output::{self, printable};
use crate::proto::google::rpc::Status as RpcStatus;

impl Failure {
    /// Reports the failure on standard error, and as JSON on standard output if that was asked for.
    /// The exit status is 2 for wrong usage, 1 for a failure, 130 after Ctrl-C, and 0 if the reader
    /// of standard output has closed it.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Config(faults) => {
                eprintln!("error: {faults}");
                return ExitCode::from(2);
            }
            Failure::Usage(message) => {
                eprintln!("error: {}", printable(message));
                return ExitCode::from(2);
            }
            Failure::Call(call) => {
                eprintln!("{}", describe(&call.status, call.request_id.as_deref()));
                if call.json {
                    // A terminal that cannot be written to cannot show this error either; it was
                    // logged already.
                    let _ = output::print_error(None, &rich(&call.status));
                }
            }
            Failure::Other(message) => eprintln!("error: {message}"),
            Failure::AlreadyReported => {}
            Failure::PipeClosed => return ExitCode::SUCCESS,
            Failure::Interrupted => return ExitCode::from(130),
        }

        ExitCode::FAILURE
    }
}

/// Message, reason, field and what to do, each on a line.
fn describe(status: &Status, request_id: Option<&str>) -> String {
    let details = status.get_error_details();
    let (message, reason, advice) = match (details.error_info(), unexplained(status.code())) {
        (Some(info), _) => (status.message(), info.reason.as_str(), advice(&info.reason)),
        (None, (message, advice)) => (message, status.message(), Some(advice)),
    };
    // A faulty filter is shown with a caret under it.
    let message: Vec<_> = message.lines().map(printable).collect();
    let mut lines = vec![format!("error: {}", message.join("\n"))];
    lines.push(format!("  reason: {} ({})", printable(reason), code_name(status.code())));
    for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
        lines.push(format!("  field: {}", printable(&violation.field)));
    }

    for (what, key) in [
        ("user", "user_id"),
        ("owner", "owner"),
        ("until", "until"),
        ("merged into", "merged_into"),
        ("earliest", "earliest"),
    ] {
        if let Some(value) = details.error_info().and_then(|info| info.metadata.get(key)) {
            lines.push(format!("  {what}: {}", printable(value)));
        }
    }

    if let Some(advice) = advice {
        lines.push(format!("  what to do: {advice}"));
    }
    if let Some(id) = request_id.filter(|_| is_open(status)) {
        lines.push(format!(
            "  it may have happened: sent again with --request-id {id} it happens once at most"
        ));
    }

    lines.join("\n")
}

/// The status as a message, with its details.
pub fn rich(status: &Status) -> RpcStatus {
    let bare = RpcStatus {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    RpcStatus::decode(status.details()).ok().filter(|rich| rich.code == bare.code).unwrap_or(bare)
}

/// The failure in a sentence.
pub fn sentence(status: &Status) -> String {
    match status.get_error_details().error_info() {
        Some(_) => status.message().to_owned(),
        None => format!("{} ({})", unexplained(status.code()).0, status.message()),
    }
}

/// The message and the advice for a call that failed without a reason: every answer of a Polynym
/// server has one.
const fn unexplained(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::Cancelled | Code::DeadlineExceeded => (
            "no answer came in time",
            "look whether the server is well, or give it more time with --timeout",
        ),
        Code::Unavailable => {
            ("the server cannot be reached", "check that the server runs, and the --server")
        }
        Code::Unimplemented => (
            "the server does not have this call",
            "check the --server: it is an older one, or no Polynym server",
        ),
        _ => (
            "what listens there is no Polynym server, or cannot be understood",
            "check the --server: one with encryption is called with https://",
        ),
    }
}

/// Whether a mutation may have happened although its call failed. Of these reasons, nothing was
/// written.
fn is_open(status: &Status) -> bool {
    let details = status.get_error_details();
    let certain =
        ["OVERLOADED", "STORE_UNAVAILABLE", "SERVER_OUTDATED", "RULES_CHANGING", "CLOCK_IN_DOUBT"];
    let is_certain = details.error_info().is_some_and(|info| certain.contains(&&*info.reason));
    let is_open = matches!(
        status.code(),
        Code::Unknown | Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled
    );
    is_open && !is_certain
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

fn advice(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "IDENTIFIER_INVALID" => "docs/identifiers.md has the rules of each kind",
        "IDENTITY_NOT_FOUND" => {
            "check the spelling and the --tenant; `polynym user get` shows what a user has"
        }
        "USER_NOT_FOUND" => "check the id and the --tenant",
        "IDENTITY_TAKEN" => "look at its owner with `polynym user get`: it may be another person",
        "IDENTITY_HELD" => "wait until then, or end the hold with `polynym identity release`",
        "IDENTITY_CONFUSABLE" => {
            "take one that looks different; `polynym identity normalize` shows what it looks like"
        }
        "IDENTITY_RESERVED" => {
            "take another; `polynym tenant set --reserved-handles` says which are reserved"
        }
        "USER_DISABLED" => "see it with --show-disabled, or let it in with `polynym user enable`",
        "USER_DELETED" => "restore it with `polynym user undelete` first",
        "MERGE_CONFLICT" => "see what differs with --dry-run, and choose a side with --conflicts",
        "TENANT_NOT_FOUND" => "make it with `polynym tenant set`",
        "ETAG_MISMATCH" => {
            "read it again, with `polynym user get` or `polynym tenant get`, and use the etag that \
             it has now"
        }
        "REQUEST_ID_REUSED" => "leave --request-id out, or give a new UUID",
        "BATCH_TOO_LARGE" => "ask for fewer at once",
        "OVERLOADED" | "STORE_UNAVAILABLE" | "RULES_CHANGING" => "try again a little later",
        "SERVER_OUTDATED" => "ask a server of a later version",
        "CLOCK_IN_DOUBT" => "have the clocks of the server and of its store set right",
        "DEADLINE" => "try again, with a longer --timeout",
        "HISTORY_EXPIRED" => "ask for a later time: the earliest is above",
        "INTERNAL" => "look into the server's log",
        _ => return None,
    })
}
