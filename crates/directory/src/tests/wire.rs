//! The wire form of users.

use proptest::prelude::*;
use prost::Message;

use super::{any_identifier, any_user, id, user};
use crate::encoded::encode::user_message;
use crate::encoded::encoded_user::{EncodedUser, Found};
use crate::encoded::event::{decode_event, encode_event, event_message};
use crate::model::event::{ChangeSet, Event, EventKind, IdentityChange, Origin};
use crate::model::policies::Policies;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::{Deletion, TenantRecord};
use crate::model::unknown::Unknown;
use crate::model::user::{Identity, User, Verification};
use crate::size::size;
use crate::timestamp::Timestamp;
use polynym_identifier::{IdentityKey, RULES_VERSION, Rules};
use polynym_proto::v1;

proptest! {
    #[test]
    fn users_round_trip(user in any_user()) {
        let wire = EncodedUser::from_user(&user);
        let mut decoded = wire.decode().unwrap();
        for identity in &mut decoded.identities {
            prop_assert_eq!(identity.rules_version, Rules::UNNAMED);
            identity.rules_version = RULES_VERSION;
        }
        prop_assert_eq!(decoded, user.clone());
        prop_assert_eq!(wire.tenant(), user.tenant.as_str().as_bytes());
        let message = v1::User::decode(wire.into_bytes()).unwrap();
        prop_assert_eq!(message.etag.clone(), user.etag());
        prop_assert_eq!(message, user_message(&user));
    }

    #[test]
    fn the_size_is_an_upper_bound(user in any_user()) {
        prop_assert!(EncodedUser::from_user(&user).as_bytes().len() <= size(&user));
    }

    /// Looking up without decoding agrees with decoding.
    #[test]
    fn an_identity_is_found_by_its_key(user in any_user(), other in any_identifier()) {
        let wire = EncodedUser::from_user(&user);
        let message = user_message(&user);
        for (identity, wanted) in user.identities.iter().zip(message.identities) {
            let found = Found::new(wire.clone(), &user.key(&identity.identifier)).unwrap();
            prop_assert_eq!(v1::Identity::decode(found.identity).unwrap(), wanted);
            let elsewhere = IdentityKey::new("elsewhere", &identity.identifier);
            prop_assert_eq!(Found::new(wire.clone(), &elsewhere), None);
        }
        let found = Found::new(wire, &user.key(&other));
        prop_assert_eq!(found.is_some(), user.identity(&other).is_some());
    }

    #[test]
    fn malformed_bytes_cause_no_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        cut in 0..200usize,
    ) {
        let key = IdentityKey::new("default", &super::identifier("handle:joe"));
        let user = user(&["handle:joe", "phone:+14155552300"]);
        let mut sound = EncodedUser::from_user(&user).into_bytes().to_vec();
        sound.truncate(cut);
        for bytes in [bytes, sound] {
            let wire = EncodedUser::from_stored(bytes.into());
            let _ = (wire.tenant().len(), wire.decode().is_ok());
            let _ = Found::new(wire, &key);
        }
    }
}

/// The concatenated values of these identities look like other identities.
#[test]
fn only_exact_identities_are_found() {
    let names = [
        "social:a/b",
        "social:a/b/c",
        "social:ab/c",
        "handle:a",
        "email:a@b.cd",
        "url:https://a/b",
    ];
    let user = user(&names);
    let wire = EncodedUser::from_user(&user);
    let none = [
        "social:a/bc",
        "handle:b",
        "handle:ab",
        "email:a@b.c",
        "url:https://a/bc",
        "phone:+14155552300",
        "social:default/b",
    ];
    for name in names {
        assert!(Found::new(wire.clone(), &user.key(&super::identifier(name))).is_some(), "{name}");
    }
    for name in none {
        assert_eq!(Found::new(wire.clone(), &user.key(&super::identifier(name))), None, "{name}");
    }
}

/// An unknown field.
const ADDED: &[u8] = b"\xc2\x3e\x04kept";

fn count(bytes: &[u8]) -> usize {
    bytes.windows(ADDED.len()).filter(|part| *part == ADDED).count()
}

/// A user with unknown fields, one in each of its identities too.
fn with_added(user: &User) -> EncodedUser {
    let mut message = user_message(user);
    let identities = std::mem::take(&mut message.identities);
    let mut bytes = message.encode_to_vec();
    for identity in identities {
        let inner = [&identity.encode_to_vec(), ADDED].concat();
        prost::encoding::bytes::encode(5, &inner, &mut bytes);
    }
    EncodedUser::from_stored([&bytes, ADDED].concat().into())
}

#[test]
fn unknown_fields_stay_with_their_messages() {
    let user = user(&["email:joe@example.com", "handle:joe"]);
    let mut record = Record::decode(&with_added(&user), ADDED).unwrap();
    let (whole, private) = record.encode();
    assert_eq!((count(whole.as_bytes()), count(&private)), (3, 1));
    let (identity, guarded) = record.remove_identity(0);
    assert_eq!(count(record.encode().0.as_bytes()), 2);
    let mut other =
        Record::new(User { identities: Vec::new(), unknown: Unknown::default(), ..user.clone() });
    other.add_identity(identity, guarded);
    assert_eq!(count(other.encode().0.as_bytes()), 1);
    let message = v1::User::decode(whole.into_bytes()).unwrap();
    assert_eq!(message, user_message(&user));
}

#[test]
fn unknown_fields_stay_with_a_tenant_and_its_policies() {
    let name = Tenant::DEFAULT;
    let (policies, now) =
        (Policies { keep_last: true, ..Policies::default() }, Timestamp::from_millis(1));
    let deletion = Some(Deletion { time: now, with_users: true });
    let unknown = Default::default();
    let create_time = Timestamp::from_millis(-1);
    let tenant = TenantRecord {
        name,
        policies,
        create_time,
        since: now,
        update_time: now,
        deletion,
        unknown,
    };
    let mut bytes = tenant.encode();
    prost::encoding::bytes::encode(2, &ADDED.to_vec(), &mut bytes);
    bytes.extend(ADDED);
    let mut read = TenantRecord::decode(&bytes).unwrap();
    read.policies.keep_primary = true;
    let again = TenantRecord::decode(&read.encode()).unwrap();
    assert_eq!(again, read);
    assert_eq!(again.deletion, deletion);
    assert_eq!((again.create_time, again.since), (create_time, now));
    assert_eq!((again.policies.keep_last, count(&again.encode())), (true, 2));
    assert_ne!(again.etag(), TenantRecord { unknown: Default::default(), ..again.clone() }.etag());
}

/// Known fields must not count as unknown.
#[test]
fn the_last_known_fields_match_the_descriptors() {
    for (message, last) in [("User", 12), ("Identity", 7), ("Tenant", 7)] {
        let pool = prost_reflect::DescriptorPool::decode(polynym_proto::DESCRIPTORS).unwrap();
        let message = pool.get_message_by_name(&format!("polynym.v1.{message}")).unwrap();
        assert_eq!(
            message.fields().map(|field| field.number()).max(),
            Some(last),
            "{}",
            message.name()
        );
    }
}

/// A link that only makes an identity primary has a kind of its own, also where it was stored
/// before there was one.
#[test]
fn a_move_of_the_primary_mark_is_stored_as_a_link() {
    let event = |changes: ChangeSet| Event {
        tenant: Tenant::DEFAULT,
        user: id(1),
        sequence: 1,
        time: Timestamp::from_millis(1),
        origin: Origin::default(),
        kind: EventKind::IdentityLinked.of_stored(&changes),
        changes,
    };
    let [mut first, second] = user(&["handle:joe", "handle:joseph"]).identities.try_into().unwrap();
    first.primary = true;
    let lost = Identity { primary: false, ..first.clone() };
    let gained = Identity { primary: true, ..second.clone() };
    let verification = Some(Verification { time: Timestamp::from_millis(1), by: String::new() });
    let verified = Identity { verification, ..gained.clone() };
    let kind_of = |changes: Vec<(Option<&Identity>, Option<&Identity>)>| {
        let change = |(before, after): (Option<&Identity>, Option<&Identity>)| IdentityChange {
            before: before.cloned(),
            after: after.cloned(),
        };
        let identities = changes.into_iter().map(change).collect();
        let event = event(ChangeSet { identities, ..ChangeSet::default() });
        let bytes = encode_event(&event);
        let stored = v1::Event::decode(&*bytes).unwrap().event_type();
        assert_eq!(stored, v1::EventType::IdentityLinked);
        let read = decode_event(&event.tenant, event.user, &bytes).unwrap();
        assert_eq!(read.kind, event.kind);
        (event_message(&event).event_type(), event.changes.kinds())
    };

    let marked = vec![(Some(&first), Some(&lost)), (Some(&second), Some(&gained))];
    let (kind, parts) = kind_of(marked);
    assert_eq!(kind, v1::EventType::IdentityMadePrimary);
    assert_eq!(parts, [EventKind::IdentityMadePrimary], "the other mark goes with it");
    let (kind, _) = kind_of(vec![(Some(&first), Some(&lost)), (Some(&second), Some(&verified))]);
    assert_eq!(kind, v1::EventType::IdentityLinked, "it is verified as well");
    let (kind, _) = kind_of(vec![(Some(&first), Some(&lost)), (None, Some(&gained))]);
    assert_eq!(kind, v1::EventType::IdentityLinked, "it is new");
}
