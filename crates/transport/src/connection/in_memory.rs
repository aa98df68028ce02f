//! Connections from within the program: pages of its own are clients of the API, with the same
//! access, limits and usage as all others.

use std::io;
use std::net::SocketAddr;

use tokio::io::DuplexStream;
use tokio::sync::mpsc;

/// The bytes that wait in each direction of a connection.
const BUFFER_BYTES: usize = 64 << 10;
/// The connections that wait to be accepted.
const MAX_WAITING: usize = 64;

/// A connection that waits, and the address of the client that it is made for.
pub type InMemory = (DuplexStream, Option<SocketAddr>);

/// Makes connections to a server in this program.
#[derive(Clone, Debug)]
pub struct Connector(mpsc::Sender<InMemory>);

/// The connections that a server in this program accepts.
#[derive(Debug)]
pub struct InMemoryListener(mpsc::Receiver<InMemory>);

/// A connector, and the listener for the server.
pub fn in_memory() -> (Connector, InMemoryListener) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    (Connector(sender), InMemoryListener(receiver))
}

impl Connector {
    /// Connects on behalf of the client at `address`.
    ///
    /// # Errors
    /// The server has stopped.
    pub async fn connect(&self, address: Option<SocketAddr>) -> io::Result<DuplexStream> {
        let (client, server) = tokio::io::duplex(BUFFER_BYTES);
        let sent = self.0.send((server, address)).await;
        sent.map_err(|_| io::Error::new(io::ErrorKind::ConnectionRefused, "the server stopped"))?;
        Ok(client)
    }
}

impl InMemoryListener {
    /// The next connection. Waits forever once there are no connectors.
    pub(crate) async fn next(&mut self) -> InMemory {
        match self.0.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }
}
