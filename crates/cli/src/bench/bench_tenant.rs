//! The tenant that `polynym bench` writes to: it created the tenant, and marked it with a user.

use prost_types::FieldMask;
use tonic::Code;

use crate::client::Session;
use crate::failure::Failure;
use crate::tenant::delete_with_users;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{
    CreateUserRequest, GetTenantRequest, Identifier, Identity, ResolveIdentityRequest,
    UpdateTenantRequest, User,
};

/// The email of the user that marks the tenant.
const MARK: &str = "polynym.bench@example.com";

fn mark() -> Identifier {
    Identifier { kind: Some(Kind::Email(MARK.to_owned())) }
}

/// Creates and marks the tenant if it does not exist. Fails for a tenant without the mark.
pub async fn claim(session: &Session) -> Result<(), Failure> {
    if exists(session).await? { check_mark(session).await } else { create(session).await }
}

async fn exists(session: &Session) -> Result<bool, Failure> {
    let request = GetTenantRequest { tenant: session.tenant() };
    match session.admin().get_tenant(request).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(session.failure(error)),
    }
}

async fn create(session: &Session) -> Result<(), Failure> {
    // Without holds, so that removed users can be loaded again.
    let update_mask = Some(FieldMask { paths: vec!["holds".to_owned()] });
    let request =
        UpdateTenantRequest { tenant: session.tenant(), update_mask, ..Default::default() };
    let outcome = session.admin().update_tenant(request).await;
    session.answer(outcome)?;

    let identity = Identity { identifier: Some(mark()), ..Default::default() };
    let name = "made by polynym bench".to_owned();
    let user = Some(User { display_name: name, identities: vec![identity], ..Default::default() });
    let request = CreateUserRequest { tenant: session.tenant(), user, ..Default::default() };
    let outcome = session.registry().create_user(request).await;

    session.answer(outcome).map(drop)
}

/// Fails if the tenant has no mark.
async fn check_mark(session: &Session) -> Result<(), Failure> {
    let tenant = session.tenant();
    let request = ResolveIdentityRequest { tenant, identifier: Some(mark()), ..Default::default() };
    match session.directory().resolve_identity(request).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Code::NotFound => Err(Failure::Usage(format!(
            "the tenant {} was not created by `polynym bench`, which changes no other: name a new \
             one with --tenant",
            session.tenant()
        ))),
        Err(error) => Err(session.failure(error)),
    }
}

/// Deletes the tenant, with all users that were loaded and registered.
pub async fn remove(session: &Session) -> Result<(), Failure> {
    if !exists(session).await? {
        return Ok(());
    }
    check_mark(session).await?;
    delete_with_users(session).await
}
