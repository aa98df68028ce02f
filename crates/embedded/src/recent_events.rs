//! The numbers of recent events by tenant. Watchers of a tenant are woken by its events alone, find
//! them without reading those of others, and share what they read.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use polynym_directory::{FeedPage, Tenant};
use polynym_store_common::tenant_window::{TenantWakeups, TenantWindow};

/// The most events in a page.
pub const PAGE_EVENTS: usize = 512;
/// The most numbers of events, of all tenants.
const MAX_NUMBERS: usize = 16_384;
/// The most pages that watchers share. Each belongs to one tenant.
const MAX_PAGES: usize = 16;

/// The effect of a commit on events.
#[derive(Default)]
pub struct EventChanges {
    /// The numbers of the events that it has added, in order, with their tenants.
    pub added: Vec<(Tenant, u64)>,
    /// Whether it may have rewritten or removed others.
    pub rewrites: bool,
}

/// The recent events of all tenants.
pub struct RecentEvents {
    window: Mutex<Window>,
    wakeups: TenantWakeups,
}

/// All events from `begin` to `end`.
struct Window {
    begin: u64,
    end: u64,
    numbers: TenantWindow<u64>,
    /// The pages that were read last: tenant, number of the first event, and content.
    pages: VecDeque<(Tenant, u64, FeedPage)>,
    /// The number of commits that have rewritten events.
    rewrites: u64,
}

/// The knowledge of the window about the events of a tenant after a position.
pub enum NextEvents {
    /// Nothing: the window begins later.
    Unknown,
    /// There are none before this number.
    None(u64),
    /// There are these, which another watcher has read.
    Read(FeedPage),
    /// There are these.
    Unread(UnreadEvents),
}

/// The numbers of events that no watcher has read.
pub struct UnreadEvents {
    /// The numbers: at least one.
    pub numbers: Vec<u64>,
    rewrites: u64,
}

impl RecentEvents {
    /// Begins before the event with this number, which is the next one.
    pub fn new(next: u64) -> Self {
        Self { window: Mutex::new(Window::new(next)), wakeups: TenantWakeups::default() }
    }

    /// Begins again after a commit whose events are not known.
    pub fn restart(&self, next: u64) {
        let mut window = self.lock();
        *window = Window { rewrites: window.rewrites + 1, ..Window::new(next) };
        drop(window);
        self.wakeups.wake_all();
    }

    /// Adds the events of a commit that can be read already.
    pub fn commit(&self, changes: EventChanges) {
        let mut window = self.lock();
        if changes.rewrites {
            window.rewrites += 1;
            window.pages.clear();
        }
        for (tenant, number) in &changes.added {
            window.push(tenant.clone(), *number);
        }
        drop(window);
        let tenants: BTreeSet<_> = changes.added.iter().map(|(tenant, _)| tenant).collect();
        tenants.into_iter().for_each(|tenant| self.wakeups.wake(tenant));
    }

    /// A receiver that is notified of each commit with events of the tenant.
    pub fn subscribe(&self, tenant: &Tenant) -> watch::Receiver<()> {
        self.wakeups.subscribe(tenant)
    }

    /// The events of a tenant from a number on.
    pub fn next(&self, tenant: &Tenant, from: u64) -> NextEvents {
        let window = self.lock();
        if from < window.begin {
            return NextEvents::Unknown;
        }
        let unseen = window.numbers.after(tenant, |number| *number < from);
        let numbers: Vec<u64> = unseen.take(PAGE_EVENTS).copied().collect();
        let Some(first) = numbers.first() else { return NextEvents::None(window.end.max(from)) };
        let mut pages = window.pages.iter();
        match pages.find(|(of, number, _)| of == tenant && number == first) {
            Some((_, _, page)) => NextEvents::Read(page.clone()),
            None => {
                let rewrites = window.rewrites;
                NextEvents::Unread(UnreadEvents { numbers, rewrites })
            }
        }
    }

    /// Shares a page, unless events were rewritten since its numbers were returned.
    pub fn share(&self, tenant: &Tenant, unread: &UnreadEvents, page: &FeedPage) {
        let Some(first) = unread.numbers.first() else { return };
        let mut window = self.lock();
        if window.rewrites == unread.rewrites {
            if window.pages.len() == MAX_PAGES {
                window.pages.pop_front();
            }
            window.pages.push_back((tenant.clone(), *first, page.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn new(next: u64) -> Self {
        Self {
            begin: next,
            end: next,
            numbers: TenantWindow::default(),
            pages: VecDeque::new(),
            rewrites: 0,
        }
    }

    fn push(&mut self, tenant: Tenant, number: u64) {
        self.numbers.push(tenant, number);
        self.end = number + 1;
        if self.numbers.len() > MAX_NUMBERS
            && let Some(oldest) = self.numbers.pop()
        {
            self.begin = oldest + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(numbers: std::ops::RangeInclusive<u64>) -> EventChanges {
        let added = numbers.map(|number| (Tenant::DEFAULT, number)).collect();
        EventChanges { added, rewrites: false }
    }

    fn unread(recent: &RecentEvents, from: u64) -> UnreadEvents {
        match recent.next(&Tenant::DEFAULT, from) {
            NextEvents::Unread(unread) => unread,
            _ => panic!("expected events that nobody has read"),
        }
    }

    #[test]
    fn commits_wake_the_watchers_of_their_tenant() {
        let recent = RecentEvents::new(5);
        let other = Tenant::parse("other").unwrap();
        let [own, others] = [&Tenant::DEFAULT, &other].map(|tenant| recent.subscribe(tenant));
        recent.commit(added(5..=7));
        assert!(own.has_changed().unwrap() && !others.has_changed().unwrap());
        assert!(matches!(recent.next(&other, 5), NextEvents::None(8)));
        assert!(matches!(recent.next(&Tenant::DEFAULT, 4), NextEvents::Unknown));
        assert_eq!(unread(&recent, 6).numbers, [6, 7]);
        recent.restart(20);
        assert!(others.has_changed().unwrap());
        assert!(matches!(recent.next(&other, 8), NextEvents::Unknown));
    }

    #[test]
    fn the_window_is_bounded() {
        let recent = RecentEvents::new(1);
        recent.commit(added(1..=MAX_NUMBERS as u64 + 3));
        assert!(matches!(recent.next(&Tenant::DEFAULT, 3), NextEvents::Unknown));
        assert_eq!(unread(&recent, 4).numbers.len(), PAGE_EVENTS);
    }

    #[test]
    fn pages_are_shared_until_events_are_rewritten() {
        let recent = RecentEvents::new(1);
        recent.commit(added(1..=2));
        let page = FeedPage { events: Vec::new(), resume_token: vec![1] };
        let rewritten = || EventChanges { rewrites: true, ..EventChanges::default() };

        let old = unread(&recent, 1);
        recent.commit(rewritten());
        recent.share(&Tenant::DEFAULT, &old, &page);
        recent.share(&Tenant::DEFAULT, &unread(&recent, 1), &page);
        assert!(matches!(recent.next(&Tenant::DEFAULT, 1), NextEvents::Read(read) if
            read.resume_token == [1]));
        unread(&recent, 2);
        recent.commit(rewritten());
        let again = unread(&recent, 1);
        (1..=40).for_each(|_| recent.share(&Tenant::DEFAULT, &again, &page));
        assert!(recent.lock().pages.len() <= MAX_PAGES);
    }
}
