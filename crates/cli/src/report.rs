//! Reports of failed commands: the message on standard error, and the exit status.

use std::process::ExitCode;

use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::failure::Failure;
use crate::output::{self, printable};
use polynym_presentation::advice;
use polynym_proto::google::rpc::Status as RpcStatus;

impl Failure {
    /// Reports the failure on standard error, and as JSON on standard output with `--json`.
    /// The exit status is 2 for wrong usage and for the changes of a dry run of `apply`, 1 for a
    /// failure, 130 after Ctrl-C, and 0 if the reader closed standard output.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Config(errors) => {
                eprintln!("error: {errors}");
                return ExitCode::from(2);
            }
            Failure::Usage(message) => {
                eprintln!("error: {}", printable(message));
                return ExitCode::from(2);
            }
            Failure::Call(call) => {
                eprintln!("{}", describe(&call.status, call.request_id.as_deref()));
                if call.json {
                    // The error is on standard error already: ignore a closed output.
                    let _ = output::print_error(None, &rpc_status(&call.status));
                }
            }
            Failure::Other(message) => eprintln!("error: {message}"),
            Failure::WouldChange => return ExitCode::from(2),
            Failure::AlreadyReported => {}
            Failure::PipeClosed => return ExitCode::SUCCESS,
            Failure::Interrupted => return ExitCode::from(130),
        }

        ExitCode::FAILURE
    }
}

/// Message, reason, fields and advice, one per line.
fn describe(status: &Status, request_id: Option<&str>) -> String {
    let details = status.get_error_details();
    let (message, reason, advice) = match (details.error_info(), without_reason(status.code())) {
        (Some(info), _) => {
            (status.message(), info.reason.as_str(), advice(&info.reason, status.message()))
        }
        (None, (message, advice)) => (message, status.message(), Some(advice)),
    };
    // The message on a filter has several lines, the last with a caret.
    let printable_lines: Vec<_> = message.lines().map(printable).collect();
    let mut lines = vec![format!("error: {}", printable_lines.join("\n"))];
    lines.push(format!("  reason: {} ({})", printable(reason), code_name(status.code())));
    for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
        lines.push(format!("  field: {}", printable(&violation.field)));
    }

    for (label, key) in [
        ("user", "user_id"),
        ("owner", "owner"),
        ("until", "until"),
        ("merged into", "merged_into"),
        ("earliest", "earliest"),
    ] {
        if let Some(value) = details.error_info().and_then(|info| info.metadata.get(key)) {
            lines.push(format!("  {label}: {}", printable(value)));
        }
    }

    if let Some(advice) = advice {
        lines.push(format!("  what to do: {advice}"));
    }
    if let Some(id) = request_id {
        lines.push(format!("  it may have succeeded; retry safely with --request-id {id}"));
    }

    lines.join("\n")
}

/// The status as a message, with its details.
pub fn rpc_status(status: &Status) -> RpcStatus {
    let bare = RpcStatus {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    RpcStatus::decode(status.details()).ok().filter(|rich| rich.code == bare.code).unwrap_or(bare)
}

/// The failure in one line.
pub fn one_line(status: &Status) -> String {
    match status.get_error_details().error_info() {
        Some(_) => status.message().to_owned(),
        None => format!("{} ({})", without_reason(status.code()).0, status.message()),
    }
}

/// The message and the advice for an error without a reason: it is not from a Polynym server, whose
/// errors all have one.
const fn without_reason(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::Cancelled | Code::DeadlineExceeded => {
            ("no answer came in time", "check the server, or allow more time with --timeout")
        }
        Code::Unavailable => (
            "the server cannot be reached",
            "check that the server is running, and check the --server",
        ),
        Code::Unimplemented => (
            "the server does not have this call",
            "check the --server: it is an older version, or not a Polynym server",
        ),
        _ => (
            "not a Polynym server, or its TLS setting differs",
            "check the --server: with TLS, its URL starts with https://",
        ),
    }
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

fn advice(reason: &str, message: &str) -> Option<&'static str> {
    match reason {
        "IDENTIFIER_INVALID" if message.contains("give a region") => {
            Some("name the country, as in phone/DE:030123456, or write it as in phone:+4930123456")
        }
        _ => advice::terminal(reason),
    }
}
