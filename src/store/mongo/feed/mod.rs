//! The events of the store as they are committed, from change streams on the users, whose documents
//! have the tails of their histories. One stream of the server fills [`Recent`], which all watchers
//! share. A watcher with an older position reads a stream of its own until it has caught up.

mod changes;
mod recent;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::directory::error::Error;
use crate::directory::stores::{EventFeed, FeedPage, ResumeToken, foreign_token};
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::database::operations::Mongo;
use crate::store::mongo::feed::changes::{Changes, StreamToken, with_positions};
use crate::store::mongo::feed::recent::Recent;

/// The limit of events in a page.
const MAX_PAGE_EVENTS: usize = 512;
/// The limit of watchers that read streams of their own.
const MAX_CATCHING_UP: usize = 4;
/// The delay before the server's stream is reopened.
const REOPEN_DELAY: Duration = Duration::from_secs(1);

/// The events of a store on MongoDB.
pub struct Feed {
    collections: Arc<Collections>,
    recent: Arc<Recent>,
    catching_up: Semaphore,
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
            collections: self.collections.clone(),
            recent: Arc::new(Recent::default()),
            catching_up: Semaphore::new(MAX_CATCHING_UP),
            reader: OnceLock::new(),
        })
    }
}

#[async_trait]
impl EventFeed for Feed {
    async fn position(&self) -> Result<ResumeToken, Error> {
        if !self.collections.version_guard.versions()?.has_journal() {
            return Err(Error::WatchUnsupported);
        }
        Ok(Changes::open(&self.collections, None).await?.token()?.into_bytes())
    }

    async fn events(&self, after: &ResumeToken, patience: Duration) -> Result<FeedPage, Error> {
        let after = stream_token(after)?;
        let (collections, recent) = (&self.collections, &self.recent);
        self.reader.get_or_init(|| Reader(tokio::spawn(fill(collections.clone(), recent.clone()))));
        let deadline = Instant::now() + patience;
        let mut changed = recent.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(page) = recent.after(&after, MAX_PAGE_EVENTS) else {
                return self.catch_up(&after).await;
            };
            if !page.events.is_empty() {
                return Ok(page);
            }
            if timeout_at(deadline, changed.changed()).await.is_err() {
                return Ok(page);
            }
        }
    }
}

impl Feed {
    /// A page of the changes after a token, from a change stream of its own.
    async fn catch_up(&self, after: &StreamToken) -> Result<FeedPage, Error> {
        let permit = self.catching_up.acquire().await;
        let mut changes = Changes::open(&self.collections, Some(after)).await?;
        let (mut events, mut token) = (Vec::new(), after.clone());
        while events.len() < MAX_PAGE_EVENTS
            && let Some((found, next)) = changes.next().await?
        {
            events.extend(with_positions(found, &token, &next));
            token = next;
        }
        if events.len() < MAX_PAGE_EVENTS {
            token = changes.token()?;
        }
        drop(permit);
        Ok(FeedPage { events, resume_token: token.into_bytes() })
    }
}

/// Fills `recent` from a change stream, which it reopens after failures.
async fn fill(collections: Arc<Collections>, recent: Arc<Recent>) {
    loop {
        // Watchers get the error when they open their own streams.
        if let Err(error) = read_stream(&collections, &recent).await {
            tracing::debug!(%error, "the change stream has ended");
        }
        recent.clear();
        sleep(REOPEN_DELAY).await;
    }
}

async fn read_stream(collections: &Collections, recent: &Recent) -> Result<(), Error> {
    let mut changes = Changes::open(collections, None).await?;
    recent.begin(changes.token()?);
    loop {
        match changes.next().await? {
            Some((events, token)) => recent.push(events, token),
            None => recent.idle(changes.token()?),
        }
    }
}

fn stream_token(token: &ResumeToken) -> Result<StreamToken, Error> {
    let text = String::from_utf8(token.clone()).ok();
    text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit())).ok_or_else(foreign_token)
}
