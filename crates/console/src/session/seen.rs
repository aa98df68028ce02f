//! The users at whom a session looked last: their ids alone, in the server's memory.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use locality_uuid::LocalityId;

/// The users that a session keeps, over all tenants.
const MAX_USERS: usize = 32;

/// The users at whom somebody looked, the latest last.
#[derive(Default)]
pub struct Seen(Mutex<VecDeque<(String, LocalityId)>>);

impl Seen {
    /// Keeps a user as the latest.
    pub fn add(&self, tenant: &str, user: LocalityId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|known| !(known.0 == tenant && known.1 == user));
        if kept.len() == MAX_USERS {
            kept.pop_front();
        }
        kept.push_back((tenant.to_owned(), user));
    }

    /// The latest users of a tenant, the latest first.
    pub fn of_tenant(&self, tenant: &str, most: usize) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = kept.iter().rev().filter(|(known, _)| known == tenant);
        own.take(most).map(|(_, user)| user.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_users_of_a_tenant_are_kept_once() {
        let user = |n: u32| -> LocalityId {
            format!("3bcb4db0-05a3-b080-001e-0190{n:08x}").parse().unwrap()
        };
        let seen = Seen::default();
        for n in [1, 2, 1] {
            seen.add("a", user(n));
        }
        assert_eq!(seen.of_tenant("a", 9), [1, 2].map(|n| user(n).to_string()));
        assert_eq!(seen.of_tenant("a", 1).len(), 1);
        for n in 0..2 * MAX_USERS as u32 {
            seen.add("b", user(n));
        }
        assert!(seen.of_tenant("a", 9).is_empty());
        assert_eq!(seen.of_tenant("b", 99).len(), MAX_USERS);
    }
}
