//! Transactions over several shards, as in mongos: each statement goes to the shards that own its
//! keys, with the versions of their chunks; all shards read one snapshot; a transaction with one
//! written shard commits there, and others use the two-phase commit of MongoDB, coordinated by the
//! first shard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, rawdoc};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::chunks::Chunks;
use super::clock::{Clock, ClusterTime};
use super::command::Command;
use super::cursors::{Finds, Replies, time_limit};
use super::fault::{Fault, RETRYABLE, TRANSIENT, is_ok};
use super::links::Links;
use super::statement::{Part, Statement, accepted, is_read_only, merged};
use super::tables::Tables;

/// The time that an abort after a failed statement waits for all shards.
const ABORT_TIMEOUT: Duration = Duration::from_millis(200);

/// The latest transaction of each session, by session id: a commit may be sent again after the end.
pub struct Transactions {
    latest: StdMutex<HashMap<Vec<u8>, Arc<Mutex<Transaction>>>>,
    clock: Arc<Clock>,
    finds: Arc<Finds>,
}

struct Transaction {
    session: RawDocumentBuf,
    number: i64,
    concern: RawDocumentBuf,
    /// The snapshot of all shards, if the read concern is a snapshot.
    moment: Option<ClusterTime>,
    /// The first participant coordinates the commit.
    participants: Vec<Participant>,
    /// The first shard that has written: it knows the outcome of the commit.
    recovery: Option<usize>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The commit was sent, and may be sent again.
    Committing,
    Aborted,
}

struct Participant {
    shard: usize,
    read_only: bool,
}

impl Transactions {
    pub fn new(clock: Arc<Clock>, finds: Arc<Finds>) -> Self {
        Self { latest: StdMutex::default(), clock, finds }
    }

    /// Returns the transaction of a command, and creates it if the command starts one.
    async fn of(&self, command: &Command<'_>) -> Result<OwnedMutexGuard<Transaction>, Fault> {
        let session = command.body.get_document("lsid")?;
        let number = command.body.get_i64("txnNumber")?;
        let id = session.get_binary("id")?.bytes.to_vec();
        if command.body.get_bool("startTransaction").unwrap_or_default() {
            let started = Arc::new(Mutex::new(Transaction::new(session, number, command.body)));
            self.latest.lock().unwrap().insert(id, started.clone());
            return Ok(started.lock_owned().await);
        }

        let known = self.latest.lock().unwrap().get(&id).cloned();
        match known {
            Some(known) => Some(known.lock_owned().await).filter(|known| known.number == number),
            None => None,
        }
        .ok_or_else(|| unknown(command.name))
    }
}

/// The outcome of a commit is unknown: another router may have executed it.
fn unknown(command: &str) -> Fault {
    if command == "commitTransaction" { absent() } else { absent().labelled(TRANSIENT) }
}

fn absent() -> Fault {
    Fault::own(251, "NoSuchTransaction", "there is no such transaction")
}

impl Transactions {
    /// Executes a statement of a transaction, a commit or an abort.
    pub async fn run(
        &self,
        tables: &Tables,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let mut transaction = match self.of(command).await {
            Err(_) if command.name == "commitTransaction" && names_shard(command.body) => {
                return recover_commit(command.body, links).await;
            }
            known => known?,
        };
        match command.name {
            "commitTransaction" if transaction.state != State::Aborted => {
                let lost =
                    |fault: Fault| if fault.is_lost() { fault.labelled(RETRYABLE) } else { fault };
                transaction.commit(command.body, links).await.map_err(lost)
            }
            "abortTransaction" => {
                transaction.abort(links).await;
                Ok(rawdoc! { "ok": 1.0 })
            }
            // The transaction was aborted here: a commit has no effect.
            _ if transaction.state != State::Open => Err(absent().labelled(TRANSIENT)),
            "getMore" => {
                let mark = |shard, more: &mut RawDocumentBuf| transaction.mark(shard, more);
                self.finds.more(command, mark, links).await
            }
            _ => self.statement(&mut transaction, tables, command, links).await,
        }
    }

    async fn statement(
        &self,
        transaction: &mut Transaction,
        tables: &Tables,
        command: &Command<'_>,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let space = format!("{}.{}", command.database, command.body.get_str(command.name)?);
        let chunks = tables.chunks(&space, links).await?;
        // The chunk may have been on another shard at the time of the snapshot. Mongos reads from
        // the former owner; this front end makes the client retry the transaction.
        if transaction.moment.as_ref().is_some_and(|moment| chunks.moved > moment.time) {
            transaction.abort(links).await;
            let fault =
                Fault::own(246, "SnapshotUnavailable", "a chunk has moved since the snapshot");
            return Err(fault.labelled(TRANSIENT));
        }

        let limit = time_limit(command.body);
        let statement = Statement::new(command)?;
        let rounds = timeout(limit, self.rounds(transaction, (&space, &statement), &chunks, links));
        let outcome = rounds.await.unwrap_or_else(|_| {
            Err(Fault::own(50, "MaxTimeMSExpired", "operation exceeded time limit"))
        });
        if let Err(fault) = outcome {
            // A shard that hangs aborts after its own timeout.
            let _ = timeout(ABORT_TIMEOUT, transaction.abort(links)).await;
            let is_stale = fault.is_stale();
            if is_stale {
                tables.forget_this(&space, &chunks);
            }
            return Err(if is_stale || fault.is_lost() {
                fault.labelled(TRANSIENT)
            } else {
                fault
            });
        }

        let mut reply = outcome?;
        reply.append(cstr!("recoveryToken"), transaction.recovery_token(links));
        Ok(reply)
    }

    async fn rounds(
        &self,
        transaction: &mut Transaction,
        (space, statement): (&str, &Statement<'_, '_>),
        chunks: &Chunks,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let mut replies = Vec::new();
        for round in statement.rounds(chunks)? {
            let request = |part: &Part| {
                let request = statement.request(part, chunks)?;
                Ok((part.shard, self.join(transaction, part.shard, request)))
            };
            let requests = round.iter().map(request).collect::<Result<Vec<_>, Fault>>()?;
            let answers = links.send_all(&requests).await;
            for (part, reply) in round.into_iter().zip(answers) {
                let answer = accepted(&part, reply?)?;
                transaction.wrote(part.shard, !is_read_only(&answer));
                replies.push((part, answer));
            }
        }

        if statement.is_find() {
            let mut all = Replies::default();
            for (part, reply) in &replies {
                all.add(part.shard, reply)?;
            }
            return self.finds.first_batch(space, statement.command(), all);
        }
        let operation = replies.iter().filter_map(|(_, reply)| operation_time(reply)).max();
        let is_one = replies.len() == 1;
        let mut merged = merged(replies)?;
        if !is_one {
            self.finds.append_times(&mut merged, operation);
        }
        Ok(merged)
    }

    /// Adds the transaction to a statement for a shard, and the shard to the participants.
    fn join(
        &self,
        transaction: &mut Transaction,
        shard: usize,
        mut request: RawDocumentBuf,
    ) -> RawDocumentBuf {
        let is_first =
            transaction.participants.iter().all(|participant| participant.shard != shard);
        if is_first {
            transaction.participants.push(Participant { shard, read_only: true });
            request.append(cstr!("startTransaction"), true);
            let is_snapshot =
                transaction.concern.get_str("level").is_ok_and(|level| level == "snapshot");
            if is_snapshot && transaction.moment.is_none() {
                transaction.moment = self.clock.now();
            }
            match transaction.moment.as_ref().filter(|_| is_snapshot) {
                Some(moment) => {
                    let concern = rawdoc! { "level": "snapshot", "atClusterTime": moment.time };
                    request.append(cstr!("readConcern"), concern);
                    request.append(cstr!("$clusterTime"), moment.signed.clone());
                }
                None if transaction.concern.is_empty() => {}
                None => request.append(cstr!("readConcern"), transaction.concern.clone()),
            }
        }

        transaction.mark(shard, &mut request);
        request
    }
}

impl Transaction {
    fn new(session: &RawDocument, number: i64, body: &RawDocument) -> Self {
        let concern = body.get_document("readConcern").map(ToOwned::to_owned).unwrap_or_default();
        Self {
            session: session.to_owned(),
            number,
            concern,
            moment: None,
            participants: Vec::new(),
            recovery: None,
            state: State::Open,
        }
    }

    /// Adds the id of the transaction to a command for a shard.
    fn mark(&self, shard: usize, command: &mut RawDocumentBuf) {
        command.append(cstr!("lsid"), self.session.clone());
        command.append(cstr!("txnNumber"), self.number);
        command.append(cstr!("autocommit"), false);
        if self.participants.first().is_some_and(|first| first.shard == shard) {
            command.append(cstr!("coordinator"), true);
        }
    }

    fn wrote(&mut self, shard: usize, wrote: bool) {
        self.recovery = self.recovery.or(wrote.then_some(shard));
        let participant =
            self.participants.iter_mut().find(|participant| participant.shard == shard);
        participant.into_iter().for_each(|participant| participant.read_only &= !wrote);
    }

    /// The token by which another router can find out the outcome of the commit.
    fn recovery_token(&self, links: &Links) -> RawDocumentBuf {
        let shard = self.recovery.map(|shard| links.name(shard));
        shard.map_or_else(RawDocumentBuf::new, |shard| rawdoc! { "recoveryShardId": shard })
    }

    /// Aborts on all shards. A shard that does not receive the abort aborts after its own timeout.
    async fn abort(&mut self, links: &mut Links) {
        if self.state == State::Open {
            self.state = State::Aborted;
            let shards = self.shards(|_| true);
            links.send_all(&self.end(&shards, &rawdoc! { "abortTransaction": 1 }, None)).await;
        }
    }

    /// Commits, or retries a commit.
    async fn commit(
        &mut self,
        body: &RawDocument,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let (readers, writers) =
            (self.shards(|one| one.read_only), self.shards(|one| !one.read_only));
        let concern = body.get("writeConcern")?;
        let is_first = std::mem::replace(&mut self.state, State::Committing) == State::Open;
        if writers.len() > 1 {
            return self.coordinate(concern, links).await;
        }
        if let ([shard], false, false) = (&writers[..], readers.is_empty(), is_first) {
            let recover = [(*shard, recovery(&self.session, self.number, concern))];
            return committed(links.send_all(&recover).await.remove(0)?);
        }

        let commit = rawdoc! { "commitTransaction": 1 };
        let mut answer = rawdoc! { "ok": 1.0 };
        for shards in [readers, writers] {
            for reply in links.send_all(&self.end(&shards, &commit, concern)).await {
                answer = committed(reply?)?;
            }
        }

        Ok(answer)
    }

    async fn coordinate(
        &self,
        concern: Option<RawBsonRef<'_>>,
        links: &mut Links,
    ) -> Result<RawDocumentBuf, Fault> {
        let id = |participant: &Participant| rawdoc! { "shardId": links.name(participant.shard) };
        let participants: RawArrayBuf = self.participants.iter().map(id).collect();
        let coordinate = rawdoc! { "coordinateCommitTransaction": 1, "participants": participants };
        let first = [self.participants[0].shard];
        links.send_all(&self.end(&first, &coordinate, concern)).await.remove(0)
    }

    /// Returns `command`, which ends the transaction, for each of `shards`.
    fn end(
        &self,
        shards: &[usize],
        command: &RawDocument,
        concern: Option<RawBsonRef<'_>>,
    ) -> Vec<(usize, RawDocumentBuf)> {
        let of_shard = |shard: &usize| {
            let mut command = command.to_owned();
            command.append(cstr!("$db"), "admin");
            if let Some(concern) = concern {
                command.append(cstr!("writeConcern"), concern);
            }
            self.mark(*shard, &mut command);
            (*shard, command)
        };
        shards.iter().map(of_shard).collect()
    }

    fn shards(&self, which: impl Fn(&Participant) -> bool) -> Vec<usize> {
        let selected = self.participants.iter().filter(|participant| which(participant));
        selected.map(|participant| participant.shard).collect()
    }
}

/// Returns the reply to a commit, or its error.
fn committed(reply: RawDocumentBuf) -> Result<RawDocumentBuf, Fault> {
    if is_ok(&reply) { Ok(reply) } else { Err(Fault::status_details((&*reply).try_into()?)) }
}

/// Whether a commit has the token of a transaction that has written.
fn names_shard(commit: &RawDocument) -> bool {
    let token = commit.get_document("recoveryToken");
    token.is_ok_and(|token| token.get_str("recoveryShardId").is_ok())
}

/// Commits a transaction of another router: asks the first shard that has written for the outcome.
/// If that shard does not coordinate the commit, it answers once it has committed itself.
async fn recover_commit(commit: &RawDocument, links: &mut Links) -> Result<RawDocumentBuf, Fault> {
    let shard = links.find(commit.get_document("recoveryToken")?.get_str("recoveryShardId")?)?;
    let (session, number) = (commit.get_document("lsid")?, commit.get_i64("txnNumber")?);
    let recover = [(shard, recovery(session, number, commit.get("writeConcern")?))];
    let lost = |fault: Fault| if fault.is_lost() { fault.labelled(RETRYABLE) } else { fault };
    committed(links.send_all(&recover).await.remove(0).map_err(lost)?)
}

/// Returns the command that asks a shard for the outcome of a transaction.
fn recovery(session: &RawDocument, number: i64, concern: Option<RawBsonRef<'_>>) -> RawDocumentBuf {
    let mut command = rawdoc! {
        "coordinateCommitTransaction": 1,
        "participants": RawArrayBuf::new(),
        "$db": "admin",
        "lsid": session.to_owned(),
        "txnNumber": number,
        "autocommit": false,
    };
    if let Some(concern) = concern {
        command.append(cstr!("writeConcern"), concern);
    }
    command
}

fn operation_time(reply: &RawDocument) -> Option<Timestamp> {
    reply.get_timestamp("operationTime").ok()
}
