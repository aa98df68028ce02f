//! Users that a page names beside what it is about, by their ids: read in one call.

use std::collections::{BTreeMap, BTreeSet};

use polynym_client::Client;
use polynym_proto::v1;
use v1::batch_get_users_response::result::Outcome;

use super::UserView;
use super::text::cut;
use super::user::{attribute, initials};

/// The most users of a page whose names are read.
const MAX_READ: usize = 200;

/// The characters of an id that stand for a name.
const SHORT_ID: usize = 8;

/// The name of a user in changes, and its characters that are shown.
const DISPLAY_NAME: &str = "display_name";
const MAX_NAME: usize = 200;

/// The note about a user who is gone.
const GONE: &str = "no longer there";

/// A user that a page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The id.
    pub id: String,
    /// The name; the beginning of the id if it has none, or is gone.
    pub name: String,
    /// What is unusual about the user, such as `deleted` or `merged into Joe Smith`.
    pub note: String,
}

impl Person {
    /// A user of whom only the id is known.
    pub fn unknown(id: &str) -> Self {
        Self { id: id.to_owned(), name: cut(id, SHORT_ID), note: String::new() }
    }

    /// A user by its name, if that is known.
    pub fn named(id: &str, name: Option<String>) -> Self {
        let unknown = Self::unknown(id);
        Self { name: name.unwrap_or(unknown.name), ..unknown }
    }

    /// The first letters of the first and the last word of the name.
    pub fn initials(&self) -> String {
        initials(&self.name)
    }
}

/// The users of a page, by their ids.
#[derive(Clone, Debug, Default)]
pub struct People(BTreeMap<String, Person>);

impl People {
    /// The people with these ids. Those that cannot be read, or are too many, have their ids alone.
    pub async fn read<'i>(client: &Client, ids: impl IntoIterator<Item = &'i str>) -> Self {
        let outcomes = outcomes(client, ids).await.unwrap_or_default();
        outcomes.into_iter().filter_map(|(id, outcome)| person(id, outcome)).collect()
    }

    /// The display names of those with these ids who are there under their own ids, as the lists of
    /// events have them.
    pub async fn display_names<'i>(
        client: &Client,
        ids: impl IntoIterator<Item = &'i str>,
    ) -> BTreeMap<String, String> {
        let users = Self::users(client, ids).await.unwrap_or_default();
        users.into_iter().map(|user| (user.user_id, user.display_name)).collect()
    }

    /// The users with these ids who are there under their own ids; none if they cannot be read.
    pub async fn users<'i>(
        client: &Client,
        ids: impl IntoIterator<Item = &'i str>,
    ) -> Option<Vec<v1::User>> {
        let own = |(_, outcome)| match outcome {
            Outcome::Found(found) if found.merged_from.is_empty() => found.user,
            _ => None,
        };
        Some(outcomes(client, ids).await?.into_iter().filter_map(own).collect())
    }

    /// The user with this id.
    pub fn person(&self, id: &str) -> Person {
        self.0.get(id).cloned().unwrap_or_else(|| Person::unknown(id))
    }

    /// The user of a line of a dry run, which an earlier line may create.
    pub fn of_line(&self, id: &str) -> Person {
        let person = self.person(id);
        match person.note == GONE {
            true => Person { note: "new".to_owned(), ..person },
            false => person,
        }
    }

    /// The user with this id; none if there is no id.
    pub fn other(&self, id: &str) -> Option<Person> {
        (!id.is_empty()).then(|| self.person(id))
    }
}

impl FromIterator<Person> for People {
    fn from_iter<I: IntoIterator<Item = Person>>(people: I) -> Self {
        Self(people.into_iter().map(|person| (person.id.clone(), person)).collect())
    }
}

/// The changes of a merged user among which its name is looked for.
const MAX_NAME_EVENTS: i32 = 50;

/// The name that a user had when it was merged, as its history knows it; none if it had none, or if
/// its history has no change of the name.
pub async fn merged_name(client: &Client, id: &str) -> Option<String> {
    let request = v1::ListHistoryRequest {
        user: Some(v1::list_history_request::User::UserId(id.to_owned())),
        page_size: MAX_NAME_EVENTS,
        ..Default::default()
    };
    let page = client.directory().list_history(request).await.ok()?;
    let fields = page.events.iter().filter_map(|event| event.change_set());
    let mut names = fields.flat_map(|set| &set.fields).filter(|one| one.path == DISPLAY_NAME);
    let last = names.next()?;
    let recorded = last.after.as_ref().or(last.before.as_ref())?.recorded.as_ref()?;
    let v1::recorded_value::Recorded::Value(value) = recorded else { return None };
    Some(cut(attribute(value), MAX_NAME)).filter(|name| !name.is_empty())
}

/// The answers about the users with these ids; none if they cannot be read.
async fn outcomes<'i>(
    client: &Client,
    ids: impl IntoIterator<Item = &'i str>,
) -> Option<Vec<(String, Outcome)>> {
    let ids: BTreeSet<_> = ids.into_iter().filter(|id| !id.is_empty()).collect();
    let ids: Vec<_> = ids.into_iter().take(MAX_READ).map(str::to_owned).collect();
    if ids.is_empty() {
        return Some(Vec::new());
    }
    let paths = ["user_id", "display_name", "state", "identities", "purge_time"];
    let request = v1::BatchGetUsersRequest {
        user_ids: ids.clone(),
        read_mask: Some(prost_types::FieldMask { paths: paths.map(str::to_owned).into() }),
        ..Default::default()
    };
    let answer = client.directory().batch_get_users(request).await.ok()?;
    let known = ids.into_iter().zip(answer.results);
    Some(known.filter_map(|(id, result)| Some((id, result.outcome?))).collect())
}

/// A person; none if nothing is known of it.
fn person(id: String, outcome: Outcome) -> Option<Person> {
    match outcome {
        Outcome::Found(found) => {
            let user = UserView::of(&found.user?);
            let title = user.title().to_owned();
            Some(match found.merged_from.is_empty() {
                true => Person { id, name: title, note: state_note(user.state).to_owned() },
                false => Person { note: format!("merged into {title}"), ..Person::unknown(&id) },
            })
        }
        Outcome::Error(error) if error.code == tonic::Code::NotFound as i32 => {
            Some(Person { note: GONE.to_owned(), ..Person::unknown(&id) })
        }
        Outcome::Error(_) => None,
    }
}

/// A state that is unusual.
fn state_note(state: &'static str) -> &'static str {
    if state == "active" { "" } else { state }
}
