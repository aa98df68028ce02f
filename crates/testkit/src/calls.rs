//! The generated clients with short methods for tests.

use std::collections::BTreeMap;

use crate::stubs::admin_service_client::AdminServiceClient;
use crate::stubs::directory_service_client::DirectoryServiceClient;
use crate::stubs::inbox_service_client::InboxServiceClient;
use crate::stubs::registry_service_client::RegistryServiceClient;
use polynym_proto::v1::{self, identifier::Kind};
use tonic::Status;
use tonic::transport::Channel;

#[derive(Clone)]
pub struct Client {
    pub directory: DirectoryServiceClient<Channel>,
    pub registry: RegistryServiceClient<Channel>,
    pub inbox: InboxServiceClient<Channel>,
    pub admin: AdminServiceClient<Channel>,
}

type Outcome = Result<v1::User, Status>;

pub fn email(value: &str) -> v1::Identifier {
    v1::Identifier { kind: Some(Kind::Email(value.to_owned())) }
}

pub fn handle(value: &str) -> v1::Identifier {
    v1::Identifier { kind: Some(Kind::Handle(value.to_owned())) }
}

pub fn phone(number: &str, region: &str) -> v1::Identifier {
    let phone = v1::Phone { number: number.to_owned(), region: region.to_owned() };
    v1::Identifier { kind: Some(Kind::Phone(phone)) }
}

pub fn social(provider: &str, subject: &str) -> v1::Identifier {
    let social = v1::Social { provider: provider.to_owned(), subject: subject.to_owned() };
    v1::Identifier { kind: Some(Kind::Social(social)) }
}

pub fn url(value: &str) -> v1::Identifier {
    v1::Identifier { kind: Some(Kind::Url(value.to_owned())) }
}

/// An identity for a `CreateUser` request.
pub fn identity(identifier: v1::Identifier) -> v1::Identity {
    v1::Identity { identifier: Some(identifier), ..Default::default() }
}

/// A merge request with the default conflict policy.
pub fn merging(primary: &str, secondary: &str) -> v1::MergeUsersRequest {
    let (primary_user_id, secondary_user_id) = (primary.to_owned(), secondary.to_owned());
    v1::MergeUsersRequest { primary_user_id, secondary_user_id, ..Default::default() }
}

impl Client {
    pub async fn connect(url: &str) -> Self {
        Self::over(Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap())
    }

    pub fn over(channel: Channel) -> Self {
        let directory = DirectoryServiceClient::new(channel.clone());
        let inbox = InboxServiceClient::new(channel.clone());
        let (registry, admin) =
            (RegistryServiceClient::new(channel.clone()), AdminServiceClient::new(channel));
        Self { directory, registry, inbox, admin }
    }

    /// The sums of counters by metric. All callers are anonymous here.
    pub async fn usage(
        &mut self,
        request: v1::GetUsageRequest,
    ) -> Result<BTreeMap<String, i64>, Status> {
        let mut sums = BTreeMap::new();
        for series in self.admin.get_usage(request).await?.into_inner().series {
            assert_eq!(series.caller, "anonymous");
            let sum: i64 = series.points.iter().map(|point| point.count).sum();
            *sums.entry(series.metric).or_default() += sum;
        }
        Ok(sums)
    }

    pub async fn resolve(
        &mut self,
        identifier: v1::Identifier,
    ) -> Result<v1::ResolveIdentityResponse, Status> {
        let request =
            v1::ResolveIdentityRequest { identifier: Some(identifier), ..Default::default() };
        Ok(self.directory.resolve_identity(request).await?.into_inner())
    }

    pub async fn get(&mut self, user_id: &str) -> Outcome {
        let request = v1::GetUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.directory.get_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn create(&mut self, user: v1::User) -> Outcome {
        let request = v1::CreateUserRequest { user: Some(user), ..Default::default() };
        Ok(self.registry.create_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn update(&mut self, user: v1::User, mask: &[&str]) -> Outcome {
        let paths = mask.iter().map(|path| path.to_string()).collect();
        let update_mask = Some(prost_types::FieldMask { paths });
        let request = v1::UpdateUserRequest { user: Some(user), update_mask, ..Default::default() };
        Ok(self.registry.update_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn link(&mut self, user_id: &str, identifier: v1::Identifier) -> Outcome {
        let request = v1::LinkIdentityRequest {
            user_id: user_id.to_owned(),
            identifier: Some(identifier),
            ..Default::default()
        };
        Ok(self.registry.link_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn unlink(&mut self, user_id: &str, identifier: v1::Identifier) -> Outcome {
        let request = v1::UnlinkIdentityRequest {
            user_id: user_id.to_owned(),
            identifier: Some(identifier),
            ..Default::default()
        };
        Ok(self.registry.unlink_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn replace(
        &mut self,
        user_id: &str,
        old: v1::Identifier,
        new: v1::Identifier,
    ) -> Outcome {
        let request = v1::ReplaceIdentityRequest {
            user_id: user_id.to_owned(),
            old_identifier: Some(old),
            new_identifier: Some(new),
            ..Default::default()
        };
        Ok(self.registry.replace_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn disable(&mut self, user_id: &str) -> Outcome {
        let request = v1::DisableUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.registry.disable_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn enable(&mut self, user_id: &str) -> Outcome {
        let request = v1::EnableUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.registry.enable_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn delete(&mut self, user_id: &str) -> Outcome {
        let request = v1::DeleteUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.registry.delete_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn undelete(&mut self, user_id: &str) -> Outcome {
        let request = v1::UndeleteUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.registry.undelete_user(request).await?.into_inner().user.unwrap())
    }

    pub async fn purge(&mut self, user_id: &str) -> Result<Vec<String>, Status> {
        let request = v1::PurgeUserRequest { user_id: user_id.to_owned(), ..Default::default() };
        Ok(self.admin.purge_user(request).await?.into_inner().user_ids)
    }

    pub async fn merge(&mut self, primary: &str, secondary: &str) -> Outcome {
        Ok(self.registry.merge_users(merging(primary, secondary)).await?.into_inner().user.unwrap())
    }

    pub async fn unmerge(
        &mut self,
        primary: &str,
        secondary: &str,
    ) -> Result<v1::UnmergeUsersResponse, Status> {
        let (primary_user_id, secondary_user_id) = (primary.to_owned(), secondary.to_owned());
        let request =
            v1::UnmergeUsersRequest { primary_user_id, secondary_user_id, ..Default::default() };
        Ok(self.registry.unmerge_users(request).await?.into_inner())
    }

    pub async fn move_identity(
        &mut self,
        (from, to): (&str, &str),
        identifier: v1::Identifier,
    ) -> Outcome {
        let request = v1::MoveIdentityRequest {
            from_user_id: from.to_owned(),
            to_user_id: to.to_owned(),
            identifier: Some(identifier),
            ..Default::default()
        };
        Ok(self.registry.move_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn release(
        &mut self,
        identifier: v1::Identifier,
    ) -> Result<v1::ReleaseHoldResponse, Status> {
        let request = v1::ReleaseHoldRequest { identifier: Some(identifier), ..Default::default() };
        Ok(self.admin.release_hold(request).await?.into_inner())
    }

    /// Updates the given policies of the default tenant.
    pub async fn govern(&mut self, policies: v1::Policies) -> Result<v1::Tenant, Status> {
        let request = v1::UpdateTenantRequest { policies: Some(policies), ..Default::default() };
        Ok(self.admin.update_tenant(request).await?.into_inner().tenant.unwrap())
    }

    /// Removes all hold times of the default tenant: a released identifier is free at once.
    pub async fn hold_nothing(&mut self) {
        let update_mask = Some(prost_types::FieldMask { paths: vec!["holds".to_owned()] });
        let request = v1::UpdateTenantRequest { update_mask, ..Default::default() };
        self.admin.update_tenant(request).await.unwrap();
    }

    pub async fn verify(
        &mut self,
        user_id: &str,
        identifier: v1::Identifier,
        verified: bool,
        by: &str,
    ) -> Outcome {
        let request = v1::VerifyIdentityRequest {
            user_id: user_id.to_owned(),
            identifier: Some(identifier),
            verified,
            verified_by: by.to_owned(),
            ..Default::default()
        };
        Ok(self.registry.verify_identity(request).await?.into_inner().user.unwrap())
    }
}

/// A user with a display name and identities.
pub fn user(name: &str, identifiers: Vec<v1::Identifier>) -> v1::User {
    let identities = identifiers.into_iter().map(identity).collect();
    v1::User { display_name: name.to_owned(), identities, ..Default::default() }
}

/// A text as the value of an attribute.
pub fn text(value: &str) -> v1::AttributeValue {
    let kind = v1::attribute_value::Kind::StringValue(value.to_owned());
    v1::AttributeValue { kind: Some(kind) }
}
