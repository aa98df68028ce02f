//! Events: changes with their values before and after.

use polynym_presentation::change::{self, Forms, Line};
use polynym_presentation::{event, time};
use polynym_proto::v1;
use v1::ChangeSet;

use super::Time;
use super::person::{People, Person};
use super::text::{cut, shorten};
use super::{identity, user};

/// The most sentences about replaced identities of an event.
const MAX_REPLACED: usize = 3;
/// The characters of an identifier in such a sentence.
const MAX_IDENTIFIER: usize = 100;
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
    pub user: Person,
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
    pub other: Option<Person>,
    /// The identities that others replaced, with these.
    pub replaced: Vec<[String; 2]>,
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
    /// The label: the name of a field, `identity`, `state` or `hold`.
    pub name: String,
    /// Whether it is an attribute, whose name and values are data.
    pub is_attribute: bool,
    /// The value before; empty if there was none.
    pub before: String,
    /// The value after; empty if there is none.
    pub after: String,
    /// The users whom the values before and after name, after their text.
    pub users: [Option<Person>; 2],
}

/// The state of a merged user, before the other one's name.
const MERGED_INTO: &str = "merged into";

const FORMS: Forms = Forms {
    value: user::attribute,
    time: |time| Time::of(Some(time)).map(|time| time.text).unwrap_or_default(),
};

/// The ids of the users that events name.
pub fn user_ids(events: &[v1::Event]) -> impl Iterator<Item = &str> {
    let sets = || events.iter().filter_map(v1::Event::change_set);
    let others = sets().map(|set| &*set.other_user_id);
    let primaries = sets().flat_map(|set| merged_into(set).into_iter().flatten());
    events.iter().map(|event| &*event.user_id).chain(others).chain(primaries)
}

/// The ids of the users into whom the user of a change was merged before and after it.
fn merged_into(set: &ChangeSet) -> [Option<&str>; 2] {
    let states = set.state.as_ref().map(|change| [&change.before, &change.after]);
    states
        .unwrap_or([&None, &None])
        .map(|state| state.as_ref().map(|state| &*state.merged_into).filter(|id| !id.is_empty()))
}

/// The views of the events of a page, which share the bytes that fit it.
pub fn views(events: &[v1::Event], people: &People) -> Vec<EventView> {
    let mut views: Vec<_> = events.iter().map(|event| EventView::of(event, people)).collect();
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
    fn of(event: &v1::Event, people: &People) -> Self {
        let set = event.change_set();
        let person = |id: &str| people.person(id);
        let mut changes = set.map(|set| named_changes(set, person)).unwrap_or_default();
        let mut is_cut = false;
        for text in changes.iter_mut().flat_map(ChangeView::texts) {
            is_cut |= shorten(text, MAX_VALUE);
        }
        Self {
            kind: event::word(event),
            sequence: event.sequence,
            time: Time::of(event.time.as_ref()),
            instant: time::span(event.time.as_ref(), 1),
            hour: time::span(event.time.as_ref(), 3_600_000),
            user: people.person(&event.user_id),
            caller: event.caller.clone(),
            method: event.method.clone(),
            request_id: event.request_id.clone(),
            reason: event.reason.clone(),
            operation: event.operation_id.clone(),
            other: set.and_then(|set| people.other(&set.other_user_id)),
            replaced: set.map(replaced).unwrap_or_default(),
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
    /// Whether it is the state, whose values are words.
    pub fn is_state(&self) -> bool {
        !self.is_attribute && self.name == change::STATE
    }

    /// The values before and after as texts, with the names of users.
    pub fn sides(&self) -> [String; 2] {
        let [before, after] = self.users.each_ref();
        [(&self.before, before), (&self.after, after)].map(|(text, user)| match user {
            Some(user) => format!("{text} {}", user.name),
            None => text.clone(),
        })
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

/// The identities that others replaced in a change, with these.
fn replaced(set: &ChangeSet) -> Vec<[String; 2]> {
    let value = |own: &v1::Identity| cut(identity::value(own.identifier.as_ref()), MAX_IDENTIFIER);
    let pairs = change::replaced(set).into_iter().map(|pair| pair.map(value));
    pairs.take(MAX_REPLACED).collect()
}

/// The changes of a set, with their whole values.
pub fn changes(set: &ChangeSet) -> Vec<ChangeView> {
    let view = |line: Line| ChangeView {
        name: change::label(&line.path),
        is_attribute: line.path.starts_with("attributes."),
        before: line.before.unwrap_or_default(),
        after: line.after.unwrap_or_default(),
        users: [None, None],
    };
    FORMS.lines(set).into_iter().map(view).collect()
}

/// The changes of a set, with the users whom its state names.
pub fn named_changes(set: &ChangeSet, person: impl Fn(&str) -> Person) -> Vec<ChangeView> {
    let mut changes = changes(set);
    // The state comes first.
    if let Some(state) = changes.first_mut().filter(|_| set.state.is_some()) {
        state.users = merged_into(set).map(|id| id.map(&person));
        for (text, user) in [&mut state.before, &mut state.after].into_iter().zip(&state.users) {
            if user.is_some() {
                MERGED_INTO.clone_into(text);
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use v1::event::Change;
    use v1::{RecordedValue, recorded_value::Recorded};

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
    fn the_state_of_a_merged_user_names_the_other_one() {
        let state = |state: v1::State, id: &str| {
            let merged_into = id.to_owned();
            Some(v1::UserState { state: state.into(), merged_into, ..Default::default() })
        };
        let (before, after) = (state(v1::State::Active, ""), state(v1::State::Merged, "id-of-joe"));
        let state = Some(v1::StateChange { before, after });
        let set = ChangeSet { state, ..Default::default() };
        let event = v1::Event { change: Some(Change::UserMerged(set)), ..Default::default() };
        assert!(user_ids(std::slice::from_ref(&event)).any(|id| id == "id-of-joe"));
        let joe = Person { name: "Joe".to_owned(), ..Person::unknown("id-of-joe") };
        let view = EventView::of(&event, &People::from_iter([joe.clone()]));
        let change = &view.changes[0];
        assert_eq!((&*change.before, &*change.after), ("active", "merged into"));
        assert_eq!(change.users, [None, Some(joe)]);
        assert_eq!(change.sides()[1], "merged into Joe");
    }

    #[test]
    fn the_values_of_a_page_are_bounded_and_those_of_one_event_are_whole() {
        let nobody = People::default();
        let many = views(&vec![created(60, 500); 25], &nobody);
        let all = many.iter().map(EventView::bytes).sum::<usize>();
        assert!(all <= PAGE_BYTES + 25 * 3 * "…".len() * 8, "{all} bytes");
        assert!(many[0].is_cut && many[0].omitted > 0);
        let one = &views(&[created(40, 500)], &nobody)[0];
        assert!(!one.is_cut && one.omitted == 0 && one.kind == "created");
        let few = &views(&vec![created(6, 40); 25], &nobody)[24];
        assert!(!few.is_cut && few.omitted == 0, "a page that fits is whole");
    }
}
