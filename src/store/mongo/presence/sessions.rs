//! The sessions in which this server runs transactions. The id of each is in this server's document
//! before the session is used, so that other servers can end its transactions when this one is
//! dead. The driver keeps sessions and uses them again: new ids are rare.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mongodb::ClientSession;
use mongodb::bson::Bson;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::store::mongo::client::error::Fault;
use crate::store::mongo::presence::servers::{Presence, SessionId};

/// The longest that a transaction waits for its session to be listed. It goes on without: if this
/// server dies in it, its documents stay locked for the lifetime of a transaction.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which the document is valid after it was written: no other server ends this one's
/// sessions before.
const STANDS: Duration = Duration::from_secs(6);
/// The time for which an unused session stays listed: longer than a transaction lives.
const UNUSED: Duration = Duration::from_secs(10 * 60);
/// The most sessions that are listed.
const MOST: usize = 10_000;

/// The sessions that this server has listed.
#[derive(Default)]
pub struct Sessions {
    /// Unset while the store has no collection for it: then nothing is listed.
    presence: OnceLock<Presence>,
    state: StdMutex<State>,
    /// One write to the document at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// When each session that is listed was last used.
    listed: HashMap<SessionId, Instant>,
    wanted: Vec<SessionId>,
    /// When the last write that succeeded was sent.
    renewed: Option<Instant>,
    /// When the write was sent that is under way.
    writing: Option<Instant>,
    /// Whether the last write failed: then no caller waits for the next one.
    is_failing: bool,
}

impl Sessions {
    /// Begins to list sessions.
    pub fn begin(&self, presence: Presence) {
        let _ = self.presence.set(presence);
    }

    /// The presence of this server, once sessions are listed.
    pub fn presence(&self) -> Option<&Presence> {
        self.presence.get()
    }

    /// Lists a session before it is used. Where that cannot be done in good time, the session is
    /// used all the same.
    pub async fn list(self: &Arc<Self>, session: &ClientSession) {
        if self.presence.get().is_none() {
            return;
        }
        let Some(id) = session_id(session).filter(|id| !self.state().use_now(*id)) else { return };
        let sessions = self.clone();
        // A write that was handed to the driver runs to its end.
        let written = tokio::spawn(async move { sessions.write_wanted(id).await });
        let _ = timeout(LIST_TIMEOUT, written).await;
    }

    /// Renews this server's document.
    ///
    /// # Errors
    /// [`Fault`]: the document may have been renewed or not.
    pub async fn renew(&self) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        let unused = self.state().take_unused();
        self.write(Vec::new(), &unused).await
    }

    async fn write_wanted(&self, id: SessionId) {
        let _turn = self.turn.lock().await;
        let wanted = {
            let mut state = self.state();
            if state.stands() && state.listed.contains_key(&id) {
                return;
            }
            std::mem::take(&mut state.wanted)
        };
        // The heartbeat logs what goes wrong with the document.
        let _ = self.write(wanted, &[]).await;
    }

    async fn write(&self, added: Vec<SessionId>, removed: &[SessionId]) -> Result<(), Fault> {
        let Some(presence) = self.presence.get() else { return Ok(()) };
        let sent = Instant::now();
        self.state().writing = Some(sent);
        let written = async {
            if presence.renew(&added, removed).await? {
                return Ok(());
            }
            let mut all: Vec<_> = self.state().listed.keys().copied().collect();
            all.extend(&added);
            presence.enter(&all).await
        };
        let written = written.await;
        let mut state = self.state();
        state.writing = None;
        state.is_failing = written.is_err();
        if written.is_ok() {
            state.renewed = Some(sent);
            state.listed.extend(added.into_iter().map(|id| (id, sent)));
        }

        written
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a session can be used at once, as one that is listed or that cannot be listed now.
    /// Else it is wanted.
    fn use_now(&mut self, id: SessionId) -> bool {
        let now = Instant::now();
        if let (true, Some(used)) = (self.stands(), self.listed.get_mut(&id)) {
            *used = now;
            return true;
        }

        if self.is_failing
            || self.writing.is_some_and(|since| now.duration_since(since) > LIST_TIMEOUT)
        {
            return true;
        }
        self.wanted.push(id);

        false
    }

    /// Whether the document is sure to be there.
    fn stands(&self) -> bool {
        self.renewed.is_some_and(|renewed| renewed.elapsed() < STANDS)
    }

    /// Takes out the sessions that have not been used for long, and those that are too many.
    fn take_unused(&mut self) -> Vec<SessionId> {
        let mut by_use: Vec<_> = self.listed.iter().map(|(id, used)| (*used, *id)).collect();
        by_use.sort_unstable();
        let excess = by_use.len().saturating_sub(MOST);
        let is_over =
            |(n, (used, _)): &(usize, (Instant, SessionId))| *n < excess || used.elapsed() > UNUSED;
        let unused: Vec<_> =
            by_use.into_iter().enumerate().filter(is_over).map(|(_, (_, id))| id).collect();
        for id in &unused {
            self.listed.remove(id);
        }
        unused
    }
}

fn session_id(session: &ClientSession) -> Option<SessionId> {
    match session.id().get("id") {
        Some(Bson::Binary(id)) => id.bytes.as_slice().try_into().ok(),
        _ => None,
    }
}
