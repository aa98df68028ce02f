//! Histories of users, and former owners of identifiers, over gRPC.

use std::time::{Duration, SystemTime};

use polynym_proto::v1;
use polynym_proto::v1::event::Change;
use polynym_proto::v1::list_history_request::User;
use prost_types::Timestamp;
use tonic::{Code, Status};

use super::{Fresh, fresh, fresh_with_clock, user};
use crate::support::calls::{Client, email, handle, merging, text};
use crate::support::scenarios::clocks::skip_quiet_time;
use crate::support::scenarios::histories::{
    changes, create_and_purge, events, of, page, send_notice,
};
use crate::support::status::{StatusDetails, outcome, status_details};

async fn refused(client: &mut Client, request: v1::ListHistoryRequest) -> StatusDetails {
    status_details(page(client, &request).await.unwrap_err())
}

fn whole(value: v1::AttributeValue) -> Option<v1::RecordedValue> {
    let recorded = Some(v1::recorded_value::Recorded::Value(value));
    Some(v1::RecordedValue { recorded })
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A time later than all changes so far, and earlier than all further ones.
async fn pause() -> Timestamp {
    tokio::time::sleep(Duration::from_millis(5)).await;
    let time = now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    time
}

/// A user with a change of each kind that concerns it alone.
async fn changed_in_every_way(client: &mut Client) -> v1::User {
    client.hold_nothing().await;
    let joe = client.create(user("Joe", vec![email("joe@example.com")])).await.unwrap();
    let id = &joe.user_id;
    let mut renamed = v1::User { display_name: "Joseph".to_owned(), ..joe.clone() };
    renamed.attributes.insert("note".to_owned(), text(&"long ".repeat(500)));
    client.update(renamed, &["display_name", "attributes.note"]).await.unwrap();
    client.link(id, handle("joe")).await.unwrap();
    client.verify(id, handle("joe"), true, "a letter").await.unwrap();
    client.replace(id, handle("joe"), handle("joseph")).await.unwrap();
    client.unlink(id, handle("joseph")).await.unwrap();
    client.disable(id).await.unwrap();
    client.enable(id).await.unwrap();
    client.delete(id).await.unwrap();
    client.undelete(id).await.unwrap()
}

#[tokio::test]
async fn each_change_is_an_event() {
    let (_server, mut client) = fresh().await;
    let joe = changed_in_every_way(&mut client).await;
    let mut all = events(&mut client, of(&joe.user_id)).await;
    all.reverse();
    let methods: Vec<_> = all.iter().map(|event| event.method.as_str()).collect();
    assert_eq!(
        methods,
        [
            "CreateUser",
            "UpdateUser",
            "LinkIdentity",
            "VerifyIdentity",
            "ReplaceIdentity",
            "UnlinkIdentity",
            "DisableUser",
            "EnableUser",
            "DeleteUser",
            "UndeleteUser"
        ]
    );
    for (event, sequence) in all.iter().zip(1..) {
        assert_eq!(event.sequence, sequence);
        assert_eq!((&*event.tenant, &event.user_id), ("default", &joe.user_id));
        assert_eq!(event.caller, "anonymous");
        assert_eq!(event.event_id, format!("{}:{sequence}", joe.user_id));
    }

    let [created, updated, linked, verified, replaced, ..] = &all[..] else { panic!() };
    assert!(matches!(created.change, Some(Change::UserCreated(_))));
    assert_eq!(changes(created).identities.len(), 1);
    let fields = &changes(updated).fields;
    assert_eq!(fields.len(), 2, "{fields:?}");
    assert_eq!((&*fields[1].path, &fields[1].before), ("display_name", &whole(text("Joe"))));
    assert_eq!(fields[1].after, whole(text("Joseph")));
    // A long value is there as its size.
    let recorded = fields[0].after.clone().unwrap().recorded.unwrap();
    assert!(
        matches!(recorded, v1::recorded_value::Recorded::Digest(v1::ValueDigest { size_bytes, .. })
        if size_bytes >= 2_500)
    );
    let of_handle = |event: &v1::Event| changes(event).identities[0].clone();
    assert_eq!(of_handle(linked).before, None);
    assert_eq!(of_handle(verified).before, of_handle(linked).after);
    assert_eq!(of_handle(verified).after.unwrap().verified_by, "a letter");
    assert_eq!(changes(replaced).identities.len(), 2);
}

#[tokio::test]
async fn pages_and_conditions_choose_events() {
    let (_server, mut client) = fresh().await;
    let joe = changed_in_every_way(&mut client).await;
    let all = events(&mut client, of(&joe.user_id)).await;
    assert_eq!(all.len(), 10);
    for page_size in [1, 2, 3, 9, 10, 11, 1_000_000] {
        let request = v1::ListHistoryRequest { page_size, ..of(&joe.user_id) };
        assert_eq!(events(&mut client, request).await, all, "{page_size}");
    }
    let owned = Some(User::Identifier(email("JOE@example.com")));
    let by_name = v1::ListHistoryRequest { user: owned, ..Default::default() };
    assert_eq!(events(&mut client, by_name).await, all);
    let types = vec![v1::EventType::IdentityLinked.into(), v1::EventType::UserDeleted.into()];
    let chosen = v1::ListHistoryRequest { types, page_size: 1, ..of(&joe.user_id) };
    let sequences = |events: Vec<v1::Event>| -> Vec<_> {
        events.into_iter().map(|event| event.sequence).collect()
    };
    assert_eq!(sequences(events(&mut client, chosen).await), [9, 3]);
    // From a time on, itself included; up to a time, itself excluded.
    let [from, to] = [&all[7], &all[4]].map(|event| event.time);
    let between = v1::ListHistoryRequest { from, to, ..of(&joe.user_id) };
    let expected = all.iter().filter(|event| {
        let at = event.time.as_ref().map(|time| (time.seconds, time.nanos));
        let [from, to] = [&from, &to].map(|time| time.as_ref().map(|t| (t.seconds, t.nanos)));
        from <= at && at < to
    });
    let expected: Vec<_> = expected.cloned().collect();
    assert!(!expected.is_empty());
    assert_eq!(events(&mut client, between).await, expected);
}

#[tokio::test]
async fn a_merge_is_an_event_of_both_users() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let eve = client.create(user("Eve", vec![handle("eve")])).await.unwrap();
    client.registry.merge_users(merging(&joe.user_id, &eve.user_id)).await.unwrap();
    let [of_joe, of_eve] = [
        events(&mut client, of(&joe.user_id)).await.remove(0),
        events(&mut client, of(&eve.user_id)).await.remove(0),
    ];
    assert_eq!((of_joe.time, &of_joe.method), (of_eve.time, &of_eve.method));
    assert_eq!(changes(&of_joe).other_user_id, eve.user_id);
    assert_eq!(changes(&of_eve).other_user_id, joe.user_id);
    let gained = &changes(&of_joe).identities[0];
    let lost = &changes(&of_eve).identities[0];
    assert_eq!((&gained.before, &lost.after), (&None, &None));
    assert_eq!(gained.after.as_ref().unwrap().identifier, Some(handle("eve")));
}

#[tokio::test]
async fn a_page_token_of_another_store_is_refused() {
    let (_server, mut client) = fresh().await;
    let (_other_server, mut other) = fresh().await;
    let joe = changed_in_every_way(&mut client).await;
    let request = v1::ListHistoryRequest { page_size: 1, ..of(&joe.user_id) };
    let page_token = page(&mut client, &request).await.unwrap().next_page_token;
    let next = v1::ListHistoryRequest { page_token, ..request };
    assert_eq!(page(&mut client, &next).await.unwrap().events.len(), 1);
    let invalid = StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    assert_eq!(refused(&mut other, next).await, invalid.field("page_token"));
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let (_server, mut client) = fresh().await;
    let joe = changed_in_every_way(&mut client).await;
    let eve = client.create(user("Eve", vec![handle("eve")])).await.unwrap();
    let small = v1::ListHistoryRequest { page_size: 1, ..of(&joe.user_id) };
    let token = page(&mut client, &small).await.unwrap().next_page_token;
    let invalid =
        StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID").field("page_token");

    let mut changed = token.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == 'A' { 'B' } else { 'A' });
    for page_token in [changed, "joe".to_owned(), "A".repeat(64 << 10)] {
        let request = v1::ListHistoryRequest { page_token, ..small.clone() };
        assert_eq!(refused(&mut client, request).await, invalid);
    }
    let page_token = token;
    let types = vec![v1::EventType::UserDeleted.into()];
    for request in [of(&eve.user_id), v1::ListHistoryRequest { types, ..small.clone() }] {
        let request = v1::ListHistoryRequest { page_token: page_token.clone(), ..request };
        assert_eq!(refused(&mut client, request).await, invalid);
    }
    // One of another store.
    let (_other, mut other) = fresh().await;
    let same = v1::User { user_id: joe.user_id.clone(), ..user("Joe", vec![handle("joe")]) };
    other.create(same).await.unwrap();
    let request = v1::ListHistoryRequest { page_token, ..small.clone() };
    let elsewhere = refused(&mut other, request).await;
    assert!(elsewhere == invalid || elsewhere.reason == "USER_NOT_FOUND", "{elsewhere:?}");

    let no_time = Some(Timestamp { seconds: i64::MAX, nanos: -1 });
    let field = |name| StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field(name);
    let request = v1::ListHistoryRequest { from: no_time, ..small.clone() };
    assert_eq!(refused(&mut client, request).await, field("from"));
    let request = v1::ListHistoryRequest { types: vec![99], ..small.clone() };
    assert_eq!(refused(&mut client, request).await, field("types"));
    let (from, to) = (Some(now()), Some(Timestamp { seconds: 0, nanos: 0 }));
    let request = v1::ListHistoryRequest { from, to, ..small.clone() };
    assert_eq!(refused(&mut client, request).await, field("to"));
    let request = v1::ListHistoryRequest { page_size: -1, ..small };
    assert_eq!(refused(&mut client, request).await, field("page_size"));
}

async fn owner(client: &mut Client, name: &str, time: Timestamp) -> Result<v1::User, Status> {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(handle(name)),
        as_of: Some(time),
        ..Default::default()
    };
    let found = client.directory.resolve_identity(request).await?.into_inner();
    assert_eq!(found.identity.unwrap().identifier, Some(handle(name)));
    Ok(found.user.unwrap())
}

#[tokio::test]
async fn a_look_up_in_the_past_finds_the_former_owner() {
    let (_server, mut client) = fresh().await;
    client.hold_nothing().await;
    let before = pause().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let with_joe = pause().await;
    client.unlink(&joe.user_id, handle("joe")).await.unwrap();
    let with_nobody = pause().await;
    let eve = client.create(user("Eve", vec![handle("joe"), handle("eve")])).await.unwrap();
    let with_eve = pause().await;

    let not_found = StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND");
    for time in [before, with_nobody] {
        let refused = owner(&mut client, "joe", time).await.unwrap_err();
        assert_eq!(status_details(refused), not_found);
    }
    assert_eq!(owner(&mut client, "joe", with_joe).await.unwrap().user_id, joe.user_id);
    assert_eq!(owner(&mut client, "joe", with_eve).await.unwrap(), eve);
    // The user is in its present state.
    let disabled = client.disable(&joe.user_id).await.unwrap();
    assert_eq!(owner(&mut client, "joe", with_joe).await.unwrap(), disabled);

    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: vec![handle("joe"), handle("eve"), handle("j o e"), handle("@Joe")],
        as_of: Some(with_joe),
        ..Default::default()
    };
    let answer = client.directory.batch_resolve_identities(request).await.unwrap().into_inner();
    let answers: Vec<_> = answer.results.into_iter().map(outcome).collect();
    let reason = |n: usize| answers[n].as_ref().map_err(|(_, reason, _)| reason.as_str());
    assert_eq!([reason(0), reason(3)], [Ok(&"Joe".to_owned()); 2]);
    assert_eq!([reason(1), reason(2)], [Err("IDENTITY_NOT_FOUND"), Err("IDENTIFIER_INVALID")]);

    client.purge(&joe.user_id).await.unwrap();
    let refused = owner(&mut client, "joe", with_joe).await.unwrap_err();
    assert_eq!(status_details(refused), not_found);
}

#[tokio::test]
async fn the_policy_limits_a_history() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let later = Timestamp { seconds: now().seconds + 3_600, nanos: 0 };
    let future = StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("as_of");
    let refused = owner(&mut client, "joe", later).await.unwrap_err();
    assert_eq!(status_details(refused), future);
    let no_time = Timestamp { seconds: 0, nanos: i32::MAX };
    let refused = owner(&mut client, "joe", no_time).await.unwrap_err();
    assert_eq!(status_details(refused), future);

    let long_ago = Timestamp { seconds: 0, nanos: 0 };
    let refused = status_details(owner(&mut client, "joe", long_ago).await.unwrap_err());
    assert_eq!((refused.code, &*refused.reason), (Code::OutOfRange, "HISTORY_EXPIRED"));
    let earliest: Timestamp = refused.metadata["earliest"].parse().unwrap();
    assert_eq!(owner(&mut client, "joe", now()).await.unwrap().user_id, joe.user_id);
    let at_earliest = owner(&mut client, "joe", earliest).await.unwrap_err();
    assert!(
        ["IDENTITY_NOT_FOUND", "HISTORY_EXPIRED"].contains(&&*status_details(at_earliest).reason)
    );

    // Without a history nothing is written down, and nothing can be asked for.
    let none = prost_types::Duration { seconds: 0, nanos: 0 };
    client
        .govern(v1::Policies { history_retention: Some(none), ..Default::default() })
        .await
        .unwrap();
    let eve = client.create(user("Eve", vec![handle("eve")])).await.unwrap();
    assert_eq!(events(&mut client, of(&eve.user_id)).await, []);
    assert_eq!(events(&mut client, of(&joe.user_id)).await, []);
    let past = pause().await;
    let refused = owner(&mut client, "eve", past).await.unwrap_err();
    assert_eq!(status_details(refused).reason, "HISTORY_EXPIRED");
}

#[tokio::test]
async fn a_purge_removes_the_history() {
    let (_server, mut client) = fresh().await;
    let joe = changed_in_every_way(&mut client).await;
    let request = v1::ListHistoryRequest { page_size: 1, ..of(&joe.user_id) };
    let page_token = page(&mut client, &request).await.unwrap().next_page_token;
    client.purge(&joe.user_id).await.unwrap();
    let not_found = StatusDetails::new(Code::NotFound, "USER_NOT_FOUND");
    assert_eq!(refused(&mut client, of(&joe.user_id)).await, not_found);
    let rest = v1::ListHistoryRequest { page_token, ..request };
    assert_eq!(refused(&mut client, rest).await, not_found);
}

/// Each page that is read meanwhile is whole, or the user is not found.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_complete_during_a_purge() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    for n in 0..40 {
        let renamed = v1::User { display_name: format!("Joe {n}"), ..joe.clone() };
        let renamed = v1::User { etag: String::new(), ..renamed };
        client.update(renamed, &["display_name"]).await.unwrap();
    }
    let readers: Vec<_> = (1..5)
        .map(|page_size| {
            let first = v1::ListHistoryRequest { page_size, ..of(&joe.user_id) };
            tokio::spawn(read_until_gone(client.clone(), first))
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.purge(&joe.user_id).await.unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
}

async fn read_until_gone(mut client: Client, first: v1::ListHistoryRequest) {
    let (mut request, mut next) = (first.clone(), 41);
    loop {
        match page(&mut client, &request).await {
            Ok(page) => {
                assert_eq!(page.events.len(), (first.page_size as usize).min(next));
                for event in &page.events {
                    assert_eq!(event.sequence as usize, next);
                    next -= 1;
                }
                request.page_token = page.next_page_token;
                if request.page_token.is_empty() {
                    assert_eq!(next, 0);
                    (request, next) = (first.clone(), 41);
                }
            }
            Err(status) => {
                let gone = StatusDetails::new(Code::NotFound, "USER_NOT_FOUND");
                return assert_eq!(status_details(status), gone);
            }
        }
    }
}

/// A shorter retention is pending until old events are removed.
#[tokio::test]
async fn a_shorter_retention_removes_old_events() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let retention = |seconds| v1::Policies {
        history_retention: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..Default::default()
    };
    let shorter = client.govern(retention(90 * 86_400)).await.unwrap().policies.unwrap();
    assert!(shorter.history_change_time.is_some());
    let since = std::time::Instant::now();
    loop {
        let request = v1::GetTenantRequest::default();
        let tenant = client.admin.get_tenant(request).await.unwrap().into_inner().tenant.unwrap();
        if tenant.policies.unwrap().history_change_time.is_none() {
            break;
        }
        skip_quiet_time(&clock);
        assert!(since.elapsed() < Duration::from_secs(120), "it is not carried out");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(events(&mut client, of(&joe.user_id)).await.len(), 1, "it is younger");
    // A longer retention does not show again the events that a shorter one has hidden.
    client.govern(retention(0)).await.unwrap();
    client.govern(retention(400 * 86_400)).await.unwrap();
    assert_eq!(events(&mut client, of(&joe.user_id)).await, []);
}

/// Events from before a longer retention expire by the former one. Then nobody knows the
/// owner any more.
#[tokio::test]
async fn a_longer_retention_does_not_forget_owners_silently() {
    let (_server, mut client) = fresh().await;
    let retention = |seconds| v1::Policies {
        history_retention: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..Default::default()
    };
    client.govern(retention(1)).await.unwrap();
    let names = vec![handle("joe"), email("joe@example.com")];
    let joe = client.create(user("Joe", names)).await.unwrap();
    let with_joe = pause().await;
    client.unlink(&joe.user_id, handle("joe")).await.unwrap();
    let longer = client.govern(retention(400 * 86_400)).await.unwrap().policies.unwrap();
    assert_eq!(longer.history_former_retention.unwrap().seconds, 1);

    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for n in 0..5 {
        client.create(user("Eve", vec![handle(&format!("eve{n}"))])).await.unwrap();
    }
    let refused = owner(&mut client, "joe", with_joe).await.unwrap_err();
    assert_eq!(status_details(refused).reason, "HISTORY_EXPIRED");
}

#[tokio::test]
async fn a_purge_leaves_no_trace() {
    const NAME: &str = "quetzalcoatl";
    let (Fresh { server, _folder: folder }, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    send_notice(&mut client, &joe.user_id, "Terms").await;
    create_and_purge(&mut client, NAME).await;
    // A copy has the stored data without freed pages.
    let copy = folder.path().join("copy");
    let output = server.run(&["backup", copy.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let bytes = std::fs::read(copy).unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("Joe") && has("Terms") && !has(NAME));
}
