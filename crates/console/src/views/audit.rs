//! Lines of the audit: a sentence for each change.

use std::collections::{BTreeMap, BTreeSet};

use polynym_presentation::event::words_of;
use polynym_proto::v1;
use v1::{EventType, State};

use super::Time;
use super::audit_detail::Details;
use super::event::{changes, named_changes};
use super::person::Person;

/// The method that undoes changes.
const UNDO: &str = "UndoOperation";
/// The users of an operation that a line names.
const MAX_NAMES: usize = 3;

/// A change, or the changes of one kind that an operation made to several users, one after the
/// other.
#[derive(Clone, Debug)]
pub struct Line {
    /// The id of the event, the first of several.
    pub event: String,
    /// When it happened.
    pub time: Option<Time>,
    /// The day, such as `2026-11-30`.
    day: String,
    /// The time of day, such as `14:40`.
    pub clock: String,
    /// A period with this change alone, for addresses: from, to.
    pub instant: (String, String),
    /// The name of the caller.
    pub caller: String,
    /// The verb of the sentence, such as `linked an identity to`.
    pub action: &'static str,
    /// The users whom it did it to: some of them.
    pub users: Vec<Person>,
    /// The number of users.
    pub count: usize,
    /// Whether earlier changes of the operation may follow, on the next page.
    pub goes_on: bool,
    /// The word before the other user.
    pub joiner: &'static str,
    /// The other user.
    pub other: Option<Person>,
    /// The first changed values; none if it is about several users.
    pub details: Details,
    /// The caller's reason.
    pub reason: String,
    /// The id of the operation.
    pub operation: String,
    kind: EventType,
    /// The ids of all users.
    ids: BTreeSet<String>,
    request: (String, i64),
}

/// The lines of one day.
#[derive(Clone, Debug)]
pub struct Day {
    /// The date.
    pub date: String,
    /// The lines, the newest first.
    pub lines: Vec<Line>,
}

/// Lines that are being made, the newest first.
#[derive(Clone, Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// The number of lines.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds the events of a page. Those of one kind that an operation made to several users, one
    /// after the other, are one line, if they are to be joined.
    pub fn add(&mut self, page: &v1::ListEventsResponse, joins: bool) {
        let names = Names::of(page);
        for event in &page.events {
            let line = Line::of(event, &names);
            if self
                .0
                .iter()
                .rev()
                .take_while(|known| known.request == line.request)
                .any(|known| known.is_other_side(&line))
            {
                continue;
            }
            match self.0.last_mut() {
                Some(last) if joins && last.takes(&line) => last.join(line),
                _ => self.0.push(line),
            }
        }
    }

    /// The newest lines, as many as these, those of one operation in one. Unless the events are the
    /// last ones, an operation may go on.
    pub fn by_operation(self, most: usize, are_last: bool) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for line in self.0 {
            match lines.iter_mut().find(|known| known.is_of_same_operation(&line)) {
                Some(known) => known.join(line),
                None => lines.push(line),
            }
        }
        lines.truncate(most);
        for line in &mut lines {
            line.goes_on = !are_last && line.count > 1;
        }
        lines
    }

    /// The lines by day. Unless they are the last ones, the operation of the last line may go on.
    pub fn days(mut self, are_last: bool) -> Vec<Day> {
        if let Some(line) = self.0.last_mut() {
            line.goes_on = !are_last && line.count > 1;
        }
        let mut days: Vec<Day> = Vec::new();
        for line in self.0 {
            match days.last_mut() {
                Some(day) if day.date == line.day => day.lines.push(line),
                _ => days.push(Day { date: line.day.clone(), lines: vec![line] }),
            }
        }
        days
    }
}

/// The names of the users of a page: the present ones, and those that merged users had.
struct Names<'p> {
    present: &'p BTreeMap<String, String>,
    former: BTreeMap<&'p str, String>,
}

impl<'p> Names<'p> {
    fn of(page: &'p v1::ListEventsResponse) -> Self {
        let merged = page.events.iter().filter(|event| is_merged(event));
        let former = merged.filter_map(|event| {
            let changes = changes(event.change_set()?);
            let name = changes.into_iter().find(|change| change.name == "display name")?.before;
            Some((&*event.user_id, name))
        });
        Self { present: &page.display_names, former: former.collect() }
    }

    fn person(&self, id: &str) -> Person {
        let mut names = [self.present.get(id), self.former.get(id)].into_iter().flatten();
        let name = names.find(|name| !name.is_empty());
        let unknown = Person::unknown(id);
        name.map_or(unknown.clone(), |name| Person { name: name.clone(), ..unknown })
    }
}

impl Line {
    fn of(event: &v1::Event, names: &Names<'_>) -> Self {
        let person = |id: &str| names.person(id);
        let set = event.change_set();
        let other = set.map(|set| &*set.other_user_id).filter(|id| !id.is_empty()).map(person);
        let (kind, user) = (event.event_type(), person(&event.user_id));
        let is_merge = kind == EventType::UserMerged && other.is_some();
        let (user, other) = match other {
            Some(merged) if is_merge && !is_merged(event) => (merged, Some(user)),
            other => (user, other),
        };
        let time = Time::of(event.time.as_ref());
        let iso = time.as_ref().map_or("", |time| &time.iso);
        let (day, clock) = (iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default());
        Self {
            event: event.event_id.clone(),
            day: day.to_owned(),
            clock: clock.to_owned(),
            instant: polynym_presentation::time::span(event.time.as_ref(), 1),
            caller: event.caller.clone(),
            action: match words_of(event) {
                _ if event.method == UNDO => "undid a change of",
                words => words.map_or("changed", |words| words.action),
            },
            ids: BTreeSet::from([user.id.clone()]),
            users: vec![user],
            count: 1,
            goes_on: false,
            joiner: if is_merge { "into" } else { "and" },
            other,
            details: set.map(|set| Details::of(&named_changes(set, person))).unwrap_or_default(),
            reason: event.reason.clone(),
            operation: event.operation_id.clone(),
            kind,
            request: (event.request_id.clone(), event.time.map_or(0, |time| time.seconds)),
            time,
        }
    }

    /// Whether another event of the same call says the same of the other user.
    fn is_other_side(&self, line: &Self) -> bool {
        let sides =
            |line: &Self| line.other.clone().map(|other| (line.users[0].id.clone(), other.id));
        let (Some((one, two)), Some((three, four))) = (sides(self), sides(line)) else {
            return false;
        };
        let is_same_pair = (one == three && two == four) || (one == four && two == three);
        is_same_pair && self.kind == line.kind && self.time_text() == line.time_text()
    }

    fn time_text(&self) -> Option<&str> {
        self.time.as_ref().map(|time| &*time.iso)
    }

    fn is_of_same_operation(&self, line: &Self) -> bool {
        let key = |line: &Self| (line.operation.clone(), line.caller.clone(), line.day.clone());
        let is_same = (self.kind, self.action) == (line.kind, line.action);
        !self.operation.is_empty() && key(self) == key(line) && is_same
    }

    /// Whether another change belongs into this line: the operation made it to another user.
    fn takes(&self, line: &Self) -> bool {
        self.is_of_same_operation(line) && self.ids.is_disjoint(&line.ids)
    }

    /// Adds the users of another line of the same operation.
    fn join(&mut self, line: Self) {
        let room = MAX_NAMES.saturating_sub(self.users.len());
        let new = line.users.into_iter().filter(|user| !self.ids.contains(&user.id));
        self.users.extend(new.take(room));
        self.ids.extend(line.ids);
        self.count = self.ids.len();
        self.details = Details::default();
        self.other = None;
    }

    /// The users that the line does not name.
    pub fn unnamed(&self) -> usize {
        self.count - self.users.len()
    }
}

/// Whether the user of an event was merged into another by it.
fn is_merged(event: &v1::Event) -> bool {
    let state = event.change_set().and_then(|set| set.state.as_ref());
    let after = state.and_then(|change| change.after.as_ref());
    after.is_some_and(|after| after.state() == State::Merged)
}
