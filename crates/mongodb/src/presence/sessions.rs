//! The sessions in which this server runs transactions. This server's document lists the id of each
//! before its first use, so that other servers can end its transactions if this one dies. The
//! driver reuses sessions: new ids are rare.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mongodb::ClientSession;
use mongodb::bson::Bson;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::client::error::Fault;
use crate::presence::servers::{Presence, SessionId};

/// The time for which a transaction waits for its session to be listed. It then continues unlisted:
/// if this server dies in it, its documents stay locked for the lifetime of a transaction.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which the document is valid after a write: no other server ends this one's sessions
/// earlier.
const VALIDITY: Duration = Duration::from_secs(6);
/// The time for which an unused session stays listed: longer than the lifetime of a transaction.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);
/// The limit of listed sessions.
const MAX_SESSIONS: usize = 10_000;

/// The sessions that this server lists.
#[derive(Default)]
pub struct Sessions {
    /// Unset if the store has no collection for it: then no session is listed.
    presence: OnceLock<Presence>,
    state: StdMutex<State>,
    /// Serializes writes to the document.
    write_lock: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The last use of each listed session.
    listed: HashMap<SessionId, Instant>,
    wanted: Vec<SessionId>,
    /// The time when the latest successful write was sent.
    renewed: Option<Instant>,
    /// The time when the write in flight was sent.
    writing: Option<Instant>,
    /// Whether the latest write failed: then no caller waits for the next one.
    is_failing: bool,
}

impl Sessions {
    /// Starts to list sessions.
    pub fn begin(&self, presence: Presence) {
        let _ = self.presence.set(presence);
    }

    /// The presence of this server, once sessions are listed.
    pub fn presence(&self) -> Option<&Presence> {
        self.presence.get()
    }

    /// Lists a session before its use, or returns after [`LIST_TIMEOUT`].
    pub async fn list(self: &Arc<Self>, session: &ClientSession) {
        if self.presence.get().is_none() {
            return;
        }
        let Some(id) = session_id(session).filter(|id| !self.state().is_usable(*id)) else {
            return;
        };
        let sessions = self.clone();
        // The driver's commands must not be dropped half-way.
        let written = tokio::spawn(async move { sessions.write_wanted(id).await });
        let _ = timeout(LIST_TIMEOUT, written).await;
    }

    /// Renews this server's document.
    ///
    /// # Errors
    /// [`Fault`]: the document may have been renewed or not.
    pub async fn renew(&self) -> Result<(), Fault> {
        let _write = self.write_lock.lock().await;
        let unused = self.state().take_unused();
        self.write(Vec::new(), &unused).await
    }

    async fn write_wanted(&self, id: SessionId) {
        let _write = self.write_lock.lock().await;
        let wanted = {
            let mut state = self.state();
            if state.is_valid() && state.listed.contains_key(&id) {
                return;
            }
            std::mem::take(&mut state.wanted)
        };
        // The heartbeat logs failed writes.
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
            presence.create(&all).await
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
    /// Whether a session can be used at once: it is listed, or cannot be listed now. If not, it is
    /// queued for the next write.
    fn is_usable(&mut self, id: SessionId) -> bool {
        let now = Instant::now();
        if let (true, Some(used)) = (self.is_valid(), self.listed.get_mut(&id)) {
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

    /// Whether other servers still consider the document valid.
    fn is_valid(&self) -> bool {
        self.renewed.is_some_and(|renewed| renewed.elapsed() < VALIDITY)
    }

    /// Removes and returns sessions that were not used for long, and those above the limit.
    fn take_unused(&mut self) -> Vec<SessionId> {
        let mut by_use: Vec<_> = self.listed.iter().map(|(id, used)| (*used, *id)).collect();
        by_use.sort_unstable();
        let excess = by_use.len().saturating_sub(MAX_SESSIONS);
        let is_removed = |(n, (used, _)): &(usize, (Instant, SessionId))| {
            *n < excess || used.elapsed() > MAX_IDLE
        };
        let unused: Vec<_> =
            by_use.into_iter().enumerate().filter(is_removed).map(|(_, (_, id))| id).collect();
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
