//! The turns of servers at looking for expired users, which reads from all shards: one server at a
//! time does it, and another a minute later. Whose turn it is follows from the documents that all
//! servers read with each beat, so that nothing more is written or waited for. Two servers may
//! disagree for some seconds: then both look, or neither.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mongodb::bson::Bson;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::presence::dead::DEAD_AFTER;
use crate::presence::servers::{Presence, ServerDocument};

/// The length of a turn: a server that cannot reach some shards delays expiry for no longer.
const TURN_MILLIS: i64 = 60_000;
/// The time for which a server that has asked for its turn takes part.
const INTEREST: Duration = Duration::from_secs(30);

/// The turns of this server.
#[derive(Default)]
pub struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    /// When this server last asked.
    asked: Option<Instant>,
    /// Whether it has the turn, and when that was decided.
    decided: Option<(bool, Instant)>,
}

impl Turns {
    /// Whether it is this server's turn. It is if its heartbeat has failed for so long that it
    /// counts as dead, or has not begun.
    pub fn ask(&self) -> bool {
        let mut state = self.state();
        state.asked = Some(Instant::now());
        state.decided.is_none_or(|(is_own, at)| is_own || at.elapsed() >= DEAD_AFTER)
    }

    /// Whether this server asks for turns.
    pub fn are_wanted(&self) -> bool {
        self.state().asked.is_some_and(|asked| asked.elapsed() < INTEREST)
    }

    /// Decides whether it is this server's turn, by the documents of all servers.
    pub fn decide(&self, presence: &Presence, all: &[ServerDocument]) {
        let Some(own) = presence.own_in(all) else { return };
        self.state().decided = Some((is_first(own, all), Instant::now()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server comes before all others that take turns and are not dead.
fn is_first(own: &ServerDocument, all: &[ServerDocument]) -> bool {
    let now = own.time.timestamp_millis();
    let rank = |server: &ServerDocument| rank(&server.id, now / TURN_MILLIS);
    let oldest = now - DEAD_AFTER.as_millis() as i64;
    let takes_part = |server: &&ServerDocument| {
        server.id != own.id && server.expires && server.time.timestamp_millis() > oldest
    };
    all.iter().filter(takes_part).all(|other| rank(other) > rank(own))
}

/// The rank of a server in a turn: the least has it.
fn rank(id: &Bson, turn: i64) -> (u64, Vec<u8>) {
    let bytes = match id {
        Bson::Binary(id) => id.bytes.clone(),
        _ => Vec::new(),
    };
    (xxh3_64_with_seed(&bytes, turn as u64), bytes)
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

    /// The servers that have the turn.
    fn first(all: &[ServerDocument]) -> Vec<usize> {
        (0..all.len()).filter(|n| is_first(&all[*n], all)).collect()
    }

    #[test]
    fn one_server_has_each_turn_and_each_server_has_some() {
        let mut counts = [0; 5];
        for turn in 0..500 {
            let all: Vec<_> = (0..5).map(|n| server(n, turn * TURN_MILLIS + 7, true)).collect();
            let [first] = first(&all)[..] else { panic!("several or none have turn {turn}") };
            counts[first] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }

    #[test]
    fn dead_servers_and_those_that_do_not_ask_have_no_turn() {
        let now = 1_000 * TURN_MILLIS;
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
    fn a_server_that_hears_of_no_others_has_the_turn() {
        let turns = Turns::default();
        assert!(!turns.are_wanted() && turns.ask() && turns.are_wanted());
        turns.state().decided = Some((false, Instant::now()));
        assert!(!turns.ask());
        turns.state().decided = Instant::now().checked_sub(DEAD_AFTER).map(|then| (false, then));
        assert!(turns.ask());
    }
}
