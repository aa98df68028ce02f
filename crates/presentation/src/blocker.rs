//! What has to be undone before an operation can be.

use std::cmp::Reverse;

use polynym_proto::v1::bulk_change;
use polynym_proto::v1::undo_operation_response::{Blocker, Kept};

/// The most operations and callers that are counted.
const MAX_LINES: usize = 20;

/// Changes after an operation, by a caller and as part of an operation or of none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The id of the operation; empty if they have none.
    pub operation_id: String,
    /// The caller.
    pub caller: String,
    /// What the operation is, such as `bulk change`.
    pub what: &'static str,
    /// The users that it keeps from being as before.
    pub users: usize,
    /// How many others are undone before it, at most.
    place: usize,
}

/// The changes that keep users from being as before an operation.
#[derive(Clone, Debug, Default)]
pub struct Blockers(Vec<Line>);

impl Blockers {
    /// Adds those of a user.
    pub fn add(&mut self, kept: &Kept) {
        for (place, blocker) in kept.blockers.iter().enumerate() {
            let Blocker { operation_id, caller, method } = blocker;
            let is_same =
                |line: &Line| line.operation_id == *operation_id && line.caller == *caller;
            match self.0.iter().position(is_same) {
                Some(known) => {
                    self.0[known].users += 1;
                    self.0[known].place = self.0[known].place.max(place);
                }
                None if self.0.len() < MAX_LINES => self.0.push(Line {
                    operation_id: operation_id.clone(),
                    caller: caller.clone(),
                    what: what(method),
                    users: 1,
                    place,
                }),
                None => {}
            }
        }
    }

    /// The lines of a bulk change, which has counted them.
    pub fn of_bulk(blockers: &[bulk_change::Blocker]) -> Vec<Line> {
        let line = |(place, one): (usize, &bulk_change::Blocker)| Line {
            operation_id: one.operation_id.clone(),
            caller: one.caller.clone(),
            what: what(&one.method),
            users: usize::try_from(one.users).unwrap_or_default(),
            place,
        };
        blockers.iter().enumerate().map(line).collect()
    }

    /// The lines, in the order in which the operations can be undone.
    pub fn lines(mut self) -> Vec<Line> {
        self.0.sort_by_key(|line| (line.place, Reverse(line.users)));
        self.0
    }
}

/// The word for the operations of a method.
fn what(method: &str) -> &'static str {
    match method {
        "StartBulkChange" => "bulk change",
        "ImportUsers" => "import",
        _ => "operation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(blockers: &[(&str, &str)]) -> Kept {
        let blocker = |(id, method): &(&str, &str)| Blocker {
            operation_id: (*id).to_owned(),
            caller: "ann".to_owned(),
            method: (*method).to_owned(),
        };
        Kept { blockers: blockers.iter().map(blocker).collect(), ..Default::default() }
    }

    #[test]
    fn the_newest_come_first_with_their_users() {
        let mut blockers = Blockers::default();
        let (bulk, import) = (("leavers", "StartBulkChange"), ("crm", "ImportUsers"));
        for blocked in [&[import][..], &[bulk, import], &[bulk], &[import, ("", "UpdateUser")]] {
            blockers.add(&kept(blocked));
        }
        (0..100).for_each(|n| blockers.add(&kept(&[(&n.to_string(), "LinkIdentity")])));
        let lines = blockers.lines();
        assert_eq!(lines.len(), MAX_LINES);
        let line = |id: &str| lines.iter().find(|line| line.operation_id == id).unwrap();
        assert_eq!((lines[0].what, lines[0].users, &*lines[0].caller), ("bulk change", 2, "ann"));
        assert_eq!((line("crm").what, line("crm").users), ("import", 3));
        assert_eq!((line("").what, line("").users), ("operation", 1));
        assert_eq!(lines.iter().position(|line| line.operation_id == "crm"), Some(MAX_LINES - 2));
        let counted = bulk_change::Blocker {
            operation_id: "crm".to_owned(),
            caller: "ann".to_owned(),
            method: "ImportUsers".to_owned(),
            users: 3,
        };
        let [line] = &Blockers::of_bulk(&[counted])[..] else { panic!("not one line") };
        assert_eq!((line.what, line.users, &*line.caller), ("import", 3, "ann"));
    }
}
