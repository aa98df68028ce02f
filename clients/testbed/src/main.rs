//! The program `client-testbed [--every-fault] [--without-close] [NAME]`: runs the scenarios, or
//! those with NAME in their names, against the client on its standard input and output. See
//! clients/README.md.

use client_testbed::{Options, StdioPuppet, run};

#[tokio::main]
async fn main() {
    let mut options = Options::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--every-fault" => options.every_fault = true,
            "--without-close" => options.without_close = true,
            name => name.clone_into(&mut options.only),
        }
    }
    let outcome = run(&mut StdioPuppet::new(), options).await;
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
    // A thread that reads standard input would keep the runtime from shutting down.
    std::process::exit(i32::from(failed));
}
