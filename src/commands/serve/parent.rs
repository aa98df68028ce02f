//! Stops a server for tests when the program that started it ends, even if it is killed: the kernel
//! then closes the pipe on the server's standard input.

use std::fs::File;
use std::future::pending;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

/// The pause before a pipe that does not block is read again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The program at the other end of the standard input.
pub struct Parent(Option<oneshot::Receiver<()>>);

impl Parent {
    /// Reads the standard input if it is a pipe, or a socket, which some programs use as one. The
    /// end of a terminal, a file or `/dev/null` does not mean that the program has ended.
    pub fn new() -> io::Result<Self> {
        if !is_pipe()? {
            return Ok(Self(None));
        }
        let (has_left, left) = oneshot::channel();
        thread::Builder::new().name("polynym-stdin".to_owned()).spawn(|| {
            read_to_end(&mut io::stdin().lock());
            // The receiver is gone if the server stops for another reason.
            let _ = has_left.send(());
        })?;
        Ok(Self(Some(left)))
    }

    /// Returns once the program has closed the pipe or has ended.
    pub async fn left(self) {
        match self.0 {
            Some(left) => _ = left.await,
            None => pending().await,
        }
    }
}

fn is_pipe() -> io::Result<bool> {
    // A closed standard input is no pipe.
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(false) };
    let kind = File::from(input).metadata()?.file_type();
    Ok(kind.is_fifo() || kind.is_socket())
}

/// Reads and ignores everything.
fn read_to_end(input: &mut impl Read) {
    let mut ignored = [0; 1024];
    loop {
        match input.read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_DELAY),
            Err(_) => return,
        }
    }
}
