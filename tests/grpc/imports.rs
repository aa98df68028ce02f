//! Imports of records that no call would have written, and of messages that are no lines.

use std::collections::BTreeMap;

use futures_util::stream;
use polynym_proto::v1;
use prost_types::Timestamp;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use v1::ImportUsersRequest as Line;
use v1::import_users_request::Options;
use v1::user_internals::hold::Held;
use v1::user_internals::merge_undo::{AttributeChange, TextChange};
use v1::user_internals::{Hold, MergeUndo, NotRestored};

use super::{fresh, fresh_with, user};
use crate::support::calls::{Client, email, handle, identity, phone, social, text, url};
use crate::support::status::{StatusDetails, status_details};

const USER: &str = "00000001-0001-b000-0001-000000000000";
const PRIMARY: &str = "00000002-0001-b000-0001-000000000000";

/// Imports lines. Returns the numbers of those that were rejected, with the reasons.
async fn import(client: &mut Client, lines: Vec<Line>) -> Result<Vec<(i64, String)>, Status> {
    let first = Line { options: Some(Options::default()), ..Default::default() };
    let lines = (1..).zip(lines).map(|(line, content)| Line { line, ..content });
    let requests: Vec<_> = [first].into_iter().chain(lines).collect();
    let mut responses = client.admin.import_users(stream::iter(requests)).await?.into_inner();
    let mut rejects = Vec::new();
    while let Some(response) = responses.message().await? {
        let rejected = response.rejects.into_iter().filter(|reject| !reject.skipped);
        rejects.extend(rejected.map(|reject| (reject.line, reject.reason)));
    }
    Ok(rejects)
}

/// Asserts that each line is rejected for this reason.
async fn all_rejected(client: &mut Client, reason: &str, lines: Vec<Line>) {
    let count = lines.len() as i64;
    let rejects = import(client, lines).await.unwrap();
    let expected: Vec<_> = (1..=count).map(|line| (line, reason.to_owned())).collect();
    assert_eq!(rejects, expected);
}

fn line(user: v1::User, internals: v1::UserInternals) -> Line {
    Line { user: Some(user), internals: Some(internals), ..Default::default() }
}

const fn far_away() -> Option<Timestamp> {
    Some(Timestamp { seconds: 253_402_300_799, nanos: 0 })
}

fn in_a_day() -> Option<Timestamp> {
    let seconds = polynym_directory::Timestamp::now().as_millis() / 1_000 + 86_400;
    Some(Timestamp { seconds, nanos: 0 })
}

fn hold(identifier: v1::Identifier, end_time: Option<Timestamp>) -> Hold {
    Hold { held: Some(Held::Identifier(identifier)), end_time, rules_version: 0 }
}

/// A line of a merged user with undo data.
fn undoable(undo: MergeUndo) -> Line {
    let before = v1::User { user_id: USER.to_owned(), ..Default::default() };
    let undo = MergeUndo {
        user: undo.user.map(|user| v1::User { user_id: USER.to_owned(), ..user }).or(Some(before)),
        end_time: undo.end_time.or_else(in_a_day),
        ..undo
    };
    let merged = v1::User {
        user_id: USER.to_owned(),
        state: v1::State::Merged.into(),
        merged_into: PRIMARY.to_owned(),
        ..Default::default()
    };
    line(merged, v1::UserInternals { undo: Some(Box::new(undo)), ..Default::default() })
}

fn number(value: f64) -> v1::AttributeValue {
    v1::AttributeValue { kind: Some(v1::attribute_value::Kind::DoubleValue(value)) }
}

fn changed(before: Option<v1::AttributeValue>, after: v1::AttributeValue) -> MergeUndo {
    let change = AttributeChange { before, after: Some(after) };
    MergeUndo { attributes: BTreeMap::from([("team".to_owned(), change)]), ..Default::default() }
}

fn renamed(before: &str, after: &str) -> MergeUndo {
    let (before, after) = (before.to_owned(), after.to_owned());
    MergeUndo { display_name: Some(TextChange { before, after }), ..Default::default() }
}

#[tokio::test]
async fn undo_data_is_held_to_the_limits_of_calls() {
    let (_server, mut client) = fresh_with(&["--max-merged", "3"]).await;
    let long = "x".repeat(300 << 10);
    let named = |name: &str| v1::User { display_name: name.to_owned(), ..Default::default() };
    let with = |user: v1::User| undoable(MergeUndo { user: Some(user), ..Default::default() });
    let many = (0..101).map(|n| identity(email(&format!("u{n}@example.com")))).collect();
    let fields = vec![
        undoable(renamed(&long, "")),
        undoable(renamed("", "\u{1b}[2J")),
        with(named(&long)),
        undoable(MergeUndo { end_time: far_away(), ..Default::default() }),
    ];
    all_rejected(&mut client, "FIELD_INVALID", fields).await;
    let attributes = vec![
        undoable(changed(Some(number(f64::NAN)), text("a"))),
        undoable(changed(None, number(f64::INFINITY))),
        undoable(changed(Some(text(&long[..100 << 10])), text("a"))),
        undoable(changed(None, text("\u{1b}[2J"))),
        with(v1::User {
            attributes: BTreeMap::from([("team".to_owned(), text(&long))]),
            ..Default::default()
        }),
    ];
    all_rejected(&mut client, "ATTRIBUTE_INVALID", attributes).await;
    let values = (0..150).map(|n| (format!("a{n}"), text(&long[..4_096]))).collect();
    let limits = vec![
        with(v1::User { identities: many, ..Default::default() }),
        with(v1::User { attributes: values, ..Default::default() }),
        undoable(MergeUndo {
            unmarked: (0..6).map(|n| email(&format!("u{n}@example.com"))).collect(),
            ..Default::default()
        }),
    ];
    all_rejected(&mut client, "LIMIT_EXCEEDED", limits).await;

    let ids =
        |count: u32| (10..10 + count).map(|n| USER.replacen("00000001", &format!("{n:08}"), 1));
    let nested = v1::UserInternals { merged_user_ids: ids(4).collect(), ..Default::default() };
    let listing = line(named("Joe"), nested.clone());
    let nested = MergeUndo { internals: Some(Box::new(nested)), ..Default::default() };
    all_rejected(&mut client, "LIMIT_EXCEEDED", vec![listing, undoable(nested)]).await;
    assert!(client.get(USER).await.is_err());
}

#[tokio::test]
async fn internals_are_held_to_the_limits_of_calls() {
    let (_server, mut client) = fresh().await;
    let internals = |internals| line(user("Joe", vec![handle("joe")]), internals);
    let far =
        v1::UserInternals { holds: vec![hold(handle("h"), far_away())], ..Default::default() };
    let guarding =
        v1::UserInternals { guarded_handles: vec!["ѕсоре".to_owned()], ..Default::default() };
    let undo = undoable(MergeUndo::default()).internals.unwrap();
    let deleted = v1::User {
        state: v1::State::Deleted.into(),
        purge_time: far_away(),
        ..user("Joe", Vec::new())
    };
    let lines = vec![
        internals(far.clone()),
        internals(guarding),
        line(deleted, v1::UserInternals::default()),
    ];
    all_rejected(&mut client, "FIELD_INVALID", lines).await;
    let active = v1::User { user_id: USER.to_owned(), ..Default::default() };
    all_rejected(&mut client, "USER_ID_INVALID", vec![line(active, undo)]).await;

    let lost = ["a".repeat(300), "\u{1b}".to_owned()].map(|name| {
        let field = format!("primary.attributes.{name}");
        let not_restored = vec![NotRestored { field, identifier: None }];
        internals(v1::UserInternals { not_restored, ..Default::default() })
    });
    all_rejected(&mut client, "ATTRIBUTE_INVALID", lost.into()).await;
    let holds = (0..101).map(|n| hold(handle(&format!("h{n}")), in_a_day())).collect();
    let many = v1::UserInternals { holds, ..Default::default() };
    all_rejected(&mut client, "LIMIT_EXCEEDED", vec![internals(many)]).await;
    assert!(client.resolve(handle("joe")).await.is_err());

    let ownerless =
        v1::OwnerlessHold { tenant: String::new(), hold: Some(hold(handle("eve"), far_away())) };
    let far = Line { ownerless_hold: Some(ownerless), ..Default::default() };
    all_rejected(&mut client, "FIELD_INVALID", vec![far]).await;
}

#[tokio::test]
async fn a_display_form_spells_its_identifier() {
    let (_server, mut client) = fresh().await;
    let shown = |identifier, display: &str| {
        let identity = v1::Identity { display: display.to_owned(), ..identity(identifier) };
        let user = Some(v1::User { identities: vec![identity], ..Default::default() });
        Line { user, ..Default::default() }
    };
    let lines = vec![
        shown(email("joe@example.com"), "eve@example.com"),
        shown(email("joe@example.com"), "no email"),
        shown(handle("joe"), "eve"),
        shown(url("https://example.com/joe"), "https://example.com/eve"),
        shown(phone("+14155552300", ""), "+1 415 555 2301"),
    ];
    all_rejected(&mut client, "FIELD_INVALID", lines).await;
    let lines = vec![
        shown(email("joe@example.com"), "Joe@EXAMPLE.com"),
        shown(handle("joe"), "@Joe"),
        shown(url("https://example.com/joe"), "HTTPS://Example.com/joe"),
        shown(phone("+14155552300", ""), "(415) 555-2300"),
        shown(social("github", "1"), "Joe Smith"),
    ];
    assert_eq!(import(&mut client, lines).await.unwrap(), []);
}

#[tokio::test]
async fn a_line_has_one_record() {
    let (_server, mut client) = fresh().await;
    let joe = || Some(user("Joe", vec![handle("joe")]));
    let ownerless_hold = || {
        let hold = Some(hold(handle("eve"), in_a_day()));
        Some(v1::OwnerlessHold { tenant: String::new(), hold })
    };
    let tenant_record = || Some(v1::Tenant::default());
    let internals = || Some(v1::UserInternals::default());
    let lines = vec![
        Line { user: joe(), ownerless_hold: ownerless_hold(), ..Default::default() },
        Line { user: joe(), tenant_record: tenant_record(), ..Default::default() },
        Line {
            tenant_record: tenant_record(),
            ownerless_hold: ownerless_hold(),
            ..Default::default()
        },
        Line { internals: internals(), ownerless_hold: ownerless_hold(), ..Default::default() },
        Line { internals: internals(), ..Default::default() },
    ];
    all_rejected(&mut client, "FIELD_INVALID", lines).await;
    assert!(client.resolve(handle("joe")).await.is_err());
    client.create(user("Eve", vec![handle("eve")])).await.unwrap();

    let options = StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field("options");
    let twice = Line { options: Some(Options::default()), user: joe(), ..Default::default() };
    let refused = import(&mut client, vec![twice.clone()]).await.unwrap_err();
    assert_eq!(status_details(refused), options);
    let first = client.admin.import_users(stream::iter([twice])).await.unwrap();
    let refused = first.into_inner().message().await.unwrap_err();
    assert_eq!(status_details(refused), options);
}

/// A codec that sends bytes as they are, and ignores responses.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(buffer, &message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        let length = bytes::Buf::remaining(buffer);
        bytes::Buf::advance(buffer, length);
        Ok(Some(()))
    }
}

/// The status after an import of these messages.
async fn status_of(url: &str, messages: Vec<Vec<u8>>) -> Status {
    let channel = Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap();
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let path = "/polynym.v1.AdminService/ImportUsers".parse().unwrap();
    let request = Request::new(stream::iter(messages));
    let mut responses = match client.streaming(request, path, Raw).await {
        Ok(responses) => responses.into_inner(),
        Err(status) => return status,
    };
    loop {
        match responses.message().await {
            Ok(Some(())) => {}
            Ok(None) => panic!("the import succeeded"),
            Err(status) => return status,
        }
    }
}

#[tokio::test]
async fn messages_that_are_no_lines_are_named_as_such() {
    let (server, _) = fresh().await;
    let options = vec![0x0a, 0];
    let invalid = StatusDetails::new(Code::InvalidArgument, "MESSAGE_INVALID");
    for malformed in [vec![0x0a, 9, 1], vec![0xff, 0xff], vec![0x1a, 3, 0x0a, 1, 0xff]] {
        for messages in [vec![malformed.clone()], vec![options.clone(), malformed.clone()]] {
            let status = status_of(&server.server.url, messages).await;
            assert_eq!(status_details(status), invalid, "{malformed:?}");
        }
    }
    let large = status_of(&server.server.url, vec![options, vec![0x1a; 5 << 20]]).await;
    let large = status_details(large);
    assert_eq!((large.code, &*large.reason), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
}

/// The status code and reason of a look-up of the owner `days` ago, and the earliest known time.
async fn owner_before(
    client: &mut Client,
    identifier: v1::Identifier,
    days: i64,
) -> (Code, String, Option<String>) {
    let seconds = polynym_directory::Timestamp::now().as_millis() / 1_000 - days * 86_400;
    let request = v1::ResolveIdentityRequest {
        identifier: Some(identifier),
        as_of: Some(Timestamp { seconds, nanos: 0 }),
        ..Default::default()
    };
    let refused = status_details(client.directory.resolve_identity(request).await.unwrap_err());
    let earliest = refused.metadata.get("earliest").cloned();
    (refused.code, refused.reason, earliest)
}

#[tokio::test]
async fn the_owners_before_an_import_are_unknown() {
    let (_server, mut client) = fresh().await;
    let seconds = polynym_directory::Timestamp::now().as_millis() / 1_000 - 10 * 86_400;
    let mut linked = identity(email("joe@example.com"));
    linked.link_time = Some(Timestamp { seconds, nanos: 0 });
    let joe = v1::User { identities: vec![linked], ..Default::default() };
    let ann = user("Ann", vec![handle("ann")]);
    let lines = [joe, ann].map(|user| Line { user: Some(user), ..Default::default() });
    assert_eq!(import(&mut client, lines.into()).await.unwrap(), []);
    client.create(user("Eve", vec![handle("eve")])).await.unwrap();

    let found = client.resolve(email("joe@example.com")).await.unwrap().user.unwrap();
    let import_time = found.identities[0].import_time.unwrap();
    let expired = |earliest: &str| {
        (Code::OutOfRange, "HISTORY_EXPIRED".to_owned(), Some(earliest.to_owned()))
    };
    let joe = expired(&import_time.to_string());
    for days in [5, 20] {
        assert_eq!(owner_before(&mut client, email("joe@example.com"), days).await, joe);
        let (code, reason, _) = owner_before(&mut client, handle("ann"), days).await;
        assert_eq!((code, reason.as_str()), (Code::OutOfRange, "HISTORY_EXPIRED"));
        let (code, reason, _) = owner_before(&mut client, handle("eve"), days).await;
        assert_eq!((code, reason.as_str()), (Code::NotFound, "IDENTITY_NOT_FOUND"));
    }
    // The same after another user has it: that ownership began here.
    let eve = client.resolve(handle("eve")).await.unwrap().user.unwrap();
    client.merge(&eve.user_id, &found.user_id).await.unwrap();
    for days in [5, 20] {
        assert_eq!(owner_before(&mut client, email("joe@example.com"), days).await, joe);
    }
    client.unlink(&eve.user_id, email("joe@example.com")).await.unwrap();
    for days in [5, 20] {
        assert_eq!(owner_before(&mut client, email("joe@example.com"), days).await, joe);
    }
}
