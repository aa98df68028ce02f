//! Imports of lines whose users exist, or were deleted by an undo.

use futures_util::stream;
use polynym_proto::v1;
use tonic::Request;
use v1::import_users_request::Options;
use v1::import_users_response::Progress;
use v1::{ImportUsersRequest as Line, OnConflict, OnExisting};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle, phone, text};
use crate::support::scenarios::histories::{events, of};

/// The result of an import.
struct Imported {
    created: i64,
    restored: i64,
    changed: i64,
    existing: i64,
    /// The reasons of the rejects, by line.
    rejects: Vec<(i64, String)>,
}

impl Imported {
    fn counts(&self) -> (i64, i64, i64, usize) {
        assert_eq!(self.restored, 0);
        (self.created, self.changed, self.existing, self.rejects.len())
    }

    /// The users that were restored. None else is there, and nothing was rejected.
    fn restored_only(&self) -> i64 {
        let others = (self.created, self.changed, self.existing);
        assert_eq!((others, &self.rejects), ((0, 0, 0), &Vec::new()));
        self.restored
    }
}

/// Imports users with these options, as part of an operation unless its id is empty.
async fn import(
    client: &mut Client,
    options: &Options,
    operation_id: &str,
    users: &[v1::User],
) -> Imported {
    let first = Line { options: Some(options.clone()), ..Default::default() };
    let line = |(line, user): (i64, &v1::User)| Line {
        line,
        user: Some(user.clone()),
        ..Default::default()
    };
    let lines: Vec<_> = [first].into_iter().chain((1..).zip(users).map(line)).collect();
    let mut request = Request::new(stream::iter(lines));
    if !operation_id.is_empty() {
        let id = operation_id.parse().unwrap();
        request.metadata_mut().insert("polynym-operation-id", id);
    }
    let mut responses = client.admin.import_users(request).await.unwrap().into_inner();
    let (mut progress, mut rejects) = (Progress::default(), Vec::new());
    while let Some(response) = responses.message().await.unwrap() {
        progress = response.progress.unwrap_or(progress);
        rejects.extend(response.rejects.into_iter().map(|reject| (reject.line, reject.reason)));
    }
    let Progress { created, restored, changed, existing, .. } = progress;
    Imported { created, restored, changed, existing, rejects }
}

/// Undoes an operation. Returns how many users were undone.
async fn undo(client: &mut Client, operation_id: &str) -> i64 {
    let operation_id = operation_id.to_owned();
    let request = v1::UndoOperationRequest { operation_id, ..Default::default() };
    let mut answers = client.admin.undo_operation(request).await.unwrap().into_inner();
    let mut reverted = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        assert!(answer.kept.is_empty(), "{:?}", answer.kept);
        reverted = answer.reverted;
    }
    reverted
}

fn options(on_existing: OnExisting) -> Options {
    Options { on_existing: on_existing.into(), ..Default::default() }
}

/// A user with a team.
fn member(team: &str, identifiers: Vec<v1::Identifier>) -> v1::User {
    let attributes = [("team".to_owned(), text(team))].into();
    v1::User { attributes, ..user("Joe", identifiers) }
}

async fn team(client: &mut Client, identifier: v1::Identifier) -> Option<v1::AttributeValue> {
    let found = client.resolve(identifier).await.unwrap().user.unwrap();
    found.attributes.get("team").cloned()
}

#[tokio::test]
async fn each_import_without_an_operation_takes_effect() {
    let (_server, mut client) = fresh().await;
    let joe = |team| [member(team, vec![handle("joe")])];
    for on_existing in [OnExisting::Update, OnExisting::Replace] {
        let options = options(on_existing);
        for value in ["a", "b", "a", "b"] {
            import(&mut client, &options, "", &joe(value)).await;
            assert_eq!(team(&mut client, handle("joe")).await, Some(text(value)));
        }
        let again = import(&mut client, &options, "", &joe("b")).await;
        assert_eq!(again.counts(), (0, 0, 1, 0));
    }
}

/// A line of an operation is known by its content, wherever it stands in the file.
#[tokio::test]
async fn a_resumed_import_overwrites_no_later_change() {
    let (_server, mut client) = fresh().await;
    let (joe, eve) = (member("a", vec![handle("joe")]), member("a", vec![handle("eve")]));
    let update = options(OnExisting::Update);
    import(&mut client, &update, "operation-1", std::slice::from_ref(&joe)).await;
    import(&mut client, &update, "", &[member("b", vec![handle("joe")])]).await;
    // Another line comes first now.
    let resumed = import(&mut client, &update, "operation-1", &[eve, joe]).await;
    assert_eq!(resumed.counts(), (1, 0, 1, 0));
    assert_eq!(team(&mut client, handle("joe")).await, Some(text("b")));
}

#[tokio::test]
async fn a_line_is_another_one_with_other_options() {
    let (_server, mut client) = fresh().await;
    let full = user("Joe", vec![handle("joe"), email("joe@example.com")]);
    client.create(full).await.unwrap();
    let short = [user("Joe", vec![handle("joe")])];
    let fields = |names: &[&str]| Options {
        fields: names.iter().map(|name| (*name).to_owned()).collect(),
        ..options(OnExisting::Replace)
    };
    let first = import(&mut client, &fields(&["display_name"]), "nightly", &short).await;
    assert_eq!(first.counts(), (0, 0, 1, 0));
    let renamed = [user("Joseph", vec![handle("joe")])];
    let second = import(&mut client, &fields(&["display_name"]), "nightly", &renamed).await;
    assert_eq!(second.counts(), (0, 1, 0, 0));
    let third = import(&mut client, &fields(&["display_name", "email"]), "nightly", &renamed).await;
    assert_eq!(third.counts(), (0, 1, 0, 0));
    assert!(client.resolve(email("joe@example.com")).await.is_err());
    // The same call again changes nothing, even if somebody changed the user since.
    let found = client.resolve(handle("joe")).await.unwrap().user.unwrap();
    client.link(&found.user_id, email("joe@example.com")).await.unwrap();
    let fourth =
        import(&mut client, &fields(&["display_name", "email"]), "nightly", &renamed).await;
    assert_eq!(fourth.counts(), (0, 0, 1, 0));
    assert!(client.resolve(email("joe@example.com")).await.is_ok());
}

#[tokio::test]
async fn a_field_of_which_an_identity_was_skipped_is_kept() {
    let (_server, mut client) = fresh().await;
    client.create(user("Eve", vec![email("eve@example.com")])).await.unwrap();
    let joe = vec![handle("joe"), email("joe@example.com"), phone("+14155552671", "")];
    let joe = client.create(user("Joe", joe)).await.unwrap();
    let replace = |fields: &[&str]| Options {
        on_conflict: OnConflict::SkipIdentity.into(),
        fields: fields.iter().map(|name| (*name).to_owned()).collect(),
        key: "handle".to_owned(),
        ..options(OnExisting::Replace)
    };
    for wrong in ["joe example.com", "eve@example.com"] {
        let line = [user("Joe", vec![handle("joe"), email(wrong)])];
        let kept = import(&mut client, &replace(&["email"]), "", &line).await;
        assert_eq!((kept.counts(), kept.rejects.len()), ((0, 0, 1, 1), 1), "{wrong}");
        assert_eq!(client.get(&joe.user_id).await.unwrap().identities, joe.identities, "{wrong}");
    }
    // Other fields are cleared, and so are others without names.
    let line = [user("Joe", vec![handle("joe"), email("joe example.com")])];
    let cleared = import(&mut client, &replace(&["email", "phone"]), "", &line).await;
    assert_eq!(cleared.counts(), (0, 1, 0, 1));
    assert!(client.resolve(phone("+14155552671", "")).await.is_err());
    assert!(client.resolve(email("joe@example.com")).await.is_ok());
    let cleared = import(&mut client, &replace(&[]), "", &line).await;
    assert_eq!(cleared.counts(), (0, 0, 1, 1));
    let line = [user("Joe", vec![handle("joe")])];
    let cleared = import(&mut client, &replace(&["email"]), "", &line).await;
    assert_eq!(cleared.counts(), (0, 1, 0, 0));
    assert!(client.resolve(email("joe@example.com")).await.is_err());
}

#[tokio::test]
async fn an_import_brings_back_what_its_undo_deleted() {
    let choices = [
        (OnExisting::Reject, "", false),
        (OnExisting::Reject, "", true),
        (OnExisting::Skip, "", false),
        (OnExisting::Update, "handle", false),
        (OnExisting::Replace, "attributes.team", true),
    ];
    for (on_existing, key, skips) in choices {
        let (_server, mut client) = fresh().await;
        let on_conflict = if skips { OnConflict::SkipIdentity } else { OnConflict::Reject };
        let options = Options {
            key: key.to_owned(),
            on_conflict: on_conflict.into(),
            ..options(on_existing)
        };
        for (name, operation_id) in [("joe", "joe"), ("ann", "another")] {
            let line = [member(name, vec![handle(name)])];
            assert_eq!(import(&mut client, &options, name, &line).await.created, 1);
            let first = client.resolve(handle(name)).await.unwrap().user.unwrap();
            assert_eq!(undo(&mut client, name).await, 1);
            assert!(client.resolve(handle(name)).await.is_err(), "{options:?}");
            let dry = Options { validate_only: true, ..options.clone() };
            let dry = import(&mut client, &dry, operation_id, &line).await;
            assert_eq!(dry.restored_only(), 1, "{operation_id} {options:?}");
            let again = import(&mut client, &options, operation_id, &line).await;
            assert_eq!(again.restored_only(), 1, "{operation_id} {options:?}");
            let found = client.resolve(handle(name)).await.unwrap().user.unwrap();
            assert_eq!(found.user_id, first.user_id, "{options:?}");
            assert_eq!(found.state(), v1::State::Active);
            assert_eq!(found.identities, first.identities, "{options:?}");
            assert_eq!(found.create_time, first.create_time);
            let again = import(&mut client, &options, operation_id, &line).await;
            assert_eq!(again.counts(), (0, 0, 1, 0), "{options:?}");
            // The import that restored the user can be undone as well.
            assert_eq!(undo(&mut client, operation_id).await, 1, "{options:?}");
            assert!(client.resolve(handle(name)).await.is_err(), "{options:?}");
            let third = import(&mut client, &options, "third", &line).await;
            assert_eq!(third.restored_only(), 1, "{options:?}");
        }
    }
}

#[tokio::test]
async fn lines_with_ids_and_without_identities_come_back_too() {
    let (_server, mut client) = fresh().await;
    let id = "00000001-0001-b000-0001-000000000000";
    let with_id = v1::User { user_id: id.to_owned(), ..user("Ann", vec![handle("ann")]) };
    let lines = [with_id, user("Nobody", Vec::new())];
    let options = Options::default();
    assert_eq!(import(&mut client, &options, "op-1", &lines).await.created, 2);
    assert_eq!(undo(&mut client, "op-1").await, 2);
    assert_eq!(import(&mut client, &options, "op-2", &lines).await.restored_only(), 2);
    assert_eq!(client.get(id).await.unwrap().state(), v1::State::Active);
    let users = client.admin.export_users(v1::ExportUsersRequest::default()).await.unwrap();
    let (mut users, mut states) = (users.into_inner(), Vec::new());
    while let Some(part) = users.message().await.unwrap() {
        states.extend(part.users.into_iter().map(|user| user.user.unwrap().state()));
        states.extend(part.user.map(|user| user.state()));
    }
    assert_eq!(states, [v1::State::Active; 2]);
}

#[tokio::test]
async fn corrected_lines_take_the_identities_of_users_that_an_undo_deleted() {
    for on_existing in [OnExisting::Reject, OnExisting::Update] {
        let (_server, mut client) = fresh().await;
        let options = options(on_existing);
        let line = |name: &str, number: &str| {
            user(name, vec![email(&format!("{name}@example.com")), phone(number, "")])
        };
        let (one, two, three) = ("+14155552671", "+14155552672", "+14155552673");
        let wrong = [line("ann", two), line("joe", three), line("eve", one)];
        assert_eq!(import(&mut client, &options, "op-1", &wrong).await.created, 3);
        assert_eq!(undo(&mut client, "op-1").await, 3);
        let right = [line("ann", one), line("joe", two), line("eve", three)];
        let imported = import(&mut client, &options, "op-2", &right).await;
        assert_eq!(imported.restored_only(), 3);
        for (name, number) in [("ann", one), ("joe", two), ("eve", three)] {
            let found = client.resolve(phone(number, "")).await.unwrap().user.unwrap();
            let emails: Vec<_> =
                found.identities.iter().map(|identity| identity.display.clone()).collect();
            assert_eq!(emails, [format!("{name}@example.com"), number.to_owned()]);
        }
    }
}

#[tokio::test]
async fn users_who_exist_take_identities_of_users_that_an_undo_deleted() {
    let (_server, mut client) = fresh().await;
    let number = || phone("+14155552671", "");
    let line = |name: &str| [user(name, vec![handle(name), number()])];
    let reject = Options::default();
    let bob = client.create(user("bob", vec![handle("bob")])).await.unwrap();
    assert_eq!(import(&mut client, &reject, "op-1", &line("eve")).await.created, 1);
    assert_eq!(undo(&mut client, "op-1").await, 1);
    let update = options(OnExisting::Update);
    let updated = import(&mut client, &update, "op-2", &line("bob")).await;
    assert_eq!(updated.counts(), (0, 1, 0, 0), "{:?}", updated.rejects);
    assert_eq!(client.get(&bob.user_id).await.unwrap().identities.len(), 2);

    // Users whom somebody else deletes keep their identities.
    client.delete(&bob.user_id).await.unwrap();
    for options in [&reject, &update] {
        let refused = import(&mut client, options, "op-3", &line("eve")).await;
        assert_eq!(refused.rejects, [(1, "IDENTITY_TAKEN".to_owned())]);
    }
    let history = events(&mut client, of(&bob.user_id)).await;
    assert!(history.iter().all(|event| event.operation_id != "op-3"));
}
