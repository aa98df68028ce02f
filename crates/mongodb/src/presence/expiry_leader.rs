//! The server that looks for expired users, which reads from all shards: one leads at a time, and
//! another a minute later. The leader follows from the documents that all servers read with each
//! beat, so that nothing more is written or waited for. Two servers may disagree for some seconds:
//! then both look, or neither.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mongodb::bson::Bson;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::presence::dead::DEAD_AFTER;
use crate::presence::servers::{Presence, ServerDocument};

/// The length of a term: a leader that cannot reach some shards delays expiry for no longer.
const TERM_MILLIS: i64 = 60_000;
/// The time for which a server that has asked to lead takes part.
const INTEREST: Duration = Duration::from_secs(30);

/// Whether this server leads.
#[derive(Default)]
pub struct ExpiryLeader(Mutex<State>);

#[derive(Default)]
struct State {
    /// The time when this server last asked.
    asked: Option<Instant>,
    /// Whether it leads, and when that was decided.
    decided: Option<(bool, Instant)>,
}

impl ExpiryLeader {
    /// Whether this server leads. It does if its heartbeat has failed for so long that it
    /// counts as dead, or has not begun.
    pub fn ask(&self) -> bool {
        let mut state = self.state();
        state.asked = Some(Instant::now());
        state.decided.is_none_or(|(leads, at)| leads || at.elapsed() >= DEAD_AFTER)
    }

    /// Whether this server asks to lead.
    pub fn is_candidate(&self) -> bool {
        self.state().asked.is_some_and(|asked| asked.elapsed() < INTEREST)
    }

    /// Decides whether this server leads, by the documents of all servers.
    pub fn decide(&self, presence: &Presence, all: &[ServerDocument]) {
        let Some(server) = presence.own_in(all) else { return };
        self.state().decided = Some((is_first(server, all), Instant::now()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server comes before all others that may lead and are not dead.
fn is_first(server: &ServerDocument, all: &[ServerDocument]) -> bool {
    let now = server.time.timestamp_millis();
    let rank = |one: &ServerDocument| rank(&one.id, now / TERM_MILLIS);
    let oldest = now - DEAD_AFTER.as_millis() as i64;
    let takes_part = |other: &&ServerDocument| {
        other.id != server.id && other.expires && other.time.timestamp_millis() > oldest
    };
    all.iter().filter(takes_part).all(|other| rank(other) > rank(server))
}

/// The rank of a server in a term: the least has it.
fn rank(id: &Bson, term: i64) -> (u64, Vec<u8>) {
    let bytes = match id {
        Bson::Binary(id) => id.bytes.clone(),
        _ => Vec::new(),
    };
    (xxh3_64_with_seed(&bytes, term as u64), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::spec::BinarySubtype;
    use mongodb::bson::{Binary, DateTime};

    fn server(n: u8, millis: i64, expires: bool) -> ServerDocument {
        ServerDocument {
            id: Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![n; 16] }),
            time: DateTime::from_millis(millis),
            sessions: Vec::new(),
            ahead: 0,
            is_routed: true,
            expires,
        }
    }

    /// The servers that lead.
    fn first(all: &[ServerDocument]) -> Vec<usize> {
        (0..all.len()).filter(|n| is_first(&all[*n], all)).collect()
    }

    #[test]
    fn one_server_leads_each_term_and_each_server_has_some() {
        let mut counts = [0; 5];
        for term in 0..500 {
            let all: Vec<_> = (0..5).map(|n| server(n, term * TERM_MILLIS + 7, true)).collect();
            let [first] = first(&all)[..] else { panic!("several or none lead term {term}") };
            counts[first] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }

    #[test]
    fn dead_servers_and_those_that_do_not_ask_do_not_lead() {
        let now = 1_000 * TERM_MILLIS;
        let mut all: Vec<_> = (0..5).map(|n| server(n, now, true)).collect();
        let [one] = first(&all)[..] else { panic!() };
        all[one].expires = false;
        // Its own view, until its document says that it takes part.
        assert!(first(&all).contains(&one));
        let others: Vec<_> = first(&all).into_iter().filter(|n| *n != one).collect();
        let [two] = others[..] else { panic!() };
        all[two].time = DateTime::from_millis(now - 60_000);
        let others = first(&all).into_iter().filter(|n| ![one, two].contains(n)).count();
        assert_eq!(others, 1);
    }

    #[test]
    fn a_server_that_hears_of_no_others_leads() {
        let leader = ExpiryLeader::default();
        assert!(!leader.is_candidate() && leader.ask() && leader.is_candidate());
        leader.state().decided = Some((false, Instant::now()));
        assert!(!leader.ask());
        leader.state().decided = Instant::now().checked_sub(DEAD_AFTER).map(|then| (false, then));
        assert!(leader.ask());
    }
}
