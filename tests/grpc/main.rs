//! The gRPC API, through the generated client against the program on a socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod accounts;
mod attribute_definitions;
mod bulk;
mod changes;
mod delivering;
mod dry_runs;
mod duplicates;
mod exports;
mod find;
mod history;
mod imports;
mod inbox;
mod large_answers;
mod lifecycle;
mod merge;
mod owners;
mod pasted;
mod purposes;
mod reimports;
mod repeated_requests;
mod search;
mod takeovers;
mod tenant_deletion;
mod tenant_history;
mod tenants;
mod undo;
mod usage;
mod watch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use polynym_directory::Clock;
use polynym_proto::v1;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tonic::{Code, Request};

use support::calls::{Client, email, handle, phone, social, url, user};
use support::scenarios::clocks::Scene;
use support::server::Server;
use support::status::{StatusDetails, status_details};
use testkit::{self as support, server};

const JOE: &str = "joe.smith@example.com";

/// A server with an empty store, and the folder of the store.
struct Fresh {
    server: Server,
    _folder: TempDir,
}

async fn fresh_with(arguments: &[&str]) -> (Fresh, Client) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[&["--store", &store_in(&folder)], arguments].concat());
    let client = Client::connect(&server.url).await;
    (Fresh { server, _folder: folder }, client)
}

/// A server with an empty store in this process, its clock, and the folder of the store.
async fn fresh_with_clock() -> (TempDir, Clock, Client) {
    let folder = tempfile::tempdir().unwrap();
    let Scene { clock, client, .. } = Scene::embedded(&folder.path().join("store")).await;
    (folder, clock, client)
}

async fn fresh() -> (Fresh, Client) {
    fresh_with(&[]).await
}

fn store_in(folder: &TempDir) -> String {
    format!("embedded:{}", folder.path().join("store").display())
}

#[tokio::test]
async fn every_kind_of_identifier_resolves_to_its_user() {
    let (_server, mut client) = fresh().await;
    let kinds = vec![
        email("Joe.Smith@Example.com"),
        handle("@Joe_99"),
        phone("(415) 555-2671", "US"),
        social("GitHub", "583231"),
        url("https://www.LinkedIn.com/in/joe.e.smith/?trk=x"),
    ];
    let created = client.create(user("Joe Smith", kinds)).await.unwrap();
    let spellings = [
        (email("JOE.SMITH@EXAMPLE.COM"), email(JOE)),
        (handle("joe_99"), handle("joe_99")),
        (phone("+1 415 555 2671", ""), phone("+14155552671", "")),
        (social("github", "583231"), social("github", "583231")),
        (
            url("http://www.linkedin.com/in/joe.e.smith"),
            url("https://www.linkedin.com/in/joe.e.smith"),
        ),
    ];

    for (spelling, canonical) in spellings {
        let found = client.resolve(spelling).await.unwrap();
        assert_eq!(found.user.as_ref(), Some(&created));
        assert_eq!(found.identity.unwrap().identifier, Some(canonical));
    }
}

#[tokio::test]
async fn answers_carry_the_given_fields_and_those_of_the_server() {
    let (_server, mut client) = fresh().await;
    let mut new_user = user("Zoë", vec![email("Zoe@Example.com"), email("zoe@work.example")]);
    let time = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5_000_000 };
    new_user.identities[1].verify_time = Some(time);
    new_user.identities[1].verified_by = "a letter".to_owned();
    new_user.identities[1].primary = true;
    let kind = Some(v1::attribute_value::Kind::IntValue(-7));
    new_user.attributes = BTreeMap::from([("level".to_owned(), v1::AttributeValue { kind })]);
    let created = client.create(new_user.clone()).await.unwrap();
    assert_eq!(created.user_id.len(), 36);
    assert_eq!(created.tenant, "default");
    assert_eq!(created.state(), v1::State::Active);
    assert_eq!(created.attributes, new_user.attributes);
    assert!(created.create_time.is_some() && created.create_time == created.update_time);

    let [first, second] = &created.identities[..] else { panic!("two identities") };
    assert_eq!((first.display.as_str(), first.primary), ("Zoe@Example.com", false));
    assert_eq!(
        (second.verify_time, second.verified_by.as_str(), second.primary),
        (Some(time), "a letter", true)
    );
    assert_eq!(client.get(&created.user_id).await.unwrap(), created);
}

#[tokio::test]
async fn a_resolve_reports_its_reads() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![email(JOE)])).await.unwrap();
    let request = v1::ResolveIdentityRequest { identifier: Some(email(JOE)), ..Default::default() };
    let response = client.directory.resolve_identity(request).await.unwrap();
    assert_eq!(response.metadata().get("polynym-reads").unwrap(), "2");
}

#[tokio::test]
async fn a_batch_answers_in_order_with_a_status_for_each_item() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![email(JOE), handle("joe")])).await.unwrap();
    let identifiers = vec![
        handle("joe"),
        email("nobody@example.com"),
        email("not an email"),
        v1::Identifier::default(),
        email(JOE),
    ];
    let request = v1::BatchResolveIdentitiesRequest { identifiers, ..Default::default() };
    let results =
        client.directory.batch_resolve_identities(request).await.unwrap().into_inner().results;
    let outcomes: Vec<_> = results.into_iter().map(support::status::outcome).collect();
    assert_eq!(outcomes[0], Ok("Joe".to_owned()));
    assert_eq!(outcomes[1], Err((Code::NotFound, "IDENTITY_NOT_FOUND".to_owned(), vec![])));

    let invalid = |n: usize| {
        (Code::InvalidArgument, "IDENTIFIER_INVALID".to_owned(), vec![format!("identifiers[{n}]")])
    };
    assert_eq!(outcomes[2], Err(invalid(2)));
    assert_eq!(outcomes[3], Err(invalid(3)));
    assert_eq!(outcomes[4], Ok("Joe".to_owned()));
}

#[tokio::test]
async fn a_batch_answer_stops_at_4_mib() {
    let (_server, mut client) = fresh().await;
    let mut large = user("Large", vec![handle("large")]);
    for n in 0..12 {
        let kind = Some(v1::attribute_value::Kind::StringValue("x".repeat(4_096)));
        large.attributes.insert(format!("text{n}"), v1::AttributeValue { kind });
    }

    client.create(large).await.unwrap();
    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: vec![handle("large"); 200],
        ..Default::default()
    };
    let results =
        client.directory.batch_resolve_identities(request).await.unwrap().into_inner().results;
    let outcomes: Vec<_> = results.into_iter().map(support::status::outcome).collect();
    let left = Err((Code::ResourceExhausted, "ANSWER_TOO_LARGE".to_owned(), vec![]));
    let found = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
    assert!((80..=90).contains(&found), "{found} users of 49 KiB fit into 4 MiB");
    assert!(outcomes[found..].iter().all(|outcome| *outcome == left));
}

/// Returns `count` attributes with a text of 4 KiB each.
fn texts(prefix: &str, count: usize) -> BTreeMap<String, v1::AttributeValue> {
    let text = || v1::AttributeValue {
        kind: Some(v1::attribute_value::Kind::StringValue("x".repeat(4_096))),
    };
    (0..count).map(|n| (format!("{prefix}{n}"), text())).collect()
}

/// Adds about 49 KiB of attributes to a user.
async fn grow(
    client: &mut Client,
    user: v1::User,
    prefix: &str,
) -> Result<v1::User, tonic::Status> {
    let attributes = texts(prefix, 12);
    let paths: Vec<_> = attributes.keys().map(|name| format!("attributes.{name}")).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    client.update(v1::User { attributes, ..user }, &paths).await
}

#[tokio::test]
async fn a_user_stays_within_its_size_limit() {
    let (_server, mut client) = fresh_with(&["--max-user-size", "64KiB"]).await;
    let empty = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let full = grow(&mut client, empty, "a").await.unwrap();
    let refused = status_details(grow(&mut client, full.clone(), "b").await.unwrap_err());
    assert_eq!(
        (refused.code, refused.reason.as_str()),
        (Code::ResourceExhausted, "LIMIT_EXCEEDED")
    );
    assert_eq!(refused.metadata["limit"], "65536");
    assert!(refused.metadata["value"].parse::<usize>().unwrap() > 98_000, "{refused:?}");
    assert_eq!(client.get(&full.user_id).await.unwrap(), full);
}

#[tokio::test]
async fn a_batch_of_one_large_user_takes_little_memory() {
    let (server, mut client) = fresh().await;
    let mut large = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    for part in 0..9 {
        large = grow(&mut client, large, &format!("part{part}_")).await.unwrap();
    }

    let before = server.server.memory();
    let request =
        v1::BatchGetUsersRequest { user_ids: vec![large.user_id; 1_000], ..Default::default() };
    let results = client.directory.batch_get_users(request).await.unwrap().into_inner().results;
    let more = server.server.memory().saturating_sub(before) >> 20;
    let outcomes: Vec<_> = results.into_iter().map(support::status::got).collect();
    let left = Err((Code::ResourceExhausted, "ANSWER_TOO_LARGE".to_owned(), vec![]));
    assert!(
        outcomes[..8].iter().all(Result::is_ok)
            && outcomes[8..].iter().skip(1).all(|outcome| *outcome == left)
    );
    assert!(more < 100, "{more} MiB for one answer");
}

#[tokio::test]
async fn users_are_read_by_id_in_batches() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![email(JOE)])).await.unwrap();
    let unknown = "20be0ffc-314a-bd53-7a50-013a65ca76d2".to_owned();
    let user_ids = vec![unknown, "no id".to_owned(), joe.user_id.to_uppercase()];
    let request = v1::BatchGetUsersRequest { user_ids, ..Default::default() };
    let results = client.directory.batch_get_users(request).await.unwrap().into_inner().results;
    let outcomes: Vec<_> = results.into_iter().map(support::status::got).collect();
    assert_eq!(outcomes[0], Err((Code::NotFound, "USER_NOT_FOUND".to_owned(), vec![])));
    assert_eq!(
        outcomes[1],
        Err((Code::InvalidArgument, "USER_ID_INVALID".to_owned(), vec!["user_ids[1]".to_owned()]))
    );
    assert_eq!(outcomes[2], Ok("Joe".to_owned()));
}

#[tokio::test]
async fn normalize_lists_the_change_of_each_rule() {
    let (_server, mut client) = fresh().await;
    let request = v1::NormalizeIdentityRequest {
        tenant: "acme".into(),
        identifier: Some(email("Joe@Exämple.COM")),
    };
    let answer = client.directory.normalize_identity(request).await.unwrap().into_inner();
    assert_eq!(answer.identifier, Some(email("joe@xn--exmple-cua.com")));
    assert_eq!(answer.key, "acme,email,joe@xn--exmple-cua.com");
    assert_eq!(answer.rules_version, polynym_identifier::RULES_VERSION);

    let changes: Vec<_> =
        answer.changes.iter().map(|c| (c.before.as_str(), c.after.as_str())).collect();
    assert_eq!(changes, [("Joe", "joe"), ("Exämple.COM", "xn--exmple-cua.com")]);
    assert!(answer.changes.iter().all(|change| !change.rule.is_empty()));
}

#[tokio::test]
async fn check_reports_whether_an_identifier_is_free() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let check = |identifier| v1::CheckIdentityRequest {
        identifier: Some(identifier),
        ..Default::default()
    };
    let taken = client.directory.check_identity(check(handle("JOE"))).await.unwrap().into_inner();
    assert_eq!(
        (taken.available, taken.reason.as_str(), taken.identifier),
        (false, "IDENTITY_TAKEN", Some(handle("joe")))
    );

    let free = client.directory.check_identity(check(handle("jo"))).await.unwrap().into_inner();
    assert_eq!((free.available, free.reason.as_str()), (true, ""));
}

#[tokio::test]
async fn identities_are_linked_unlinked_replaced_and_verified() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let ann = client.create(user("Ann", vec![handle("ann")])).await.unwrap();

    let linked = client.link(&joe.user_id, email(JOE)).await.unwrap();
    assert_eq!(linked.identities.len(), 2);
    assert_ne!(linked.etag, joe.etag);
    assert_eq!(client.link(&joe.user_id, email("JOE.smith@example.com")).await.unwrap(), linked);

    let taken = status_details(client.link(&ann.user_id, email(JOE)).await.unwrap_err());
    assert_eq!(
        taken,
        StatusDetails::new(Code::AlreadyExists, "IDENTITY_TAKEN")
            .field("identifier")
            .with("owner", &joe.user_id)
    );

    let renamed = client.replace(&joe.user_id, handle("joe"), handle("joseph")).await.unwrap();
    assert_eq!(renamed.identities[0].identifier, Some(handle("joseph")));
    assert!(renamed.identities[0].primary);
    assert_eq!(
        status_details(client.resolve(handle("joe")).await.unwrap_err()),
        StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND")
    );

    let taken = status_details(
        client.replace(&joe.user_id, handle("joseph"), handle("ann")).await.unwrap_err(),
    );
    assert_eq!(
        taken,
        StatusDetails::new(Code::AlreadyExists, "IDENTITY_TAKEN")
            .field("new_identifier")
            .with("owner", &ann.user_id)
    );
    assert_eq!(client.resolve(handle("joseph")).await.unwrap().user.unwrap(), renamed);

    let verified = client.verify(&joe.user_id, email(JOE), true, "a link in a mail").await.unwrap();
    assert_eq!(verified.identities[1].verified_by, "a link in a mail");
    assert!(verified.identities[1].verify_time.is_some());
    let cleared = client.verify(&joe.user_id, email(JOE), false, "").await.unwrap();
    assert_eq!(cleared.identities[1].verify_time, None);

    let left = client.unlink(&joe.user_id, email(JOE)).await.unwrap();
    assert_eq!(left.identities.len(), 1);
    let missing = status_details(client.unlink(&joe.user_id, email(JOE)).await.unwrap_err());
    assert_eq!(missing, StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND"));

    client.link(&ann.user_id, email(JOE)).await.unwrap();
}

#[tokio::test]
async fn updates_respect_mask_and_etag() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let text = |text: &str| v1::AttributeValue {
        kind: Some(v1::attribute_value::Kind::StringValue(text.into())),
    };
    let mut wanted = joe.clone();
    wanted.display_name = "Joseph".into();
    wanted.attributes =
        BTreeMap::from([("plan".to_owned(), text("gold")), ("note".to_owned(), text("x"))]);
    let named = client.update(wanted.clone(), &["display_name"]).await.unwrap();
    assert_eq!((named.display_name.as_str(), named.attributes.len()), ("Joseph", 0));

    let stale = status_details(client.update(wanted.clone(), &["attributes"]).await.unwrap_err());
    assert_eq!(stale, StatusDetails::new(Code::Aborted, "ETAG_MISMATCH"));
    wanted.etag = named.etag;
    let planned = client.update(wanted.clone(), &["attributes.plan"]).await.unwrap();
    assert_eq!(planned.attributes, BTreeMap::from([("plan".to_owned(), text("gold"))]));

    wanted.etag = String::new();
    wanted.attributes.clear();
    assert!(
        client.update(wanted.clone(), &["attributes.plan"]).await.unwrap().attributes.is_empty()
    );

    let mask = status_details(client.update(wanted, &["identities"]).await.unwrap_err());
    assert_eq!(
        mask,
        StatusDetails::new(Code::InvalidArgument, "UPDATE_MASK_INVALID").field("update_mask")
    );
}

#[tokio::test]
async fn a_request_id_makes_a_retry_safe_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(&folder);
    let request_id = "20be0ffc-314a-4d53-8a50-013a65ca76d2";
    let create = |name: &str, id: &str| v1::CreateUserRequest {
        user: Some(user(name, vec![handle("joe")])),
        request_id: id.to_owned(),
        ..Default::default()
    };
    let server = Server::start(&["--store", &store]);
    let mut client = Client::connect(&server.url).await;
    let first = client
        .registry
        .create_user(create("Joe", request_id))
        .await
        .unwrap()
        .into_inner()
        .user
        .unwrap();
    let changed = client.link(&first.user_id, email(JOE)).await.unwrap();
    drop(server);

    let server = Server::start(&["--store", &store]);
    let mut client = Client::connect(&server.url).await;
    let again = client
        .registry
        .create_user(create("Joe", request_id))
        .await
        .unwrap()
        .into_inner()
        .user
        .unwrap();
    assert_eq!(again, changed, "the same user, in its present state");

    let other =
        status_details(client.registry.create_user(create("Ann", request_id)).await.unwrap_err());
    assert_eq!(
        other,
        StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED").field("request_id")
    );
    for id in ["7", "00000000-0000-0000-0000-000000000000"] {
        let bad = status_details(client.registry.create_user(create("Joe", id)).await.unwrap_err());
        assert_eq!(
            bad,
            StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_INVALID").field("request_id")
        );
    }
}

#[tokio::test]
async fn a_retry_may_differ_in_spelling_only() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let link = |tenant: &str, user_id: &str, identifier, verified| v1::LinkIdentityRequest {
        tenant: tenant.to_owned(),
        user_id: user_id.to_owned(),
        identifier: Some(identifier),
        verified,
        request_id: "20be0ffc-314a-4d53-8a50-013a65ca76d2".to_owned(),
        ..Default::default()
    };
    client.registry.link_identity(link("", &joe.user_id, email(JOE), true)).await.unwrap();
    let again = link("default", &joe.user_id.to_uppercase(), email(JOE), true);
    assert_eq!(
        client
            .registry
            .link_identity(again)
            .await
            .unwrap()
            .into_inner()
            .user
            .unwrap()
            .identities
            .len(),
        2
    );

    let others = [
        link("", &joe.user_id, email("ann@example.com"), true),
        link("", &joe.user_id, email(JOE), false),
    ];
    for other in others {
        let status = status_details(client.registry.link_identity(other).await.unwrap_err());
        assert_eq!(
            status,
            StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED").field("request_id")
        );
    }
}

#[tokio::test]
async fn displayed_text_has_no_control_characters() {
    let (_server, mut client) = fresh().await;
    let typed = "https://example.com/\u{1b}[2Jab\u{7}\u{202e}c";
    let joe = client.create(user("Zoë 👩\u{200d}🚀", vec![url(typed)])).await.unwrap();
    assert_eq!(joe.identities[0].display, "https://example.com/[2Jabc");

    for name in
        [" ", "\u{3000}\u{200b}", "a\u{202e}b", "a\u{1b}b", "\u{301}a", "\u{e000}", "a\u{2028}b"]
    {
        let status = status_details(client.create(user(name, vec![])).await.unwrap_err());
        assert_eq!(
            status,
            StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("user.display_name"),
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn malformed_requests_name_the_field() {
    let (_server, mut client) = fresh().await;
    let twice = vec![handle("joe"), handle("@JOE")];
    let mut cases = vec![
        (user("x", twice), "IDENTIFIER_DUPLICATE", "user.identities[1].identifier"),
        (
            user("x", vec![handle("joe"), email("joe")]),
            "IDENTIFIER_INVALID",
            "user.identities[1].identifier",
        ),
        (
            user("x", vec![v1::Identifier::default()]),
            "IDENTIFIER_INVALID",
            "user.identities[0].identifier",
        ),
        (user(&"x".repeat(257), vec![]), "FIELD_INVALID", "user.display_name"),
        (user("a\u{7}b", vec![]), "FIELD_INVALID", "user.display_name"),
    ];
    let mut primaries = user("x", vec![handle("a"), handle("b")]);
    primaries.identities.iter_mut().for_each(|identity| identity.primary = true);
    cases.push((primaries, "FIELD_INVALID", "user.identities[1].primary"));
    let mut verified = user("x", vec![handle("a")]);
    verified.identities[0].verify_time =
        Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 });
    cases.push((verified, "FIELD_INVALID", "user.identities[0].verify_time"));
    let mut unnamed = user("x", vec![]);
    unnamed.attributes.insert("plan".into(), v1::AttributeValue { kind: None });
    cases.push((unnamed, "ATTRIBUTE_INVALID", "user.attributes (name 0 in order)"));

    for (new_user, reason, field) in cases {
        let status = status_details(client.create(new_user).await.unwrap_err());
        assert_eq!(status, StatusDetails::new(Code::InvalidArgument, reason).field(field));
    }

    let tenant = v1::GetUserRequest { tenant: "No Tenant".into(), ..Default::default() };
    let tenant_status = status_details(client.directory.get_user(tenant).await.unwrap_err());
    assert_eq!(
        tenant_status,
        StatusDetails::new(Code::InvalidArgument, "TENANT_INVALID").field("tenant")
    );
    let strange = v1::ResolveIdentityRequest {
        identifier: Some(handle("a")),
        consistency: 9,
        ..Default::default()
    };
    let consistency_status =
        status_details(client.directory.resolve_identity(strange).await.unwrap_err());
    assert_eq!(
        consistency_status,
        StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("consistency")
    );
}

#[tokio::test]
async fn limit_errors_carry_limit_and_value() {
    let limits = ["--max-batch", "3", "--max-identities", "2", "--max-attributes", "1"];
    let (_server, mut client) = fresh_with(&limits).await;
    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: vec![handle("a"); 4],
        ..Default::default()
    };
    let batch =
        status_details(client.directory.batch_resolve_identities(request).await.unwrap_err());
    assert_eq!(
        batch,
        StatusDetails::new(Code::InvalidArgument, "BATCH_TOO_LARGE")
            .with("limit", "3")
            .with("value", "4")
    );

    let joe = client.create(user("Joe", vec![handle("a"), handle("b")])).await.unwrap();
    let third = status_details(client.link(&joe.user_id, handle("c")).await.unwrap_err());
    let too_many = StatusDetails::new(Code::ResourceExhausted, "LIMIT_EXCEEDED")
        .with("limit", "2")
        .with("value", "3");
    assert_eq!(third, too_many);
    assert_eq!(client.get(&joe.user_id).await.unwrap(), joe);
}

#[tokio::test]
async fn messages_over_the_limit_are_refused() {
    let (_server, mut client) = fresh().await;
    let large =
        status_details(client.create(user(&"x".repeat(70 << 10), vec![])).await.unwrap_err());
    assert_eq!((large.code, large.reason.as_str()), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
    assert_eq!(large.metadata["limit"], "65536");
    let huge = status_details(client.resolve(handle(&"x".repeat(2 << 20))).await.unwrap_err());
    assert_eq!((huge.code, huge.reason.as_str()), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
}

#[tokio::test]
async fn tenants_are_isolated() {
    let (_server, mut client) = fresh_with(&["--tenants", "open"]).await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let elsewhere = v1::CreateUserRequest {
        tenant: "acme".into(),
        user: Some(user("Joe II", vec![handle("joe")])),
        ..Default::default()
    };
    client.registry.create_user(Request::new(elsewhere)).await.unwrap();
    let get = v1::GetUserRequest { tenant: "acme".into(), user_id: joe.user_id, read_mask: None };
    assert_eq!(
        status_details(client.directory.get_user(get).await.unwrap_err()),
        StatusDetails::new(Code::NotFound, "USER_NOT_FOUND")
    );
    assert_eq!(client.resolve(handle("joe")).await.unwrap().user.unwrap().display_name, "Joe");
}

/// The handles are the most expensive ones: they are checked character by character.
#[tokio::test(flavor = "multi_thread")]
async fn health_checks_are_answered_during_expensive_batches() {
    /// No batch occupies a thread until it has finished: a round with fewer checks is a chance of
    /// a busy machine.
    const CHECKS: usize = 3;
    let (server, client) = fresh().await;
    let costly = "・".repeat(64) + "ア";
    let identifiers = vec![handle(&costly); 500];
    let channel = tonic::transport::Channel::from_shared(server.server.url.clone())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    let start = Instant::now();
    let mut checks = 0;

    while checks < CHECKS {
        assert!(start.elapsed() < Duration::from_secs(120), "{checks} checks during all batches");
        let batches: Vec<_> = (0..3)
            .map(|_| {
                let mut client = client.clone();
                let request = v1::BatchResolveIdentitiesRequest {
                    identifiers: identifiers.clone(),
                    ..Default::default()
                };
                tokio::spawn(async move {
                    client.directory.batch_resolve_identities(request).await.unwrap()
                })
            })
            .collect();
        checks = 0;
        loop {
            health.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap();
            if batches.iter().any(JoinHandle::is_finished) {
                break;
            }
            checks += 1;
        }
        for batch in batches {
            batch.await.unwrap();
        }
    }
}
