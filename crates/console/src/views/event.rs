//! Events: changes with their values before and after.

use polynym_presentation::{state, time};
use polynym_proto::v1;
use v1::event::Change;
use v1::recorded_value::Recorded;
use v1::{ChangeSet, EventType, Identity, IdentityChange, RecordedValue, State, UserState};

use super::Time;
use super::text::shorten;
use super::{identity, user};

/// The maximum characters of a value.
const MAX_VALUE: usize = 500;
/// The bytes of all changes on a page. If they are more, each event has a share.
const PAGE_BYTES: usize = 48_000;
/// The bytes of a change in HTML, without its values.
const ROW_BYTES: usize = 150;
/// The least bytes of a value that has to be cut.
const MIN_BYTES: usize = 40;

/// An event of a user.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The kind, such as `identity linked`.
    pub kind: &'static str,
    /// The number among the user's events.
    pub sequence: i64,
    /// When it happened.
    pub time: Option<Time>,
    /// A period with this event alone, for inputs: from, to.
    pub instant: (String, String),
    /// The hour of the event, for inputs: from, to.
    pub hour: (String, String),
    /// The user.
    pub user: String,
    /// The name of the caller.
    pub caller: String,
    /// The method that was called.
    pub method: String,
    /// The id of the request.
    pub request_id: String,
    /// The caller's reason.
    pub reason: String,
    /// The id of the operation.
    pub operation: String,
    /// The other user that the change concerns.
    pub other: String,
    /// Whether values of a purged user were removed.
    pub is_redacted: bool,
    /// The changes.
    pub changes: Vec<ChangeView>,
    /// The changes that are left out, for they are too many.
    pub omitted: usize,
    /// Whether values are cut.
    pub is_cut: bool,
    /// Whether a page with this event alone shows more.
    pub is_one_of_many: bool,
}

/// A field, identity, state or hold that changed.
#[derive(Clone, Debug)]
pub struct ChangeView {
    /// The label: the name of a field, a kind of identity, `state`, or the hold.
    pub name: String,
    /// The value before; empty if there was none.
    pub before: String,
    /// The value after; empty if there is none.
    pub after: String,
}

/// The kinds of events, with their names.
pub const KINDS: [(EventType, &str); 18] = [
    (EventType::UserCreated, "created"),
    (EventType::UserImported, "imported"),
    (EventType::UserUpdated, "updated"),
    (EventType::UserDisabled, "disabled"),
    (EventType::UserEnabled, "enabled"),
    (EventType::UserDeleted, "deleted"),
    (EventType::UserRestored, "restored"),
    (EventType::UserMerged, "merged"),
    (EventType::UserUnmerged, "merge undone"),
    (EventType::IdentityLinked, "identity linked"),
    (EventType::IdentityUnlinked, "identity unlinked"),
    (EventType::IdentityReplaced, "identity replaced"),
    (EventType::IdentityMoved, "identity moved"),
    (EventType::IdentityVerified, "identity verified"),
    (EventType::IdentityTakenOver, "identity taken over"),
    (EventType::IdentityRenormalized, "identity normalised again"),
    (EventType::HoldReleased, "hold released"),
    (EventType::HistoryBegun, "history begun"),
];

/// The views of the events of a page, which share the bytes that fit it.
pub fn views(events: &[v1::Event]) -> Vec<EventView> {
    let mut views: Vec<_> = events.iter().map(EventView::of).collect();
    let (count, all) = (views.len(), views.iter().map(EventView::bytes).sum::<usize>());
    for view in &mut views {
        view.is_one_of_many = count > 1;
        if all > PAGE_BYTES {
            view.fit(PAGE_BYTES / count);
        }
    }
    views
}

impl EventView {
    /// The view of an event.
    fn of(event: &v1::Event) -> Self {
        let (kind, set) = parts(event);
        let mut changes = set.map(changes).unwrap_or_default();
        let mut is_cut = false;
        for text in changes.iter_mut().flat_map(ChangeView::texts) {
            is_cut |= shorten(text, MAX_VALUE);
        }
        Self {
            kind,
            sequence: event.sequence,
            time: Time::of(event.time.as_ref()),
            instant: time::span(event.time.as_ref(), 1),
            hour: time::span(event.time.as_ref(), 3_600_000),
            user: event.user_id.clone(),
            caller: event.caller.clone(),
            method: event.method.clone(),
            request_id: event.request_id.clone(),
            reason: event.reason.clone(),
            operation: event.operation_id.clone(),
            other: set.map(|set| set.other_user_id.clone()).unwrap_or_default(),
            is_redacted: set.is_some_and(|set| set.redacted),
            changes,
            omitted: 0,
            is_cut,
            is_one_of_many: false,
        }
    }

    /// The bytes of the changes in HTML.
    fn bytes(&self) -> usize {
        self.changes.iter().map(ChangeView::bytes).sum()
    }

    /// Leaves changes out and cuts values, until the changes have at most `share` bytes.
    fn fit(&mut self, share: usize) {
        if self.bytes() <= share {
            return;
        }
        let shown = self.changes.len().min((share / (ROW_BYTES + 3 * MIN_BYTES)).max(1));
        self.omitted = self.changes.len() - shown;
        self.changes.truncate(shown);
        let most = (share / shown).saturating_sub(ROW_BYTES) / 3;
        for text in self.changes.iter_mut().flat_map(ChangeView::texts) {
            self.is_cut |= cut_to_bytes(text, most.max(MIN_BYTES));
        }
    }
}

impl ChangeView {
    fn new(name: &str, before: String, after: String) -> Self {
        Self { name: name.to_owned(), before, after }
    }

    fn texts(&mut self) -> [&mut String; 3] {
        [&mut self.name, &mut self.before, &mut self.after]
    }

    fn bytes(&self) -> usize {
        let texts = [&self.name, &self.before, &self.after];
        ROW_BYTES + texts.into_iter().flat_map(|text| text.chars()).map(bytes).sum::<usize>()
    }
}

/// The bytes of a character in HTML.
const fn bytes(c: char) -> usize {
    if matches!(c, '<' | '>' | '&' | '"' | '\'') { 5 } else { c.len_utf8() }
}

/// Cuts a text that has more than `most` bytes in HTML. Returns whether it did.
fn cut_to_bytes(text: &mut String, most: usize) -> bool {
    let mut used = 0;
    let count = text.chars().take_while(|c| {
        used += bytes(*c);
        used <= most
    });
    let count = count.count();
    shorten(text, count)
}

/// The name of an event's kind, and its changes.
fn parts(event: &v1::Event) -> (&'static str, Option<&ChangeSet>) {
    let (kind, set) = match event.change.as_ref() {
        None => return ("changed", None),
        Some(Change::HistoryBegun(set)) => (EventType::HistoryBegun, set),
        Some(Change::UserCreated(set)) => (EventType::UserCreated, set),
        Some(Change::UserImported(set)) => (EventType::UserImported, set),
        Some(Change::UserUpdated(set)) => (EventType::UserUpdated, set),
        Some(Change::UserDisabled(set)) => (EventType::UserDisabled, set),
        Some(Change::UserEnabled(set)) => (EventType::UserEnabled, set),
        Some(Change::UserDeleted(set)) => (EventType::UserDeleted, set),
        Some(Change::UserRestored(set)) => (EventType::UserRestored, set),
        Some(Change::UserMerged(set)) => (EventType::UserMerged, set),
        Some(Change::UserUnmerged(set)) => (EventType::UserUnmerged, set),
        Some(Change::IdentityLinked(set)) => (EventType::IdentityLinked, set),
        Some(Change::IdentityUnlinked(set)) => (EventType::IdentityUnlinked, set),
        Some(Change::IdentityReplaced(set)) => (EventType::IdentityReplaced, set),
        Some(Change::IdentityMoved(set)) => (EventType::IdentityMoved, set),
        Some(Change::IdentityVerified(set)) => (EventType::IdentityVerified, set),
        Some(Change::IdentityTakenOver(set)) => (EventType::IdentityTakenOver, set),
        Some(Change::IdentityRenormalized(set)) => (EventType::IdentityRenormalized, set),
        Some(Change::HoldReleased(set)) => (EventType::HoldReleased, set),
    };
    let name = KINDS.iter().find(|(known, _)| *known == kind).map_or("changed", |(_, name)| name);
    (name, Some(set))
}

/// The changes of an event.
pub fn change_set(event: &v1::Event) -> Option<&ChangeSet> {
    parts(event).1
}

/// The changes of a set, with their whole values.
pub fn changes(set: &ChangeSet) -> Vec<ChangeView> {
    let state = set.state.iter().map(|change| {
        ChangeView::new("state", state(change.before.as_ref()), state(change.after.as_ref()))
    });
    let fields = set.fields.iter().map(|change| {
        let name = change.path.strip_prefix("attributes.").unwrap_or("name");
        ChangeView::new(name, recorded(change.before.as_ref()), recorded(change.after.as_ref()))
    });
    let identities = set.identities.iter().map(|IdentityChange { before, after }| {
        let either = after.as_ref().or(before.as_ref());
        let kind = identity::kind(either.and_then(|own| own.identifier.as_ref()));
        ChangeView::new(kind, marked(before.as_ref()), marked(after.as_ref()))
    });
    let holds = set.holds.iter().map(|change| {
        let name = format!("hold on {}", identity::text(change.identifier.as_ref()));
        let until = |end: Option<&prost_types::Timestamp>| {
            Time::of(end).map(|time| format!("until {}", time.text)).unwrap_or_default()
        };
        let (before, after) = (change.end_before.as_ref(), change.end_after.as_ref());
        ChangeView::new(&name, until(before), until(after))
    });
    state.chain(fields).chain(identities).chain(holds).collect()
}

fn state(state: Option<&UserState>) -> String {
    let Some(state) = state else { return String::new() };
    match state.state() {
        State::Deleted => match Time::of(state.purge_time.as_ref()) {
            Some(time) => format!("deleted, to be purged on {}", time.text),
            None => "deleted".to_owned(),
        },
        State::Merged => format!("merged into {}", state.merged_into),
        other => state::word(other).to_owned(),
    }
}

fn recorded(value: Option<&RecordedValue>) -> String {
    match value.and_then(|value| value.recorded.as_ref()) {
        Some(Recorded::Value(value)) => match user::attribute(value) {
            (_, text) if text.is_empty() => "(empty)".to_owned(),
            (_, text) => text,
        },
        Some(Recorded::Digest(digest)) => {
            format!("({} bytes, hash {:016x})", digest.size_bytes, digest.hash)
        }
        Some(Recorded::Redacted(_)) => "(of a purged user)".to_owned(),
        None => String::new(),
    }
}

/// An identity with its marks, such as `joe (primary, not verified)`.
fn marked(own: Option<&Identity>) -> String {
    let Some(own) = own else { return String::new() };
    let primary = if own.primary { "primary, " } else { "" };
    let verified = match &own.verify_time {
        Some(_) if own.verified_by.is_empty() => "verified".to_owned(),
        Some(_) => format!("verified by {}", own.verified_by),
        None => "not verified".to_owned(),
    };
    format!("{} ({primary}{verified})", identity::value(own.identifier.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(fields: usize, length: usize) -> v1::Event {
        let value = v1::AttributeValue {
            kind: Some(v1::attribute_value::Kind::StringValue("é".repeat(length))),
        };
        let field = |n: usize| v1::FieldChange {
            path: format!("attributes.a{n}"),
            before: None,
            after: Some(RecordedValue { recorded: Some(Recorded::Value(value.clone())) }),
        };
        let set = ChangeSet { fields: (0..fields).map(field).collect(), ..Default::default() };
        v1::Event { change: Some(Change::UserCreated(set)), ..Default::default() }
    }

    #[test]
    fn the_values_of_a_page_are_bounded_and_those_of_one_event_are_whole() {
        let many = views(&vec![created(60, 500); 25]);
        let all = many.iter().map(EventView::bytes).sum::<usize>();
        assert!(all <= PAGE_BYTES + 25 * 3 * "…".len() * 8, "{all} bytes");
        assert!(many[0].is_cut && many[0].omitted > 0);
        let one = &views(&[created(40, 500)])[0];
        assert!(!one.is_cut && one.omitted == 0 && one.kind == "created");
        let few = &views(&vec![created(6, 40); 25])[24];
        assert!(!few.is_cut && few.omitted == 0, "a page that fits is whole");
    }
}
