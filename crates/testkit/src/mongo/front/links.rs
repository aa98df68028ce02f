//! The server connections of one client connection: one to each server, opened on first use.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use mongodb::bson::{Document, RawDocument, RawDocumentBuf, doc};
use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

use super::clock::Clock;
use super::fault::Fault;
use super::wire::Message;

pub fn majority() -> Document {
    doc! { "w": "majority", "wtimeout": 30_000 }
}

/// The indexes of the config server and of the shard that routes.
pub const CONFIG: usize = 0;
pub const ROUTER: usize = 1;

/// A server behind the front end.
pub struct Server {
    /// The name in the cluster.
    pub name: String,
    pub address: SocketAddr,
}

pub struct Links {
    servers: Arc<[Server]>,
    clock: Arc<Clock>,
    open: Vec<Option<BufStream<TcpStream>>>,
}

impl Links {
    pub fn new(servers: Arc<[Server]>, clock: Arc<Clock>) -> Self {
        let open = servers.iter().map(|_| None).collect();
        Self { servers, clock, open }
    }

    /// The indexes of the shards.
    pub fn shards(&self) -> std::ops::Range<usize> {
        ROUTER..self.servers.len()
    }

    /// Returns the index of the server with this name.
    pub fn find(&self, name: &str) -> Result<usize, Fault> {
        let found = self.servers.iter().position(|server| server.name == name);
        found.ok_or_else(|| Fault::own(70, "ShardNotFound", format!("there is no shard {name}")))
    }

    pub fn name(&self, server: usize) -> &str {
        &self.servers[server].name
    }

    /// Returns the address of a server.
    pub fn host(&self, server: usize) -> String {
        self.servers[server].address.to_string()
    }

    /// Sends a message unchanged and returns the reply unchanged.
    pub async fn send(&mut self, to: usize, message: &Message) -> Result<Message, Fault> {
        let (link, reply) =
            exchange(self.open[to].take(), self.servers[to].address, message).await?;
        self.open[to] = Some(link);
        self.clock.advance(reply.body()?);
        Ok(reply)
    }

    /// Sends commands to distinct servers concurrently. Returns their replies in order; a reply may
    /// report an error.
    pub async fn send_all(
        &mut self,
        commands: &[(usize, RawDocumentBuf)],
    ) -> Vec<Result<RawDocumentBuf, Fault>> {
        let exchanges: Vec<_> =
            commands.iter().map(|(to, command)| self.exchange(*to, command)).collect();
        let mut replies = Vec::with_capacity(commands.len());
        for ((to, _), outcome) in commands.iter().zip(join_all(exchanges).await) {
            replies.push(
                outcome
                    .and_then(|(link, reply)| {
                        self.open[*to] = Some(link);
                        let body = reply.body()?.to_owned();
                        self.clock.advance(&body);
                        Ok(body)
                    })
                    .map_err(Fault::from),
            );
        }

        replies
    }

    fn exchange(
        &mut self,
        to: usize,
        command: &RawDocument,
    ) -> impl Future<Output = io::Result<(BufStream<TcpStream>, Message)>> + use<> {
        let (link, address, message) =
            (self.open[to].take(), self.servers[to].address, Message::command(command));
        async move { exchange(link, address, &message).await }
    }

    /// Sends a command to `database`. Returns the reply, or its error.
    pub async fn ask(
        &mut self,
        to: usize,
        database: &str,
        mut command: Document,
    ) -> Result<Document, Fault> {
        command.insert("$db", database);
        let message = Message::command(&RawDocumentBuf::try_from(&command)?);
        let reply = Document::try_from(self.send(to, &message).await?.body()?)?;
        if reply.get_f64("ok").is_ok_and(|ok| ok == 1.0) {
            Ok(reply)
        } else {
            Err(Fault::status_details(reply))
        }
    }
}

/// Sends a message over `link`, or over a new connection. Returns the connection and the reply.
async fn exchange(
    link: Option<BufStream<TcpStream>>,
    address: SocketAddr,
    message: &Message,
) -> io::Result<(BufStream<TcpStream>, Message)> {
    let mut link = match link {
        Some(link) => link,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            BufStream::new(stream)
        }
    };

    link.write_all(message.bytes()).await?;
    link.flush().await?;
    let reply = Message::read(&mut link).await?;
    Ok((link, reply.ok_or(io::ErrorKind::UnexpectedEof)?))
}
