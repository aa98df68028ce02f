//! Sample users. Their ids and times are fixed, so that the documentation can show a server's
//! answers.

mod people;

use locality_uuid::{Generator, LocalityId, Mode};

use people::{PEOPLE, Person};
use polynym_directory::{
    Backend, Consistency, Error, Mutation, MutationKind, NewIdentity, NewUser, PolicyUpdate,
    Tenant, TenantChange, Timestamp, UserChange, Value, Verification, View,
};
use polynym_identifier::{Kind, RawIdentifier, Rules};

/// The time of the first registration: 2026-01-05T09:00:00Z. The others follow, one per hour.
const START_MILLIS: i64 = 1_767_603_600_000;
const HOUR_MILLIS: i64 = 3_600_000;

/// Creates the default tenant, if necessary, and loads the sample users that `store` lacks. Returns
/// the number of loaded users, and of users rejected because others have their identifiers.
///
/// # Errors
/// Those of [`LookUps::get`](polynym_directory::LookUps::get) and
/// [`Mutations::mutate`](polynym_directory::Mutations::mutate).
pub async fn load(store: &Backend) -> Result<(usize, usize), Error> {
    let stored = store.rules.rules(Consistency::Latest).await?;
    let all = mutations(Rules::known(stored.version).unwrap_or(Rules::PRESENT))?;
    let ids: Vec<_> = all.iter().filter_map(Mutation::user_id).collect();
    let present = store.lookups.get(&Tenant::DEFAULT, &ids, View::Basic).await?;
    let missing = all.into_iter().zip(present).filter(|(_, user)| !matches!(user, Ok(Some(_))));
    let tenant = store.tenants.tenant(&Tenant::DEFAULT).await?;
    let tenant_since =
        tenant.as_ref().map_or(Timestamp::from_millis(START_MILLIS), |tenant| tenant.since);
    if tenant.is_none() {
        let kind = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
        let time = Timestamp::from_millis(START_MILLIS);
        store.mutations.mutate(Mutation::new(Tenant::DEFAULT, time, kind)).await?;
    }

    let (mut loaded, mut rejected) = (0, 0);
    for (mutation, _) in missing {
        match store.mutations.mutate(Mutation { tenant_since, ..mutation }).await {
            Ok(_) => loaded += 1,
            Err(Error::IdentityTaken { .. }) => rejected += 1,
            Err(error) => return Err(error),
        }
    }

    Ok((loaded, rejected))
}

/// The mutations that register the sample users. Their ids come from a generator with a fixed
/// start.
fn mutations(rules: Rules) -> Result<Vec<Mutation>, Error> {
    let ids = Generator::builder(Mode::Variable)
        .process_id(0x5a3)
        .node(0x1e)
        .start(0)
        .clock(|| START_MILLIS as u64)
        .build();
    PEOPLE
        .iter()
        .zip(0..)
        .map(|(person, n)| mutation(rules, person, ids.next_id(), START_MILLIS + n * HOUR_MILLIS))
        .collect()
}

fn mutation(
    rules: Rules,
    person: &Person,
    user_id: LocalityId,
    millis: i64,
) -> Result<Mutation, Error> {
    let time = Timestamp::from_millis(millis);
    let identities = person
        .identifiers
        .iter()
        .map(|text| identity(rules, text, time))
        .collect::<Result<_, _>>()?;
    let languages = person.languages.iter().map(ToString::to_string).collect();
    let attributes = [
        ("team".to_owned(), Value::String(person.team.to_owned())),
        ("languages".to_owned(), Value::List(languages)),
    ];
    let user =
        NewUser { display_name: person.name.to_owned(), identities, attributes: attributes.into() };

    Ok(Mutation {
        rules,
        ..Mutation::of_user(Tenant::DEFAULT, user_id, time, UserChange::Create(user))
    })
}

/// Parses the text form of an identity. Emails are verified.
fn identity(rules: Rules, text: &str, time: Timestamp) -> Result<NewIdentity, Error> {
    let raw = RawIdentifier::from_text(text).map_err(|error| Error::Internal(error.into()))?;
    let identifier = rules.parse(raw).map_err(|error| Error::Internal(error.into()))?;
    let verified = identifier.kind() == Kind::Email;
    let verification = verified.then(|| Verification { time, by: "sample".to_owned() });
    let rules_version = rules.version();
    Ok(NewIdentity {
        verification,
        rules_version,
        ..NewIdentity::new(identifier, raw.typed().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn sample_users_are_deterministic_and_share_no_identifier() {
        let first = mutations(Rules::PRESENT).unwrap();
        assert_eq!(first, mutations(Rules::PRESENT).unwrap());
        assert!((24..=60).contains(&first.len()));
        let mut seen = HashSet::new();
        let mut kinds = HashSet::new();
        for mutation in &first {
            let Some(UserChange::Create(user)) = mutation.user_change() else { panic!() };
            assert!(user.identities.len() > 1);
            for identity in &user.identities {
                kinds.insert(identity.identifier.kind());
                assert!(seen.insert(identity.identifier.to_string()), "{}", identity.identifier);
            }
        }
        assert_eq!(kinds.len(), Kind::ALL.len());
    }
}
