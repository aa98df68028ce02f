//! Short ids in the addresses of pages.

use uuid::Uuid;

/// A short id of what a session has, such as a search.
pub type ShortId = u64;

/// A new id. It is random: an address of one session leads to nothing in another.
pub fn new_id() -> ShortId {
    let (_, id) = Uuid::new_v4().as_u64_pair();
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_several_sessions_differ() {
        assert_ne!(new_id(), new_id());
    }
}
