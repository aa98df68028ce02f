//! The pairs that searches for duplicates found. A session keeps those of its last search, and
//! runs one search at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::oneshot;

use super::sessions::Session;
use crate::short_id::{ShortId, new_id};
use crate::views::duplicates::Found;

/// The maximum number of results that the server keeps, and of those of one caller. Each has at
/// most a megabyte.
const MAX_RESULTS: usize = 16;
const MAX_CALLER_RESULTS: usize = 4;

/// What a search looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The tenant.
    pub tenant: String,
    /// The minimum score of a pair.
    pub min_score: i32,
}

/// The last search of a session.
#[derive(Default)]
pub struct LastSearch(Mutex<State>);

#[derive(Default)]
struct State {
    id: ShortId,
    wanted: Option<Wanted>,
    found: Option<Arc<Found>>,
    /// Ends the running search when it is dropped.
    running: Option<oneshot::Sender<()>>,
}

/// A search that begins.
pub struct Begun {
    /// Resolves when another search of the session begins.
    pub ended: oneshot::Receiver<()>,
    /// Whether this one ended another.
    pub has_ended_another: bool,
}

impl LastSearch {
    /// Notes what to search for, and returns its id. Forgets the search before.
    pub fn want(&self, wanted: Wanted) -> ShortId {
        let mut state = self.lock();
        state.id = new_id();
        state.wanted = Some(wanted);
        state.found = None;
        state.id
    }

    /// The last search with its id and what it found, if it has ended.
    pub fn last(&self) -> Option<(ShortId, Wanted, Option<Arc<Found>>)> {
        let state = self.lock();
        Some((state.id, state.wanted.clone()?, state.found.clone()))
    }

    /// Begins a search. Ends another one.
    pub fn begin(&self) -> Begun {
        let (sender, ended) = oneshot::channel();
        let former = self.lock().running.replace(sender);
        Begun { ended, has_ended_another: former.is_some_and(|sender| !sender.is_closed()) }
    }

    fn set_found(&self, id: ShortId, found: Option<Arc<Found>>) {
        let mut state = self.lock();
        if state.id == id {
            state.found = found;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions that keep results, the oldest first.
#[derive(Default)]
pub struct Finds(Mutex<VecDeque<Weak<Session>>>);

impl Finds {
    /// Keeps what a search of a session found. The oldest results go, of the same caller if that
    /// has its share.
    pub fn keep(&self, session: &Arc<Session>, id: ShortId, found: Found) {
        session.search.set_found(id, Some(Arc::new(found)));
        let mut keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = Arc::downgrade(session);
        keepers.retain(|keeper| keeper.strong_count() > 0 && !keeper.ptr_eq(&own));
        let of_caller = |keeper: &Weak<Session>| {
            keeper.upgrade().is_some_and(|keeper| keeper.caller_name() == session.caller_name())
        };
        let oldest =
            if keepers.iter().filter(|keeper| of_caller(keeper)).count() >= MAX_CALLER_RESULTS {
                keepers.iter().position(of_caller)
            } else {
                (keepers.len() >= MAX_RESULTS).then_some(0)
            };
        if let Some(keeper) = oldest.and_then(|n| keepers.remove(n)).and_then(|it| it.upgrade()) {
            keeper.search.lock().found = None;
        }
        keepers.push_back(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Sessions;
    use polynym_access::Caller;
    use polynym_transport::in_memory;

    fn wanted() -> Wanted {
        Wanted { tenant: "acme".to_owned(), min_score: 50 }
    }

    #[tokio::test]
    async fn a_search_ends_the_one_before() {
        let search = LastSearch::default();
        let first = search.begin();
        assert!(!first.has_ended_another);
        let second = search.begin();
        assert!(second.has_ended_another);
        first.ended.await.unwrap_err();
        drop(second);
        assert!(!search.begin().has_ended_another);
    }

    #[test]
    fn a_late_result_of_a_former_search_is_dropped() {
        let search = LastSearch::default();
        let first = search.want(wanted());
        let second = search.want(wanted());
        search.set_found(first, Some(Arc::default()));
        assert!(search.last().unwrap().2.is_none());
        search.set_found(second, Some(Arc::default()));
        assert!(search.last().unwrap().2.is_some());
    }

    #[tokio::test]
    async fn a_caller_has_its_share_of_results() {
        let sessions = Sessions::new(in_memory().0);
        let open = |name: &str| {
            let caller = Caller { name: name.to_owned(), ..Caller::anonymous() };
            let session = sessions.open(&caller, None, None).unwrap();
            let id = session.search.want(wanted());
            sessions.finds.keep(&session, id, Found::default());
            session
        };
        let has_found =
            |session: &Arc<Session>| session.search.last().is_some_and(|(.., it)| it.is_some());
        let modest = open("modest");
        let greedy: Vec<_> = (0..2 * MAX_RESULTS).map(|_| open("greedy")).collect();
        assert!(has_found(&modest));
        assert_eq!(greedy.iter().filter(|it| has_found(it)).count(), MAX_CALLER_RESULTS);
        let others: Vec<_> = (0..MAX_RESULTS).map(|n| open(&format!("other {n}"))).collect();
        assert!(others.iter().all(has_found) && !has_found(&modest));
    }
}
