//! Damaged records: look-ups of them fail, and look-ups of other users in the same batch succeed.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Backend, Consistency, Directory, EncodedUser, Error, ItemError, Limits, ResolveOptions, Tenant,
    View,
};
use polynym_identifier::RawIdentifier;

use super::users;

/// The number of users, and of concurrent callers.
pub const USERS: usize = 64;
/// The user whose email has an unreadable claim.
pub const CLAIM: usize = 3;
/// The user whose own record is unreadable.
pub const USER: usize = 5;
/// The user whose handle has the claim of the next user.
pub const TORN: usize = 7;
/// The number of look-ups by each caller.
const LOOKUPS: usize = 5;

/// The look-ups that fail: the number of the user, and true for its email or false for its handle.
fn damaged() -> BTreeSet<(usize, bool)> {
    BTreeSet::from([(CLAIM, true), (USER, true), (USER, false), (TORN, false)])
}

/// Asserts that look-ups of damaged records fail, and that all others succeed.
pub async fn fails_alone(store: Backend) {
    let callers = (0..USERS).map(|n| tokio::spawn(look_up(store.clone(), n)));
    join_all(callers).await.into_iter().for_each(Result::unwrap);

    let directory = Directory::new(store, Generator::new(Mode::Variable), Limits::default());
    let names: Vec<_> =
        (0..USERS).map(|n| (format!("user{n}@example.com"), format!("user{n}"))).collect();
    let raw =
        |(email, handle)| [Some(RawIdentifier::Email(email)), Some(RawIdentifier::Handle(handle))];
    let raw: Vec<_> =
        names.iter().flat_map(|(email, handle)| raw((email.as_str(), handle.as_str()))).collect();
    let (found, _) =
        directory.batch_resolve(&Tenant::DEFAULT, &raw, ResolveOptions::default()).await.unwrap();
    for (n, found) in found.into_iter().enumerate() {
        match found {
            Ok(found) => assert_eq!(found.user, EncodedUser::from_user(&users::user(n / 2))),
            Err(error) => {
                assert!(matches!(error, Error::Internal(_)), "{error:?}");
                assert!(damaged().contains(&(n / 2, n % 2 == 0)), "item {n} is not found");
            }
        }
    }

    let ids: Vec<_> = (0..USERS).map(|n| users::id(n).to_string()).collect();
    for (n, got) in directory
        .batch_get(&users::context(Tenant::DEFAULT, "Get"), &ids, View::Full)
        .await
        .unwrap()
        .into_iter()
        .enumerate()
    {
        assert_eq!(matches!(got, Err(Error::Internal(_))), n == USER, "user {n}: {got:?}");
        assert_eq!(got.is_ok(), n != USER, "user {n}");
    }
}

/// One caller: looks one user up.
async fn look_up(store: Backend, n: usize) {
    for _ in 0..LOOKUPS {
        for (key, by_email) in users::keys(n).into_iter().zip([true, false]) {
            let resolved = store
                .lookups
                .resolve(&[key], Consistency::Latest, View::Full, Duration::ZERO)
                .await
                .unwrap();
            match &resolved.found[0] {
                Ok(Some(found)) => assert_eq!(found.user, EncodedUser::from_user(&users::user(n))),
                Err(ItemError::Internal(_)) => {
                    assert!(damaged().contains(&(n, by_email)), "user {n}, {by_email}")
                }
                other => panic!("user {n}: {other:?}"),
            }
            assert_eq!(
                resolved.found[0].is_err(),
                damaged().contains(&(n, by_email)),
                "user {n}, {by_email}"
            );
        }
        let got = store.lookups.get(&Tenant::DEFAULT, &[users::id(n)], View::Full).await.unwrap();
        assert_eq!(matches!(got[0], Err(ItemError::Internal(_))), n == USER, "user {n}");
        assert_eq!(matches!(got[0], Ok(Some(_))), n != USER, "user {n}");
    }
}
