//! The events of the store as they are committed, from change streams on the users, whose documents
//! have the tails of their histories. One stream of the server fills [`Recent`], which all watchers
//! share. A watcher with an older position reads a stream of its own until it has caught up.

mod changes;
mod completion;
mod recent;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::database::collections::Collections;
use crate::database::connected::Connected;
use crate::database::operations::Mongo;
use crate::feed::changes::{Change, Changes, StreamToken, with_positions};
use crate::feed::recent::Recent;
use polynym_directory::{
    Error, EventFeed, FeedPage, PageLimit, ResumeToken, Tenant, stores::foreign_token,
};
use polynym_store_common::operations::{Begun, Operation, measure};

/// The limits of the changes and stored bytes in a page.
const MAX_PAGE: PageLimit = PageLimit::new(512, 1 << 20);
/// The limit of changes whose events are completed at once.
const MAX_BATCH: usize = 64;
/// The limit of watchers that read streams of their own.
const MAX_CATCHING_UP: usize = 4;
/// The limit of watchers that ask MongoDB for the current position.
const MAX_OPENING: usize = 4;
/// The delay before the server's stream is reopened.
const REOPEN_DELAY: Duration = Duration::from_secs(1);

/// The events of a store on MongoDB.
pub struct Feed {
    connected: Connected,
    recent: Arc<Recent>,
    catching_up: Semaphore,
    opening: Semaphore,
    /// Fills `recent`, from the first watcher on.
    reader: OnceLock<Reader>,
}

/// A task that ends with its owner.
struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Mongo {
    /// The events of the store as they are committed.
    pub fn feed(&self) -> Arc<dyn EventFeed> {
        Arc::new(Feed {
            connected: self.connected.clone(),
            recent: Arc::new(Recent::default()),
            catching_up: Semaphore::new(MAX_CATCHING_UP),
            opening: Semaphore::new(MAX_OPENING),
            reader: OnceLock::new(),
        })
    }
}

#[async_trait]
impl EventFeed for Feed {
    async fn position(&self) -> Result<ResumeToken, Error> {
        let read = async {
            let collections = self.connected.collections();
            collections.check_versions()?;
            let _permit = self.opening.acquire().await;
            Ok(Changes::open(&collections, None).await?.token()?.into_bytes())
        };
        measure(Operation::Feed, read).await
    }

    async fn events(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        patience: Duration,
    ) -> Result<FeedPage, Error> {
        let mut begun = Operation::Feed.begin();
        let page = self.next_page(tenant, after, patience, &mut begun).await;
        begun.end(&page);
        page
    }
}

impl Feed {
    /// See [`EventFeed::events`].
    async fn next_page(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        patience: Duration,
        begun: &mut Begun,
    ) -> Result<FeedPage, Error> {
        let mut after = stream_token(after)?;
        // Events of a later schema may have another form.
        self.connected.collections().check_versions()?;
        let (connected, recent) = (&self.connected, &self.recent);
        self.reader.get_or_init(|| Reader(tokio::spawn(fill(connected.clone(), recent.clone()))));
        let deadline = Instant::now() + patience;
        let mut changed = recent.subscribe(tenant);
        loop {
            changed.mark_unchanged();
            let is_late = Instant::now() >= deadline;
            let Some(page) = recent.after(tenant, &after, MAX_PAGE) else {
                let page = self.catch_up(tenant, &after).await?;
                if is_late || !page.events.is_empty() {
                    return Ok(page);
                }
                after = stream_token(&page.resume_token)?;
                continue;
            };
            if is_late || !page.events.is_empty() {
                return Ok(page);
            }
            // The window may have moved on meanwhile, whether or not its time is over.
            let _ = begun.pause(timeout_at(deadline, changed.changed())).await;
        }
    }

    /// A page of the tenant's changes after a token, from a change stream of its own.
    async fn catch_up(&self, tenant: &Tenant, after: &StreamToken) -> Result<FeedPage, Error> {
        let permit = self.catching_up.acquire().await;
        let collections = self.connected.collections();
        let mut stream = Changes::open(&collections, Some(after)).await?;
        let (mut changes, mut limit, mut idle) = (Vec::new(), MAX_PAGE, None);
        loop {
            match stream.next().await {
                Ok(Some(change)) => {
                    let is_last = change.is_large() || !limit.take(change.tail.encoded_len());
                    changes.push(change);
                    if is_last {
                        break;
                    }
                }
                Ok(None) => {
                    idle = Some(stream.token()?);
                    break;
                }
                Err(error) if changes.is_empty() => return Err(error),
                // The next page begins with the error.
                Err(_) => break,
            }
        }
        let (mut events, mut token) = (Vec::new(), after.clone());
        for added in collections.complete(changes).await? {
            events.extend(with_positions(added.events, &token, &added.token));
            token = added.token;
        }
        events.retain(|(event, _)| event.tenant == *tenant);
        drop(permit);
        Ok(FeedPage { events, resume_token: idle.unwrap_or(token).into_bytes() })
    }
}

/// Fills `recent` from a change stream, which it reopens after failures and by new connections.
async fn fill(connected: Connected, recent: Arc<Recent>) {
    loop {
        // Watchers get the error when they open their own streams.
        if let Err(error) = read_stream(&connected, &recent).await {
            tracing::debug!(%error, "the change stream has ended");
            recent.clear();
            sleep(REOPEN_DELAY).await;
        }
    }
}

/// Reads a stream on from the end of `recent`, until the stream's connections are replaced: then
/// `recent` has all that was read.
///
/// # Errors
/// The stream has ended.
async fn read_stream(connected: &Connected, recent: &Recent) -> Result<(), Error> {
    let collections = connected.collections();
    let end = recent.end();
    let stream = Changes::open(&collections, end.as_ref()).await?;
    if end.is_none() {
        recent.begin(stream.token()?);
    }
    let (sender, receiver) = mpsc::channel(MAX_BATCH);
    let is_present = || connected.are_present(&collections);
    tokio::try_join!(
        read_steps(stream, is_present, sender),
        complete_steps(&collections, recent, receiver)
    )?;
    Ok(())
}

async fn read_steps(
    mut stream: Changes,
    is_present: impl Fn() -> bool,
    steps: mpsc::Sender<Step>,
) -> Result<(), Error> {
    while is_present() {
        let step = match stream.next().await? {
            Some(change) => Step::Change(Box::new(change)),
            None => Step::Idle(stream.token()?),
        };
        if steps.send(step).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Adds changes to `recent`. Those that arrive while others are completed are completed together.
async fn complete_steps(
    collections: &Collections,
    recent: &Recent,
    mut receiver: mpsc::Receiver<Step>,
) -> Result<(), Error> {
    let mut steps = Vec::new();
    while receiver.recv_many(&mut steps, MAX_BATCH).await > 0 {
        let (mut changes, mut idle) = (Vec::new(), None);
        for step in steps.drain(..) {
            match step {
                Step::Change(change) => changes.push(*change),
                Step::Idle(token) => idle = Some(token),
            }
        }
        for added in collections.complete(changes).await? {
            recent.push(added);
        }
        if let Some(token) = idle {
            recent.idle(token);
        }
    }
    Ok(())
}

/// The next result of a change stream.
enum Step {
    Change(Box<Change>),
    /// There are no more changes up to this token.
    Idle(StreamToken),
}

fn stream_token(token: &ResumeToken) -> Result<StreamToken, Error> {
    let text = String::from_utf8(token.clone()).ok();
    text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit())).ok_or_else(foreign_token)
}
