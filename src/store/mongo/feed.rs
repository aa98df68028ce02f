//! The events of the store as they are committed, from change streams on the users, whose documents
//! have the ends of their histories. One stream of the server fills [`Recent`], which all watchers
//! share. A watcher whose place is older than that reads its own stream until it has caught up.

mod changes;
mod recent;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::Mongo;
use super::collections::Collections;
use crate::directory::error::Error;
use crate::directory::stores::{EventFeed, FeedPage, ResumeToken, foreign_token};
use changes::{Changes, Token};
use recent::Recent;

/// The most events of one answer.
const MOST: usize = 512;
/// The number of watchers that may read their own streams at once.
const CATCHING_UP: usize = 4;
/// The pause before the server's stream is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// The events of a store on MongoDB.
pub struct Feed {
    collections: Arc<Collections>,
    recent: Arc<Recent>,
    catching_up: Semaphore,
    /// Fills `recent`; begins with the first watcher.
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
            catching_up: Semaphore::new(CATCHING_UP),
            reader: OnceLock::new(),
        })
    }
}

#[async_trait]
impl EventFeed for Feed {
    async fn position(&self) -> Result<ResumeToken, Error> {
        if !self.collections.fence.versions()?.has_journal() {
            return Err(Error::WatchUnsupported);
        }
        Ok(Changes::open(&self.collections, None).await?.token()?.into_bytes())
    }

    async fn events(&self, after: &ResumeToken, patience: Duration) -> Result<FeedPage, Error> {
        let after = place_token(after)?;
        let (collections, recent) = (&self.collections, &self.recent);
        self.reader.get_or_init(|| Reader(tokio::spawn(fill(collections.clone(), recent.clone()))));
        let deadline = Instant::now() + patience;
        let mut changed = recent.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(page) = recent.after(&after, MOST) else { return self.catch_up(&after).await };
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
    /// A page of the changes after a token, from a change stream that is opened for it.
    async fn catch_up(&self, after: &Token) -> Result<FeedPage, Error> {
        let turn = self.catching_up.acquire().await;
        let mut changes = Changes::open(&self.collections, Some(after)).await?;
        let (mut events, mut token) = (Vec::new(), after.clone());
        while events.len() < MOST
            && let Some((found, next)) = changes.next().await?
        {
            events.extend(places(found, &token, &next));
            token = next;
        }
        if events.len() < MOST {
            token = changes.token()?;
        }
        drop(turn);
        Ok(FeedPage { events, resume_token: token.into_bytes() })
    }
}

/// Fills `recent` from a change stream, and opens another one when it fails.
async fn fill(collections: Arc<Collections>, recent: Arc<Recent>) {
    loop {
        // Watchers get the error when they open their own streams.
        if let Err(error) = follow(&collections, &recent).await {
            tracing::debug!(%error, "the change stream has ended");
        }
        recent.clear();
        sleep(PAUSE).await;
    }
}

async fn follow(collections: &Collections, recent: &Recent) -> Result<(), Error> {
    let mut changes = Changes::open(collections, None).await?;
    recent.begin(changes.token()?);
    loop {
        match changes.next().await? {
            Some((events, token)) => recent.push(events, token),
            None => recent.idle(changes.token()?),
        }
    }
}

/// Each event of a change with the place from which the next one follows: that of the change after
/// its last event, and that before it after the others.
fn places<E>(events: Vec<E>, before: &str, after: &str) -> Vec<(E, ResumeToken)> {
    let count = events.len();
    let place = |n| if n + 1 == count { after } else { before }.as_bytes().to_vec();
    events.into_iter().enumerate().map(|(n, event)| (event, place(n))).collect()
}

fn place_token(place: &ResumeToken) -> Result<Token, Error> {
    let token = String::from_utf8(place.clone()).ok();
    let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    token.ok_or_else(foreign_token)
}
