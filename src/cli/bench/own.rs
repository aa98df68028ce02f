//! The tenant that `polynym bench` writes into: one that it made itself, and marked with a user.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use prost_types::FieldMask;
use tonic::{Code, Status};

use super::people::Person;
use crate::cli::Failure;
use crate::cli::client::{Session, request_id};
use crate::proto::v1::attribute_value::Kind as ValueKind;
use crate::proto::v1::batch_resolve_identities_response::result::Outcome;
use crate::proto::v1::identifier::Kind;
use crate::proto::v1::{
    AttributeValue, BatchResolveIdentitiesRequest, CreateUserRequest, GetTenantRequest, Identifier, Identity,
    PurgeUserRequest, ResolveIdentityRequest, UpdateTenantRequest, UpdateUserRequest, User,
};

/// The email of the user that marks the tenant; its attributes name the runs that registered users.
const MARK: &str = "polynym.bench@example.com";
const RUN: &str = "run-";
/// Users that one call asks for, and purges under way.
const CHUNK: u64 = 100;
/// As many numbers in a row without a user end a run: an interrupted load or removal leaves shorter gaps.
const GAP: u64 = 1_000;

fn mark() -> Identifier {
    Identifier { kind: Some(Kind::Email(MARK.to_owned())) }
}

/// Makes and marks the tenant where there is none, and refuses one that has no mark. Returns the marking user.
pub async fn claim(session: &Session) -> Result<User, Failure> {
    let request = GetTenantRequest { tenant: session.tenant() };
    match session.admin().get_tenant(session.request(request)).await {
        Ok(_) => marked(session).await,
        Err(status) if status.code() == Code::NotFound => make(session).await,
        Err(status) => Err(session.failed(status, None)),
    }
}

async fn make(session: &Session) -> Result<User, Failure> {
    let id = request_id(None);
    // Nothing is held: what was removed can be loaded again.
    let update_mask = Some(FieldMask { paths: vec!["holds".to_owned()] });
    let request =
        UpdateTenantRequest { tenant: session.tenant(), update_mask, request_id: id.clone(), ..Default::default() };
    let send = |request| {
        let mut admin = session.admin();
        async move { admin.update_tenant(request).await }
    };
    session.mutate(&id, request, send).await?;

    let identity = Identity { identifier: Some(mark()), ..Default::default() };
    let name = "made by polynym bench".to_owned();
    let user = Some(User { display_name: name, identities: vec![identity], ..Default::default() });
    let id = request_id(None);
    let request = CreateUserRequest { tenant: session.tenant(), user, request_id: id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.create_user(request).await }
    };
    Ok(session.mutate(&id, request, send).await?.user.unwrap_or_default())
}

/// The user that marks the tenant.
async fn marked(session: &Session) -> Result<User, Failure> {
    let tenant = session.tenant();
    let request = ResolveIdentityRequest { tenant, identifier: Some(mark()), ..Default::default() };
    match session.directory().resolve_identity(session.request(request)).await {
        Ok(found) => Ok(found.into_inner().user.unwrap_or_default()),
        Err(status) if status.code() == Code::NotFound => Err(Failure::Usage(format!(
            "the tenant {} was not made by `polynym bench`, which changes no other: name a new one with --tenant",
            session.tenant()
        ))),
        Err(status) => Err(session.failed(status, None)),
    }
}

/// Takes note, before users are registered with the numbers from `first` on, that they will be there. Their callers
/// take every `step`th number each.
pub async fn note_run(session: &Session, mark: User, first: u64, step: u64) -> Result<(), Failure> {
    let name = format!("{RUN}{first}");
    let mask = vec![format!("attributes.{name}")];
    let value = AttributeValue { kind: Some(ValueKind::IntValue(step as i64)) };
    let user = User { user_id: mark.user_id, attributes: [(name, value)].into(), ..Default::default() };
    update(session, user, mask).await
}

async fn update(session: &Session, user: User, paths: Vec<String>) -> Result<(), Failure> {
    let id = request_id(None);
    let update_mask = Some(FieldMask { paths });
    let request = UpdateUserRequest { tenant: session.tenant(), user: Some(user), update_mask, request_id: id.clone() };
    let send = |request| {
        let mut registry = session.registry();
        async move { registry.update_user(request).await }
    };
    session.mutate(&id, request, send).await.map(drop)
}

/// Purges the users that were loaded and registered, and returns how many. The tenant and its mark stay.
pub async fn remove(session: &Session) -> Result<usize, Failure> {
    let mark = marked(session).await?;
    let mut removed = purge(session, 0, 1).await?;
    for (name, value) in &mark.attributes {
        let first = name.strip_prefix(RUN).and_then(|first| first.parse().ok());
        if let (Some(first), Some(ValueKind::IntValue(step))) = (first, &value.kind) {
            removed += purge(session, first, *step as u64).await?;
        }
    }

    let user = User { user_id: mark.user_id, ..Default::default() };
    update(session, user, vec!["attributes".to_owned()]).await?;
    Ok(removed)
}

/// Purges those of a run, the last ones first: where it is interrupted, the others are found again.
async fn purge(session: &Session, first: u64, step: u64) -> Result<usize, Failure> {
    let ids = find(session, first, step.max(GAP)).await?;
    for chunk in ids.rchunks(CHUNK as usize) {
        let purges = stream::iter(chunk).map(|id| purge_user(session, id));
        purges.buffer_unordered(chunk.len()).try_collect::<()>().await?;
    }
    Ok(ids.len())
}

async fn purge_user(session: &Session, user_id: &str) -> Result<(), Failure> {
    let id = request_id(None);
    let (tenant, user_id) = (session.tenant(), user_id.to_owned());
    let request = PurgeUserRequest { tenant, user_id, request_id: id.clone(), ..Default::default() };
    let send = |request| {
        let mut admin = session.admin();
        async move { admin.purge_user(request).await }
    };
    session.mutate(&id, request, send).await.map(drop)
}

/// The ids of the users with the numbers from `first` on, until `gap` numbers have none.
async fn find(session: &Session, first: u64, gap: u64) -> Result<Vec<String>, Failure> {
    let (mut ids, mut next, mut missing) = (Vec::new(), first, 0);
    while missing < gap {
        let identifiers = (next..next + CHUNK).map(|number| Person(number).identifier(0)).collect();
        let request = BatchResolveIdentitiesRequest { tenant: session.tenant(), identifiers, ..Default::default() };
        let answer = session.directory().batch_resolve_identities(session.request(request)).await;
        let mut is_any = false;
        for result in session.answer(answer)?.results {
            match result.outcome {
                Some(Outcome::Found(found)) => {
                    ids.push(found.user.unwrap_or_default().user_id);
                    is_any = true;
                }
                Some(Outcome::Error(error)) if error.code != Code::NotFound as i32 => {
                    return Err(session.failed(Status::new(error.code.into(), error.message), None));
                }
                _ => {}
            }
        }
        missing = if is_any { 0 } else { missing + CHUNK };
        next += CHUNK;
    }
    Ok(ids)
}
