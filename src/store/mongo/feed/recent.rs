//! The recent changes, for all watchers of the server.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::watch;

use crate::directory::model::event::Event;
use crate::directory::stores::FeedPage;
use crate::store::mongo::feed::changes::{StreamToken, with_positions};

/// The limit of events.
const MAX_EVENTS: usize = 20_000;

/// The recent changes, for all watchers of the server.
#[derive(Default)]
pub struct Recent {
    window: Mutex<Window>,
    changed: watch::Sender<()>,
}

/// All changes between two tokens.
#[derive(Default)]
struct Window {
    /// `None` while no stream is open.
    begin: Option<StreamToken>,
    end: StreamToken,
    changes: VecDeque<(Vec<Event>, StreamToken)>,
    events: usize,
}

impl Recent {
    /// A receiver that is notified of each change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Begins at a token, without changes.
    pub fn begin(&self, token: StreamToken) {
        self.change(|window| {
            *window = Window { begin: Some(token.clone()), end: token, ..Window::default() };
        });
    }

    /// Removes all changes.
    pub fn clear(&self) {
        self.change(|window| *window = Window::default());
    }

    /// Adds a change, and drops the oldest ones above the limit.
    pub fn push(&self, events: Vec<Event>, token: StreamToken) {
        self.change(|window| {
            window.events += events.len();
            window.end.clone_from(&token);
            window.changes.push_back((events, token));
            while window.events > MAX_EVENTS
                && let Some((events, token)) = window.changes.pop_front()
            {
                window.events -= events.len();
                window.begin = Some(token);
            }
        });
    }

    /// Records that there are no changes up to a token.
    pub fn idle(&self, token: StreamToken) {
        self.lock().end = token;
    }

    /// The events after a token: whole changes, until there are `limit` events. `None` if the
    /// window begins after the token.
    pub fn after(&self, after: &StreamToken, limit: usize) -> Option<FeedPage> {
        let window = self.lock();
        window.begin.as_ref().filter(|begin| *begin <= after)?;
        let first = window.changes.partition_point(|(_, token)| token <= after);
        let (mut events, mut end) = (Vec::new(), after);
        for (found, token) in window.changes.range(first..) {
            events.extend(with_positions(found.clone(), end, token));
            end = token;
            if events.len() >= limit {
                break;
            }
        }
        if events.len() < limit {
            end = end.max(&window.end);
        }
        Some(FeedPage { events, resume_token: end.clone().into_bytes() })
    }

    fn change(&self, change: impl FnOnce(&mut Window)) {
        change(&mut self.lock());
        self.changed.send_replace(());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
