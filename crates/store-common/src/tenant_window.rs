//! The recent items of all tenants, such as changes, for watchers of one tenant each: a watcher is
//! woken by the items of its own tenant alone, and finds them without reading those of others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use polynym_directory::Tenant;
use tokio::sync::watch;

/// The recent items of all tenants, in order.
pub struct TenantWindow<T> {
    /// The number of the first item.
    first: u64,
    items: VecDeque<(Tenant, T)>,
    /// The numbers of the items of each tenant.
    tenants: HashMap<Tenant, VecDeque<u64>>,
}

impl<T> Default for TenantWindow<T> {
    fn default() -> Self {
        Self { first: 0, items: VecDeque::new(), tenants: HashMap::new() }
    }
}

impl<T> TenantWindow<T> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, tenant: Tenant, item: T) {
        let number = self.first + self.items.len() as u64;
        self.tenants.entry(tenant.clone()).or_default().push_back(number);
        self.items.push_back((tenant, item));
    }

    /// Removes the first item.
    pub fn pop(&mut self) -> Option<T> {
        let (tenant, item) = self.items.pop_front()?;
        self.first += 1;
        let numbers = self.tenants.get_mut(&tenant)?;
        numbers.pop_front();
        if numbers.is_empty() {
            self.tenants.remove(&tenant);
        }
        Some(item)
    }

    /// The items of a tenant after those for which `is_seen` holds, which come first.
    pub fn after(&self, tenant: &Tenant, is_seen: impl Fn(&T) -> bool) -> impl Iterator<Item = &T> {
        let item = |number: &u64| &self.items[(number - self.first) as usize].1;
        let numbers = self.tenants.get(tenant);
        let unseen = numbers.map(|numbers| {
            let first = numbers.partition_point(|number| is_seen(item(number)));
            numbers.range(first..)
        });
        unseen.into_iter().flatten().map(item)
    }
}

/// Wakes the watchers of a tenant.
#[derive(Default)]
pub struct TenantWakeups(Mutex<Senders>);

#[derive(Default)]
struct Senders {
    tenants: HashMap<Tenant, watch::Sender<()>>,
    /// The number of tenants at which those without watchers are removed.
    limit: usize,
}

impl TenantWakeups {
    /// A receiver that is notified when the tenant's watchers are woken.
    pub fn subscribe(&self, tenant: &Tenant) -> watch::Receiver<()> {
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.tenants.get(tenant) {
            return sender.subscribe();
        }
        if senders.tenants.len() >= senders.limit {
            senders.tenants.retain(|_, sender| sender.receiver_count() > 0);
            senders.limit = 2 * senders.tenants.len() + 16;
        }
        senders.tenants.entry(tenant.clone()).or_default().subscribe()
    }

    /// Wakes the watchers of a tenant.
    pub fn wake(&self, tenant: &Tenant) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.tenants.get(tenant) {
            sender.send_replace(());
        }
    }

    /// Wakes all watchers.
    pub fn wake_all(&self) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.tenants.values().for_each(|sender| sender.send_replace(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::parse(name).unwrap()
    }

    #[test]
    fn each_tenant_has_its_own_items() {
        let mut window = TenantWindow::default();
        for (name, item) in [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)] {
            window.push(tenant(name), item);
        }
        let after = |window: &TenantWindow<i32>, name, last| {
            window.after(&tenant(name), |item| *item <= last).copied().collect::<Vec<_>>()
        };
        assert_eq!(after(&window, "a", 1), [3, 5]);
        assert_eq!(after(&window, "b", 0), [2, 4]);
        assert_eq!(after(&window, "c", 0), []);
        assert_eq!((window.pop(), window.pop(), window.len()), (Some(1), Some(2), 3));
        assert_eq!(after(&window, "b", 0), [4]);
        while window.pop().is_some() {}
        assert!(window.tenants.is_empty() && window.is_empty());
        window.push(tenant("b"), 6);
        assert_eq!(after(&window, "b", 0), [6]);
    }

    #[test]
    fn watchers_are_woken_by_their_own_tenant() {
        let wakeups = TenantWakeups::default();
        let [a, b] = ["a", "b"].map(|name| wakeups.subscribe(&tenant(name)));
        wakeups.wake(&tenant("a"));
        assert!(a.has_changed().unwrap() && !b.has_changed().unwrap());
        wakeups.wake_all();
        assert!(b.has_changed().unwrap());
    }

    #[test]
    fn tenants_without_watchers_are_forgotten() {
        let wakeups = TenantWakeups::default();
        let kept = wakeups.subscribe(&tenant("kept"));
        (0..1_000).for_each(|n| drop(wakeups.subscribe(&tenant(&format!("t{n}")))));
        assert!(wakeups.0.lock().unwrap().tenants.len() < 40);
        wakeups.wake(&tenant("kept"));
        assert!(kept.has_changed().unwrap());
    }
}
