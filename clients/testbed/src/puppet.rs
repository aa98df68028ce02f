//! A client under test.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, Stdin, Stdout, stdin, stdout};
use tokio::time::timeout;

use crate::{Outcome, context};

/// The maximum time of a step: a client that hangs fails its scenario.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);

/// Takes steps and answers them.
pub trait Puppet {
    /// Takes one step, such as `{"id":1,"op":"connect",…}`, and returns its answer.
    fn take(&mut self, step: Value) -> impl Future<Output = Outcome<Value>> + Send;
}

/// A client in another process: steps are lines on standard output, answers on standard input.
pub struct StdioPuppet {
    input: Lines<BufReader<Stdin>>,
    output: Stdout,
}

impl StdioPuppet {
    /// A puppet behind this process's standard streams.
    pub fn new() -> Self {
        Self { input: BufReader::new(stdin()).lines(), output: stdout() }
    }
}

impl Default for StdioPuppet {
    fn default() -> Self {
        Self::new()
    }
}

impl Puppet for StdioPuppet {
    async fn take(&mut self, step: Value) -> Outcome<Value> {
        let line = format!("{step}\n");
        self.output.write_all(line.as_bytes()).await.map_err(context("the client is gone"))?;
        self.output.flush().await.map_err(context("the client is gone"))?;
        let answer = timeout(STEP_TIMEOUT, self.input.next_line())
            .await
            .map_err(|_| "the client does not answer".to_owned())?
            .map_err(context("standard input"))?
            .ok_or("the client has closed standard input")?;
        let answer: Value = serde_json::from_str(&answer).map_err(context("the answer"))?;
        if answer["id"] != step["id"] {
            return Err(format!("the answer is not that of step {}: {answer}", step["id"]));
        }
        Ok(answer)
    }
}
