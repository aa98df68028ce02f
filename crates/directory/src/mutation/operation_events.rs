//! The events of an operation in the history of a user.

use std::collections::HashMap;
use std::ops::ControlFlow;

use locality_uuid::LocalityId;

use crate::error::{Blocker, NotUndone};
use crate::history_part::HistoryPart;
use crate::model::event::{Event, EventKind, Origin};
use crate::mutation::read_set::{DecideError, ReadSet};
use crate::timestamp::Timestamp;
use polynym_identifier::Identifier;

/// The events of a part of a history.
const PART_EVENTS: usize = 64;
/// The most parts of a history that are read.
const MAX_PARTS: usize = 16;
/// The most operations and callers that are named as the reason why a user stays.
const MAX_BLOCKERS: usize = 8;

/// The undoing of an operation for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The operation.
    pub operation_id: String,
    /// The operation began after this, if its id has a time.
    pub since: Option<Timestamp>,
    /// Whether it is a bulk change, which may not run meanwhile.
    pub is_bulk: bool,
    /// Whether the bulk change may have begun to change the user. The user is then stored even if
    /// it has not changed, so that a change that was decided earlier conflicts.
    pub in_batch: bool,
}

/// The present forms of identifiers that later rules have normalised since.
pub type Renamed<'v> = HashMap<&'v Identifier, &'v Identifier>;

/// The events of an operation that remain to be undone.
#[derive(Default)]
pub struct OperationEvents<'v> {
    /// The events, the newest first.
    pub own: Vec<&'v Event>,
    /// The present forms of identifiers.
    pub renamed: Renamed<'v>,
    /// The request that has undone the operation last, if one did.
    pub undone_by: Option<LocalityId>,
}

impl OperationEvents<'_> {
    /// Whether nothing remains to be undone.
    pub const fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether the operation created the user.
    pub fn creates_user(&self) -> bool {
        self.own.last().is_some_and(|event| matches!(event.changes.state, Some((None, _))))
    }
}

/// The events of an operation that remain to be undone. The tenant keeps all events since
/// `history_begins`.
///
/// # Errors
/// [`NotUndone::ChangedSince`] if there are later events of others;
/// [`NotUndone::ValuesNotKept`] if events of the operation may be missing.
pub fn operation_events<'v>(
    read_set: &'v ReadSet,
    user: LocalityId,
    reversal: &Reversal,
    history_begins: Timestamp,
) -> Result<OperationEvents<'v>, DecideError> {
    let mut walk = Walk::new(reversal);
    let mut cursor = None;
    for _ in 0..MAX_PARTS {
        let read = read_set.read_history(HistoryPart { user, cursor, limit: PART_EVENTS })?;
        for event in &read.events {
            if walk.add(event).is_break() {
                return walk.finish(true);
            }
        }
        // Unreadable events that are older than the operation do not matter.
        walk.is_damaged |= read.is_damaged;
        match read.next {
            Some(next) => cursor = Some(next),
            None => {
                let is_recent = reversal.since.is_some_and(|since| since >= history_begins);
                let is_complete = is_recent || walk.has_older();
                return walk.finish(is_complete);
            }
        }
    }
    Err(NotUndone::ValuesNotKept.into())
}

/// A walk through the events of a user, from the newest to the oldest.
struct Walk<'v, 'r> {
    reversal: &'r Reversal,
    events: OperationEvents<'v>,
    /// The operations that were undone later, the last one whose events are met last.
    undone: Vec<&'v str>,
    /// The number of the next event.
    expected: Option<u64>,
    /// The last event.
    last: Option<&'v Event>,
    /// Whose events were met other than those of the operation: some of them, the last one first.
    others: Vec<Blocker>,
    /// How many of them are known to have changed the user after the operation.
    blockers: usize,
    /// Whether events are missing, as those that have expired.
    has_gap: bool,
    /// Whether events cannot be read.
    is_damaged: bool,
}

impl<'v, 'r> Walk<'v, 'r> {
    fn new(reversal: &'r Reversal) -> Self {
        Self {
            reversal,
            events: OperationEvents::default(),
            undone: Vec::new(),
            expected: None,
            last: None,
            others: Vec::new(),
            blockers: 0,
            has_gap: false,
            is_damaged: false,
        }
    }

    /// Adds the next event. Breaks if no older event can be of the operation.
    fn add(&mut self, event: &'v Event) -> ControlFlow<()> {
        self.has_gap |= self.expected.is_some_and(|expected| expected != event.sequence);
        self.expected = event.sequence.checked_sub(1);
        if self.reversal.since.is_some_and(|since| event.time < since) {
            return ControlFlow::Break(());
        }
        let operation = &*event.origin.operation_id;
        let is_own = operation == self.reversal.operation_id;
        let is_undoing = event.origin.method == Origin::UNDO;
        if event.kind == EventKind::HistoryBegun || is_own && is_undoing {
            self.events.undone_by = event.origin.request_id.filter(|_| is_own && is_undoing);
            return ControlFlow::Break(());
        }
        self.last = Some(event);
        if is_undoing {
            self.undone.push(operation);
        } else if event.kind == EventKind::IdentityRenormalized {
            self.add_renamed(event);
        } else if !self.is_undone(operation) {
            if is_own {
                self.blockers = self.others.len();
                self.events.own.push(event);
            } else {
                self.add_other(event);
            }
        }
        ControlFlow::Continue(())
    }

    fn add_other(&mut self, event: &Event) {
        let Origin { caller, method, operation_id, .. } = &event.origin;
        let is_same =
            |known: &Blocker| (&known.operation_id, &known.caller) == (operation_id, caller);
        if self.others.len() < MAX_BLOCKERS && !self.others.iter().any(is_same) {
            self.others.push(Blocker {
                operation_id: operation_id.clone(),
                caller: caller.clone(),
                method: method.clone(),
            });
        }
    }

    /// Whether an event of this operation was undone later.
    fn is_undone(&mut self, operation: &str) -> bool {
        while self.undone.last().is_some_and(|undone| *undone != operation) {
            self.undone.pop();
        }
        !self.undone.is_empty()
    }

    fn add_renamed(&mut self, event: &'v Event) {
        let identities = &event.changes.identities;
        let (old, new) = (
            identities.iter().filter(|change| change.after.is_none()),
            identities.iter().filter(|change| change.before.is_none()),
        );
        for (old, new) in old.zip(new) {
            if let (Some(old), Some(new)) = (&old.before, &new.after) {
                let present = self.events.renamed.get(&new.identifier).copied();
                self.events.renamed.insert(&old.identifier, present.unwrap_or(&new.identifier));
            }
        }
    }

    /// Whether the history reaches back to before the operation: to the user's creation, or to an
    /// event of somebody else.
    fn has_older(&self) -> bool {
        let oldest = self.last.map_or(1, |event| event.sequence);
        oldest == 1 || self.events.own.last().is_none_or(|own| own.sequence != oldest)
    }

    fn finish(mut self, is_complete: bool) -> Result<OperationEvents<'v>, DecideError> {
        if self.blockers > 0 {
            self.others.truncate(self.blockers);
            return Err(NotUndone::ChangedSince(self.others).into());
        }
        let is_partial = !self.events.is_empty() && (self.has_gap || !is_complete);
        match self.is_damaged || is_partial {
            true => Err(NotUndone::ValuesNotKept.into()),
            false => Ok(self.events),
        }
    }
}
