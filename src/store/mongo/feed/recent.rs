//! The changes of the last while, for all watchers of the server.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::watch;

use super::changes::Token;
use super::places;
use crate::directory::model::event::Event;
use crate::directory::stores::FeedPage;

/// The most events that are kept.
const KEPT: usize = 20_000;

#[derive(Default)]
pub struct Recent {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
}

/// All changes between two tokens.
#[derive(Default)]
struct Kept {
    /// None while no stream is open.
    begin: Option<Token>,
    end: Token,
    changes: VecDeque<(Vec<Event>, Token)>,
    events: usize,
}

impl Recent {
    /// A receiver that is notified of each change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Begins at a token, with nothing.
    pub fn begin(&self, token: Token) {
        self.change(|kept| {
            *kept = Kept { begin: Some(token.clone()), end: token, ..Kept::default() };
        });
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.change(|kept| *kept = Kept::default());
    }

    /// Adds a change, and drops the oldest where there are too many.
    pub fn push(&self, events: Vec<Event>, token: Token) {
        self.change(|kept| {
            kept.events += events.len();
            kept.end.clone_from(&token);
            kept.changes.push_back((events, token));
            while kept.events > KEPT
                && let Some((events, token)) = kept.changes.pop_front()
            {
                kept.events -= events.len();
                kept.begin = Some(token);
            }
        });
    }

    /// Records that there are no changes up to a token.
    pub fn idle(&self, token: Token) {
        self.lock().end = token;
    }

    /// The events after a token: whole changes, until there are `most` events. None if the kept
    /// changes begin after the token.
    pub fn after(&self, after: &Token, most: usize) -> Option<FeedPage> {
        let kept = self.lock();
        kept.begin.as_ref().filter(|begin| *begin <= after)?;
        let first = kept.changes.partition_point(|(_, token)| token <= after);
        let (mut events, mut place) = (Vec::new(), after);
        for (found, token) in kept.changes.range(first..) {
            events.extend(places(found.clone(), place, token));
            place = token;
            if events.len() >= most {
                break;
            }
        }
        if events.len() < most {
            place = place.max(&kept.end);
        }
        Some(FeedPage { events, resume_token: place.clone().into_bytes() })
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.lock());
        self.changed.send_replace(());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
