//! The wire form of users.

use proptest::prelude::*;
use prost::Message;

use super::super::size::size;
use super::super::{Found, WireUser, user_message};
use super::{any_identifier, any_user, user};
use crate::identifier::IdentityKey;
use crate::proto::v1;

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(user in any_user()) {
        let wire = WireUser::of(&user);
        prop_assert_eq!(wire.decode().unwrap(), user.clone());
        prop_assert_eq!(wire.tenant(), user.tenant.as_str().as_bytes());
        let message = v1::User::decode(wire.into_bytes()).unwrap();
        prop_assert_eq!(message.etag.clone(), user.etag());
        prop_assert_eq!(message, user_message(&user));
    }

    #[test]
    fn no_user_is_larger_than_it_counts(user in any_user()) {
        prop_assert!(WireUser::of(&user).as_bytes().len() <= size(&user));
    }

    /// What is found without decoding is what is found with.
    #[test]
    fn an_identity_is_found_by_its_key(user in any_user(), other in any_identifier()) {
        let wire = WireUser::of(&user);
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
    fn bytes_that_are_no_user_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0..200usize) {
        let key = IdentityKey::new("default", &super::identifier("handle:joe"));
        let mut sound = WireUser::of(&user(&["handle:joe", "phone:+14155552300"])).into_bytes().to_vec();
        sound.truncate(cut);
        for bytes in [bytes, sound] {
            let wire = WireUser::from_stored(bytes.into());
            let _ = (wire.tenant().len(), wire.decode().is_ok());
            let _ = Found::new(wire, &key);
        }
    }
}

/// Users whose values, one after the other, read like another identity.
#[test]
fn only_the_very_identity_is_found() {
    let names = ["social:a/b", "social:a/b/c", "social:ab/c", "handle:a", "email:a@b.cd", "url:https://a/b"];
    let user = user(&names);
    let wire = WireUser::of(&user);
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
