//! The searches and selections of a session, under short ids: personal data is in no URL.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::short_id::{ShortId, new_id};

/// The maximum number of searches that a session keeps, and their bytes.
const MAX_QUERIES: usize = 64;
const MAX_BYTES: usize = 64 << 10;

/// The latest searches, the oldest first.
#[derive(Default)]
pub struct Queries(Mutex<VecDeque<(ShortId, String)>>);

impl Queries {
    /// Keeps a search, and returns its id. An equal one keeps its id.
    pub fn add(&self, text: &str) -> ShortId {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((id, _)) = kept.iter().find(|(_, known)| known == text) {
            return *id;
        }
        let id = new_id();
        kept.push_back((id, text.to_owned()));
        while kept.len() > MAX_QUERIES
            || kept.iter().map(|(_, text)| text.len()).sum::<usize>() > MAX_BYTES
        {
            kept.pop_front();
        }
        id
    }

    /// The search with this id, if it is still kept.
    pub fn get(&self, id: ShortId) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| *known == id).map(|(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_searches_are_kept() {
        let queries = Queries::default();
        let first = queries.add("joe");
        assert_eq!(queries.add("joe"), first);
        let ids: Vec<_> = (0..MAX_QUERIES).map(|n| queries.add(&n.to_string())).collect();
        assert_eq!(queries.get(first), None);
        assert_eq!(queries.get(ids[0]).as_deref(), Some("0"));
        queries.add(&"x".repeat(MAX_BYTES + 1));
        assert_eq!(queries.get(ids[0]), None);
    }
}
