//! The program `client-testbed [NAME]`: runs the scenarios, or those with NAME in their names,
//! against the client on its standard input and output. See clients/README.md.

use client_testbed::{Options, StdioPuppet, run};

#[tokio::main]
async fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let outcome = run(&mut StdioPuppet::new(), Options { only, ..Options::default() }).await;
    let failed = match outcome {
        Ok(report) => {
            eprintln!("{report}");
            !report.failures.is_empty()
        }
        Err(fault) => {
            eprintln!("client-testbed: {fault}");
            true
        }
    };
    // A thread that waits for standard input would keep a runtime that shuts down.
    std::process::exit(i32::from(failed));
}
