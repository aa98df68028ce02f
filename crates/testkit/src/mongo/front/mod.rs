//! A front end with the protocol of mongos, before the shards of a real cluster. Chunks,
//! migrations, the routing of each operation and two-phase commits are those of MongoDB: a shard of
//! version 6.0 has the routing code of mongos under internal names, so outside transactions the
//! front end renames commands and forwards them; inside one it does the work of mongos, see
//! [`transaction`], and so it does for finds without sorting over several shards, see [`cursors`],
//! and for change streams, see [`streams`]. Not supported: retryable writes, findAndModify,
//! aggregate in a transaction, explain and distinct. An unknown command gets CommandNotFound.

mod admin;
mod chunks;
mod clock;
mod command;
mod cursors;
mod fault;
mod links;
mod statement;
mod streams;
mod tables;
mod transaction;
pub mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mongodb::bson::raw::cstr;
use mongodb::bson::{DateTime, Document, RawDocumentBuf, doc};
use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use clock::Clock;
use command::Command;
use cursors::{Finds, expired, time_limit};
use fault::{Fault, is_ok};
pub use links::Server;
use links::{Links, ROUTER};
use streams::Streams;
use tables::Tables;
use transaction::Transactions;
use wire::{MSG, Message, QUERY};

/// Commands that a shard routes, with their internal names.
const ROUTED: [(&str, &str); 6] = [
    ("find", "clusterFind"),
    ("insert", "clusterInsert"),
    ("update", "clusterUpdate"),
    ("delete", "clusterDelete"),
    ("aggregate", "clusterAggregate"),
    ("getMore", "clusterGetMore"),
];

/// Commands that any shard can answer.
const PASSED: [&str; 12] = [
    "buildInfo",
    "buildinfo",
    "endSessions",
    "killCursors",
    "connectionStatus",
    "getParameter",
    "hostInfo",
    "serverStatus",
    "whatsmyuri",
    "refreshSessions",
    "logout",
    "getCmdLineOpts",
];

/// A front end that runs until the process ends.
pub struct Front {
    address: SocketAddr,
}

impl Front {
    /// Starts a front end for `servers`: the config server, then the shards.
    pub async fn start(servers: Vec<Server>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Arc::new(
            Router::new(servers).await.unwrap_or_else(|fault| panic!("{:?}", fault.reply())),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let router = router.clone();
                tokio::spawn(async move { router.serve(stream).await });
            }
        });
        Self { address }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The state that all connections share.
struct Router {
    servers: Arc<[Server]>,
    clock: Arc<Clock>,
    tables: Tables,
    finds: Arc<Finds>,
    streams: Streams,
    transactions: Transactions,
    hello: Document,
}

impl Router {
    async fn new(servers: Vec<Server>) -> Result<Self, Fault> {
        let (servers, clock): (Arc<[Server]>, _) = (servers.into(), Arc::new(Clock::default()));
        let mut links = Links::new(servers.clone(), clock.clone());
        let hello = hello(links.ask(ROUTER, "admin", doc! { "hello": 1 }).await?);
        let finds = Arc::new(Finds::new(clock.clone()));
        let streams = Streams::new(clock.clone());
        let transactions = Transactions::new(clock.clone(), finds.clone());
        let tables = Tables::default();
        Ok(Self { servers, clock, tables, finds, streams, transactions, hello })
    }

    /// Answers the commands of one client in order.
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut client = BufStream::new(stream);
        let mut links = Links::new(self.servers.clone(), self.clock.clone());

        while let Some(request) = Message::read(&mut client).await? {
            let reply = match request.kind() {
                QUERY => Message::query_reply(request.id(), &self.hello()?),
                MSG => self.answer(&request, &mut links).await?,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            if request.kind() == QUERY || request.wants_reply() {
                client.write_all(reply.bytes()).await?;
                client.flush().await?;
            }
        }

        Ok(())
    }

    async fn answer(&self, request: &Message, links: &mut Links) -> io::Result<Message> {
        let command = Command::read(request)?;
        self.clock.advance(command.body);
        match self.route(&command, links).await {
            Ok(None) => {}
            Ok(Some(reply)) => return Ok(Message::reply(request.id(), &reply)),
            Err(fault) => return Ok(Message::reply(request.id(), &fault.reply())),
        }
        if let Some(name) = self.passed_as(&command) {
            let passed = match self.prepare(&command, links).await {
                Ok(()) => {
                    let renamed = request.renamed(name)?;
                    let passed = timeout(time_limit(command.body), pass(&command, &renamed, links));
                    passed.await.unwrap_or_else(|_| Err(expired()))
                }
                Err(fault) => Err(fault),
            };
            return Ok(passed.unwrap_or_else(|fault| Message::reply(request.id(), &fault.reply())));
        }

        let reply = self.run(&command, links).await.unwrap_or_else(Fault::reply);
        Ok(Message::reply(request.id(), &reply))
    }

    /// Executes a read outside transactions, if this front end does so itself.
    async fn route(
        &self,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        match command.name {
            _ if command.in_transaction() => Ok(None),
            "find" => self.finds.find(&self.tables, command, links).await,
            "aggregate" if command.is_change_stream() => {
                self.streams.watch(command, links).await.map(Some)
            }
            "getMore" if self.streams.has(command.body.get_i64("getMore")?) => {
                self.streams.more(command, links).await.map(Some)
            }
            "getMore" if self.finds.has(command.body.get_i64("getMore")?) => {
                let session = command.body.get("lsid")?;
                let mark = |_, more: &mut RawDocumentBuf| {
                    session.into_iter().for_each(|session| more.append(cstr!("lsid"), session));
                };
                self.finds.more(command, mark, links).await.map(Some)
            }
            "killCursors" => {
                let ids = command.body.get_array("cursors")?.into_iter().flatten();
                let ids: Vec<_> = ids.filter_map(|id| id.as_i64()).collect();
                self.finds.kill(&ids);
                self.streams.kill(&ids);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Returns the name under which a shard answers this command unchanged.
    fn passed_as<'n>(&self, command: &Command<'n>) -> Option<&'n str> {
        if command.in_transaction() {
            return None;
        }
        let routed =
            ROUTED.iter().find(|(name, _)| *name == command.name).map(|(_, routed)| *routed);
        routed.or_else(|| PASSED.contains(&command.name).then_some(command.name))
    }

    /// Rejects unsupported commands, and creates the database for a write.
    async fn prepare(&self, command: &Command<'_>, links: &mut Links) -> Result<(), Fault> {
        if command.body.get("txnNumber")?.is_some() {
            return Err(Fault::own(
                20,
                "IllegalOperation",
                "there are no retryable writes here: use retryWrites=false",
            ));
        }

        if matches!(command.name, "insert" | "update")
            && !matches!(command.database, "config" | "admin")
        {
            self.tables.ensure_database(command.database, links).await?;
        }

        Ok(())
    }

    async fn run(&self, command: &Command<'_>, links: &mut Links) -> Result<RawDocumentBuf, Fault> {
        if matches!(command.name, "hello" | "isMaster" | "ismaster") {
            return Ok(self.hello()?);
        }
        if command.name == "ping" {
            return Ok(RawDocumentBuf::try_from(&doc! { "ok": 1.0 })?);
        }
        if command.in_transaction() {
            return self.transactions.run(&self.tables, command, links).await;
        }
        let reply = self
            .tables
            .administer(command.name, command.database, command.document()?, links)
            .await?;
        Ok(RawDocumentBuf::try_from(&reply)?)
    }

    fn hello(&self) -> io::Result<RawDocumentBuf> {
        let mut hello = self.hello.clone();
        hello.insert("localTime", DateTime::now());
        RawDocumentBuf::try_from(&hello).map_err(io::Error::other)
    }
}

/// Forwards a command to a shard that routes it. Mongos refreshes its routing table when it is
/// outdated; the code in a shard does so only in part.
async fn pass(
    command: &Command<'_>,
    message: &Message,
    links: &mut Links,
) -> Result<Message, Fault> {
    for _ in 0..10 {
        let reply = links.send(ROUTER, message).await?;
        let body = reply.body()?;
        if is_ok(body) || !Fault::status_details(Document::try_from(body)?).is_stale() {
            return Ok(reply.with_operation_time()?);
        }
        let space = format!("{}.{}", command.database, command.body.get_str(command.name)?);
        let refresh = doc! { "_flushRoutingTableCacheUpdates": space, "syncFromConfig": true };
        links.ask(ROUTER, "admin", refresh).await?;
    }

    Ok(links.send(ROUTER, message).await?.with_operation_time()?)
}

/// Builds the reply to a hello.
fn hello(shard: Document) -> Document {
    let limits = [
        "maxBsonObjectSize",
        "maxMessageSizeBytes",
        "maxWriteBatchSize",
        "logicalSessionTimeoutMinutes",
    ];

    let versions = ["minWireVersion", "maxWireVersion"];
    let mut hello =
        doc! { "isWritablePrimary": true, "ismaster": true, "helloOk": true, "msg": "isdbgrid" };
    hello.extend(
        shard
            .into_iter()
            .filter(|(key, _)| [&limits[..], &versions].concat().contains(&key.as_str())),
    );

    hello.extend(doc! { "connectionId": 1, "readOnly": false, "ok": 1.0 });
    hello
}
