//! Two users, a change of them, and the checks of what follows.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use polynym_proto::v1;
use prost_types::Timestamp;
use v1::attribute_value::Kind;
use v1::identifier::Kind as Identifier;

use super::table::{Change, MARK, REASON};
use crate::calls::{Client, email, handle, text, user};
use crate::scenarios::bulk::{self, until_ended};
use crate::scenarios::histories::{events, of};
use crate::scenarios::watching::Watching;

/// The handles whose owners are compared.
const NAMES: [&str; 4] = ["joe", "eve", "new", "pip"];

pub struct Scene {
    pub client: Client,
    pub number: usize,
    pub operation: String,
    /// Joe, Eve, and a user whom the change creates.
    pub ids: Vec<String>,
    change: &'static Change,
}

/// What everybody sees of the users: without times and etags, which every change moves on.
#[derive(Debug, PartialEq)]
struct Seen {
    users: Vec<Option<v1::User>>,
    /// Of each identifier: its owner, and why it cannot be linked.
    identifiers: Vec<(v1::Identifier, Option<String>, String)>,
}

/// The users that were read and reverted, and those kept with the reason.
type Undone = (i64, i64, Vec<(String, String)>);

impl Scene {
    pub async fn new(client: &Client, number: usize, change: &'static Change) -> Self {
        let operation = format!("change-{number}");
        let mut scene = Self { client: client.clone(), number, operation, ids: Vec::new(), change };
        for name in ["joe", "eve"] {
            let identities = vec![handle(&scene.name(name)), scene.email(name)];
            let mut person = user(&format!("{} Smith", scene.name(name)), identities);
            let mark = format!("{name} {number}");
            for (attribute, value) in [("mark", &*mark), ("note", "x"), ("team", "search")] {
                person.attributes.insert(attribute.to_owned(), text(value));
            }
            scene.ids.push(scene.client.create(person).await.unwrap().user_id);
        }
        scene.prepare(change.before).await;
        scene
    }

    pub fn name(&self, name: &str) -> String {
        format!("{name}{MARK}{}", self.number)
    }

    pub fn email(&self, name: &str) -> v1::Identifier {
        email(&format!("{}@example.com", self.name(name)))
    }

    pub fn identifiers(&self) -> Vec<v1::Identifier> {
        let handles = NAMES.map(|name| handle(&self.name(name)));
        handles.into_iter().chain(["joe", "eve", "new"].map(|name| self.email(name))).collect()
    }

    /// Makes the change and checks everything that follows. Returns all events of the users.
    pub async fn follow(&mut self, watching: &mut Watching) -> Vec<v1::Event> {
        let row = self.change.row;
        let mut known = Vec::new();
        let mut all = self.new_events(&mut known, watching).await;
        let notices = self.notices().await;
        let before = self.see().await;
        let past = pause().await;
        self.apply(row).await;
        let after = self.see().await;
        assert_eq!(before == after, self.change.events.is_empty(), "{row}: {after:?}");

        let changed = self.new_events(&mut known, watching).await;
        self.check_events(&changed);
        self.check_listed(&changed).await;
        self.check_past(past, &before).await;
        self.check_search(&after).await;
        let all_notices = self.notices().await;
        let new = all_notices.iter().enumerate().flat_map(|(n, rules)| {
            let known = notices.get(n).map_or(0, Vec::len);
            rules.iter().skip(known).map(move |rule| (n, rule.as_str()))
        });
        assert_eq!(new.collect::<Vec<_>>(), self.change.notices, "{row}: the notices");

        let between = pause().await;
        self.undo(&before, &after).await;
        self.check_past(past, &before).await;
        self.check_past(between, &after).await;
        all.extend(changed);
        all.extend(self.new_events(&mut known, watching).await);
        all
    }

    /// A dry run of undo tells what undo does, of half of the changes in bulk; a second undo does
    /// nothing.
    async fn undo(&mut self, before: &Seen, after: &Seen) {
        let row = self.change.row;
        let told = self.undo_operation(true).await;
        assert_eq!(self.see().await, *after, "{row}: a dry run of undo");
        let undone = match self.number % 2 {
            0 => self.undo_operation(false).await,
            _ => self.undo_in_bulk().await,
        };
        assert_eq!(told, undone, "{row}: what the dry run tells");
        let users: BTreeSet<_> = self.change.events.iter().map(|(n, _)| *n).collect();
        let kept = self.change.kept.iter();
        let mut kept: Vec<_> =
            kept.map(|(n, reason)| (self.ids[*n].clone(), (*reason).to_owned())).collect();
        kept.sort();
        let reverted = if kept.is_empty() { users.len() as i64 } else { 0 };
        assert_eq!((undone.1, &undone.2), (reverted, &kept), "{row}: undo");

        let seen = self.see().await;
        let wanted = if kept.is_empty() { before } else { after };
        // A user whom the operation created is deleted, and keeps its identities.
        match self.ids.get(2) {
            Some(_) => {
                let user = seen.users[2].as_ref().unwrap();
                assert_eq!(user.state(), v1::State::Deleted, "{row}");
                assert_eq!(seen.users[..2], before.users[..2], "{row}");
            }
            None => assert_eq!(seen, *wanted, "{row}: after undo"),
        }
        self.check_search(&seen).await;
        let again = self.undo_operation(false).await;
        assert_eq!((again.1, again.2), (0, kept), "{row}: a second undo");
        assert_eq!(self.see().await, seen, "{row}: after a second undo");
    }

    async fn undo_operation(&mut self, validate_only: bool) -> Undone {
        let request = v1::UndoOperationRequest {
            operation_id: self.operation.clone(),
            validate_only,
            ..Default::default()
        };
        let mut answers = self.client.admin.undo_operation(request).await.unwrap().into_inner();
        let mut undone = Undone::default();
        while let Some(answer) = answers.message().await.unwrap() {
            let kept = answer.kept.into_iter().map(|kept| (kept.user_id, kept.reason));
            undone.2.extend(kept);
            (undone.0, undone.1) = (answer.users, answer.reverted);
        }
        undone.2.sort();
        undone
    }

    async fn undo_in_bulk(&mut self) -> Undone {
        let bulk_id = format!("undo-{}", self.operation);
        let action = bulk::undo(&self.operation);
        let request = v1::StartBulkChangeRequest { bulk_id, action, ..Default::default() };
        let started = bulk::start(&mut self.client, request).await;
        let ended = until_ended(&mut self.client, &started.bulk_id).await;
        assert_eq!(ended.state(), v1::BulkChangeState::Completed, "{ended:?}");
        let counts = ended.counts.unwrap();
        let kept = ended.failures.into_iter().map(|failure| (failure.user_id, failure.reason));
        (counts.checked, counts.changed, kept.collect())
    }

    /// The events of all users, in an order that is the same each time.
    async fn history(&mut self) -> Vec<v1::Event> {
        let mut all = Vec::new();
        for id in self.ids.clone() {
            all.extend(events(&mut self.client, of(&id)).await);
        }
        all.sort_by(|one, other| one.event_id.cmp(&other.event_id));
        all
    }

    /// The events that are not known yet: a watch gets the same.
    async fn new_events(
        &mut self,
        known: &mut Vec<v1::Event>,
        watching: &mut Watching,
    ) -> Vec<v1::Event> {
        let all = self.history().await;
        let new: Vec<_> = all.iter().filter(|event| !known.contains(event)).cloned().collect();
        assert_eq!(new.len() + known.len(), all.len(), "{}: an event changed", self.change.row);
        let mut watched = Vec::new();
        for _ in &new {
            watched.push(watching.next().await.unwrap());
        }
        let in_order = watched.clone();
        watched.sort_by(|one, other| one.event_id.cmp(&other.event_id));
        assert_eq!(watched, new, "{}: a watch", self.change.row);
        *known = all;
        in_order
    }

    fn check_events(&self, changed: &[v1::Event]) {
        let row = self.change.row;
        let who = |event: &v1::Event| self.ids.iter().position(|id| *id == event.user_id).unwrap();
        let mut found: Vec<_> =
            changed.iter().map(|event| (who(event), event.event_type())).collect();
        found.sort_unstable_by_key(|(user, _)| *user);
        assert_eq!(found, self.change.events, "{row}: the events");
        let method = super::method(row);
        for event in changed {
            let origin = (&*event.method, &*event.reason, &event.operation_id, &*event.caller);
            assert_eq!(origin, (method, REASON, &self.operation, "anonymous"), "{row}");
        }
    }

    /// The events of all users are listed by their operation.
    async fn check_listed(&mut self, changed: &[v1::Event]) {
        let request =
            v1::ListEventsRequest { operation_id: self.operation.clone(), ..Default::default() };
        let page = self.client.directory.list_events(request).await.unwrap().into_inner();
        assert_eq!(page.next_page_token, "");
        let ids = |events: &[v1::Event]| -> BTreeSet<_> {
            events.iter().map(|event| event.event_id.clone()).collect()
        };
        assert_eq!(ids(&page.events), ids(changed), "{}: of its operation", self.change.row);
    }

    /// Look-ups in the past find the owners of that time.
    async fn check_past(&mut self, past: Timestamp, then: &Seen) {
        for (identifier, ..) in &then.identifiers {
            let mut users = then.users.iter().flatten();
            let owner = users.find(|user| has(user, identifier)).map(|user| &user.user_id);
            let request = v1::ResolveIdentityRequest {
                identifier: Some(identifier.clone()),
                as_of: Some(past),
                ..Default::default()
            };
            let found = self.client.directory.resolve_identity(request).await;
            let found = found.map(|found| found.into_inner().user.unwrap().user_id).ok();
            assert_eq!(found.as_ref(), owner, "{}: the owner then", self.change.row);
        }
    }

    /// A search by anything that a user has finds exactly those who have it.
    async fn check_search(&mut self, seen: &Seen) {
        for identifier in self.identifiers() {
            let filter = match identifier.kind.as_ref().unwrap() {
                Identifier::Email(value) => format!("identities.email = \"{value}\""),
                Identifier::Handle(value) => format!("identities.handle = \"{value}\""),
                other => panic!("{other:?}"),
            };
            self.check_found(&filter, seen, |user| has(user, &identifier)).await;
        }
        let [joe, eve] = ["joe", "eve"].map(|name| self.name(name));
        for word in ["Smith", &joe, &eve, "Joey", "Joseph"] {
            let has = |user: &v1::User| user.display_name.split(' ').any(|known| known == word);
            self.check_found(&format!("display_name: {word}"), seen, has).await;
        }
        for (name, value) in [("team", "search"), ("team", "ads"), ("note", "x")] {
            let has = |user: &v1::User| {
                let value = Some(Kind::StringValue(value.to_owned()));
                user.attributes.get(name).is_some_and(|attribute| attribute.kind == value)
            };
            self.check_found(&format!("attributes.{name} = {value}"), seen, has).await;
        }
        for state in ["ACTIVE", "DISABLED", "DELETED"] {
            let has = |user: &v1::User| user.state().as_str_name() == format!("STATE_{state}");
            self.check_found(&format!("state = {state}"), seen, has).await;
        }
        let users = self.ids.iter().zip(&seen.users);
        let merged =
            users.filter(|(id, user)| user.as_ref().is_some_and(|user| user.user_id != **id));
        let merged: BTreeSet<_> = merged.map(|(id, _)| id.clone()).collect();
        assert_eq!(self.found("state = MERGED").await, merged, "{}", self.change.row);
    }

    async fn check_found(&mut self, filter: &str, seen: &Seen, has: impl Fn(&v1::User) -> bool) {
        let users = seen.users.iter().flatten().filter(|user| has(user));
        let wanted: BTreeSet<_> = users.map(|user| user.user_id.clone()).collect();
        assert_eq!(self.found(filter).await, wanted, "{}: {filter}", self.change.row);
    }

    /// Those of the users whom a search finds.
    async fn found(&mut self, filter: &str) -> BTreeSet<String> {
        let mut request = v1::SearchUsersRequest {
            filter: filter.to_owned(),
            page_size: 1_000,
            ..Default::default()
        };
        let mut found = BTreeSet::new();
        loop {
            let page = self.client.directory.search_users(request.clone()).await.unwrap();
            let page = page.into_inner();
            let ids = page.users.into_iter().map(|user| user.user_id);
            found.extend(ids.filter(|id| self.ids.contains(id)));
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return found;
            }
        }
    }

    /// The rules of the notices of each user, the oldest first.
    async fn notices(&mut self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for user_id in self.ids.clone() {
            let request = v1::ListNoticesRequest { user_id, ..Default::default() };
            let page = self.client.inbox.list_notices(request).await.unwrap().into_inner();
            let rule = |notice: v1::Notice| match notice.attributes["rule"].kind.clone() {
                Some(Kind::StringValue(rule)) => rule,
                other => panic!("{other:?}"),
            };
            all.push(page.notices.into_iter().rev().map(rule).collect());
        }
        all
    }

    async fn see(&mut self) -> Seen {
        let mut users = Vec::new();
        for id in self.ids.clone() {
            users.push(self.client.get(&id).await.ok().map(without_times));
        }
        let mut identifiers = Vec::new();
        for identifier in self.identifiers() {
            let request = v1::ResolveIdentityRequest {
                identifier: Some(identifier.clone()),
                show_disabled: true,
                ..Default::default()
            };
            let owner = self.client.directory.resolve_identity(request).await.ok();
            let owner = owner.map(|found| found.into_inner().user.unwrap().user_id);
            let request = v1::CheckIdentityRequest {
                identifier: Some(identifier.clone()),
                ..Default::default()
            };
            let check = self.client.directory.check_identity(request).await.unwrap().into_inner();
            identifiers.push((identifier, owner, check.reason));
        }
        Seen { users, identifiers }
    }
}

fn has(user: &v1::User, identifier: &v1::Identifier) -> bool {
    user.identities.iter().any(|identity| identity.identifier.as_ref() == Some(identifier))
}

/// A user without its times and etag, and without the order in which it got its identities.
fn without_times(mut user: v1::User) -> v1::User {
    user.etag = String::new();
    (user.update_time, user.delete_time, user.purge_time) = (None, None, None);
    for identity in &mut user.identities {
        (identity.link_time, identity.import_time) = (None, None);
    }
    user.identities.sort_by_key(|identity| identity.display.clone());
    user
}

/// A time later than all changes so far, and earlier than all further ones.
async fn pause() -> Timestamp {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let time = SystemTime::now().into();
    tokio::time::sleep(Duration::from_millis(5)).await;
    time
}
