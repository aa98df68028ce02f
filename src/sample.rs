//! Made-up users to try things with. Their ids and times are always the same, so that what a server
//! says of them can be shown in documentation.

pub mod generated;
mod names;
mod people;

use locality_uuid::{Generator, LocalityId, Mode};

use crate::directory::error::Error;
use crate::directory::model::attribute::Value;
use crate::directory::model::new_user::{NewIdentity, NewUser};
use crate::directory::model::policies::PolicyUpdate;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::model::user::Verification;
use crate::directory::mutation::{Mutation, MutationKind, TenantChange, UserChange};
use crate::directory::stores::{Backend, Consistency, View};
use crate::identifier::{Kind, RawIdentifier, Rules};
use people::{PEOPLE, Person};

/// When the first of them was registered: 2026-01-05T09:00:00Z. The others follow, one an hour.
const START: i64 = 1_767_603_600_000;
const HOUR: i64 = 3_600_000;

/// Makes the default tenant where it is not there, and loads those of the made-up users that are
/// not in `store`; tells how many were loaded, and how many could not be because somebody else has
/// one of their identifiers.
///
/// # Errors
/// Those of [`LookUps::get`](crate::directory::LookUps::get) and
/// [`Mutations::mutate`](crate::directory::Mutations::mutate).
pub async fn load(store: &Backend) -> Result<(usize, usize), Error> {
    let stored = store.reads.rules(Consistency::Latest).await?;
    let mutations: Vec<_> = mutations(Rules::known(stored.version).unwrap_or(Rules::PRESENT))?;
    let ids: Vec<_> = mutations.iter().filter_map(Mutation::user_id).collect();
    let present = store.lookups.get(&Tenant::DEFAULT, &ids, View::Basic).await?;
    let missing =
        mutations.into_iter().zip(present).filter(|(_, user)| !matches!(user, Ok(Some(_))));
    let tenant = store.tenants.tenant(&Tenant::DEFAULT).await?;
    let tenant_since = tenant.as_ref().map_or(Timestamp::from_millis(START), |tenant| tenant.since);
    if tenant.is_none() {
        let kind = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
        let time = Timestamp::from_millis(START);
        store.mutations.mutate(Mutation::new(Tenant::DEFAULT, time, kind)).await?;
    }

    let (mut loaded, mut refused) = (0, 0);
    for (mutation, _) in missing {
        match store.mutations.mutate(Mutation { tenant_since, ..mutation }).await {
            Ok(_) => loaded += 1,
            Err(Error::IdentityTaken { .. }) => refused += 1,
            Err(error) => return Err(error),
        }
    }

    Ok((loaded, refused))
}

/// The mutations that register the sample users. Their ids come from a generator with a fixed
/// start.
fn mutations(rules: Rules) -> Result<Vec<Mutation>, Error> {
    let ids = Generator::builder(Mode::Variable)
        .process_id(0x5a3)
        .node(0x1e)
        .start(0)
        .clock(|| START as u64)
        .build();
    PEOPLE
        .iter()
        .zip(0..)
        .map(|(person, n)| mutation(rules, person, ids.next_id(), START + n * HOUR))
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
    let attributes = [
        ("team".to_owned(), Value::String(person.team.to_owned())),
        (
            "languages".to_owned(),
            Value::List(person.languages.iter().map(ToString::to_string).collect()),
        ),
    ];
    let draft =
        NewUser { display_name: person.name.to_owned(), identities, attributes: attributes.into() };

    Ok(Mutation {
        rules,
        ..Mutation::of_user(Tenant::DEFAULT, user_id, time, UserChange::Create(draft))
    })
}

/// Emails count as verified.
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
    fn they_are_the_same_each_time_and_share_no_identifier() {
        let first = mutations(Rules::PRESENT).unwrap();
        assert_eq!(first, mutations(Rules::PRESENT).unwrap());
        assert!((24..=60).contains(&first.len()));
        let mut seen = HashSet::new();
        let mut kinds = HashSet::new();
        for mutation in &first {
            let Some(UserChange::Create(draft)) = mutation.user_change() else { panic!() };
            assert!(draft.identities.len() > 1);
            for identity in &draft.identities {
                kinds.insert(identity.identifier.kind());
                assert!(seen.insert(identity.identifier.to_string()), "{}", identity.identifier);
            }
        }
        assert_eq!(kinds.len(), Kind::ALL.len());
    }
}
