//! The recent changes, for all watchers of the server.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::feed::changes::{StreamToken, with_positions};
use crate::feed::completion::AddedEvents;
use polynym_directory::{FeedPage, PageLimit, Tenant};
use polynym_store_common::tenant_window::{TenantWakeups, TenantWindow};

/// The limit of the memory of their events, about.
const MAX_MEMORY: usize = 32 << 20;

/// The recent changes, for all watchers of the server.
#[derive(Default)]
pub struct Recent {
    window: Mutex<Window>,
    wakeups: TenantWakeups,
}

/// All changes between two tokens.
#[derive(Default)]
struct Window {
    /// `None` while no stream is open.
    begin: Option<StreamToken>,
    end: StreamToken,
    changes: TenantWindow<AddedEvents>,
    memory: usize,
}

impl Recent {
    /// A receiver that is notified of each change of a tenant.
    pub fn subscribe(&self, tenant: &Tenant) -> watch::Receiver<()> {
        self.wakeups.subscribe(tenant)
    }

    /// Begins at a token, without changes.
    pub fn begin(&self, token: StreamToken) {
        let window = Window { begin: Some(token.clone()), end: token, ..Window::default() };
        self.replace(window);
    }

    /// The token up to which it has all changes; `None` while no stream is open.
    pub fn end(&self) -> Option<StreamToken> {
        let window = self.lock();
        window.begin.as_ref().map(|_| window.end.clone())
    }

    /// Removes all changes.
    pub fn clear(&self) {
        self.replace(Window::default());
    }

    /// Adds a change, and drops the oldest ones above the limits.
    pub fn push(&self, change: AddedEvents) {
        let tenant = change.events.first().map(|event| event.tenant.clone());
        self.lock().push(tenant.clone(), change);
        if let Some(tenant) = tenant {
            self.wakeups.wake(&tenant);
        }
    }

    /// Records that there are no changes up to a token.
    pub fn idle(&self, token: StreamToken) {
        let end = &mut self.lock().end;
        *end = token.max(std::mem::take(end));
    }

    /// The events of a tenant after a token: whole changes, as many as fit `limit`. `None` if the
    /// window begins after the token.
    pub fn after(
        &self,
        tenant: &Tenant,
        after: &StreamToken,
        mut limit: PageLimit,
    ) -> Option<FeedPage> {
        let window = self.lock();
        window.begin.as_ref().filter(|begin| *begin <= after)?;
        let (mut events, mut end) = (Vec::new(), after);
        let mut later = window.changes.after(tenant, |change| change.token <= *after).peekable();
        while let Some(change) = later.next_if(|change| limit.take(change.bytes)) {
            events.extend(with_positions(change.events.clone(), end, &change.token));
            end = &change.token;
        }
        if later.peek().is_none() {
            end = end.max(&window.end);
        }
        Some(FeedPage { events, resume_token: end.clone().into_bytes() })
    }

    fn replace(&self, window: Window) {
        *self.lock() = window;
        self.wakeups.wake_all();
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    /// Adds a change. One without a tenant has no events.
    fn push(&mut self, tenant: Option<Tenant>, change: AddedEvents) {
        self.end.clone_from(&change.token);
        let Some(tenant) = tenant else { return };
        self.memory += change.memory;
        self.changes.push(tenant, change);
        while self.memory > MAX_MEMORY
            && let Some(oldest) = self.changes.pop()
        {
            self.memory -= oldest.memory;
            self.begin = Some(oldest.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_directory::{ChangeSet, Event, EventKind, Origin, Tenant, Timestamp};

    fn change(number: usize, bytes: usize) -> AddedEvents {
        let event = Event {
            tenant: Tenant::DEFAULT,
            user: [1; 16].into(),
            sequence: number as u64,
            time: Timestamp::default(),
            origin: Origin::server("test"),
            kind: EventKind::UserUpdated,
            changes: ChangeSet::default(),
        };
        let events = vec![event.into()];
        AddedEvents { events, bytes, memory: bytes, token: format!("{number:08X}") }
    }

    fn numbers(page: &FeedPage) -> Vec<u64> {
        page.events.iter().map(|(event, _)| event.sequence).collect()
    }

    #[test]
    fn pages_end_at_their_limits() {
        let recent = Recent::default();
        assert_eq!(recent.end(), None);
        recent.begin("0".to_owned());
        assert_eq!(recent.end().unwrap(), "0");
        (1..=5).for_each(|number| recent.push(change(number, 100)));
        assert_eq!(recent.end().unwrap(), "00000005");
        let page =
            |after: &str, limit| recent.after(&Tenant::DEFAULT, &after.to_owned(), limit).unwrap();
        let first = page("0", PageLimit::new(10, 250));
        assert_eq!(numbers(&first), [1, 2]);
        assert_eq!(first.resume_token, b"00000002");
        assert_eq!(numbers(&page("00000002", PageLimit::new(2, 1_000))), [3, 4]);
        // One change always fits.
        assert_eq!(numbers(&page("00000004", PageLimit::new(10, 1))), [5]);
        recent.idle("0000000A".to_owned());
        let end = page("00000004", PageLimit::new(10, 1_000));
        assert_eq!((numbers(&end), end.resume_token), (vec![5], b"0000000A".to_vec()));
    }

    #[test]
    fn the_window_is_bounded_by_its_memory() {
        let recent = Recent::default();
        recent.begin("0".to_owned());
        (1..=10).for_each(|number| recent.push(change(number, MAX_MEMORY / 4)));
        let after =
            |token: &str| recent.after(&Tenant::DEFAULT, &token.to_owned(), PageLimit::unlimited());
        assert!(after("00000005").is_none());
        let page = after("00000006").unwrap();
        assert_eq!(numbers(&page), [7, 8, 9, 10]);
    }

    #[test]
    fn changes_of_other_tenants_move_watchers_on_without_waking_them() {
        let recent = Recent::default();
        recent.begin("0".to_owned());
        let other = Tenant::parse("other").unwrap();
        let [own, others] = [&Tenant::DEFAULT, &other].map(|tenant| recent.subscribe(tenant));
        (1..=3).for_each(|number| recent.push(change(number, 100)));
        assert!(own.has_changed().unwrap() && !others.has_changed().unwrap());
        let page = recent.after(&other, &"0".to_owned(), PageLimit::unlimited()).unwrap();
        assert_eq!((numbers(&page), page.resume_token), (vec![], b"00000003".to_vec()));
    }
}
