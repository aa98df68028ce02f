//! The generated client with the words that tests use.

use polynym::proto::v1::directory_service_client::DirectoryServiceClient;
use polynym::proto::v1::registry_service_client::RegistryServiceClient;
use polynym::proto::v1::{self, identifier::Kind};
use tonic::Status;
use tonic::transport::Channel;

pub struct Client {
    pub directory: DirectoryServiceClient<Channel>,
    pub registry: RegistryServiceClient<Channel>,
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

/// An identity of a user who is to be created.
pub fn identity(identifier: v1::Identifier) -> v1::Identity {
    v1::Identity { identifier: Some(identifier), ..Default::default() }
}

impl Client {
    pub async fn connect(url: &str) -> Self {
        let channel = Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap();
        let directory = DirectoryServiceClient::new(channel.clone()).max_decoding_message_size(8 << 20);
        Self { directory, registry: RegistryServiceClient::new(channel) }
    }

    pub async fn resolve(&mut self, identifier: v1::Identifier) -> Result<v1::ResolveIdentityResponse, Status> {
        let request = v1::ResolveIdentityRequest { identifier: Some(identifier), ..Default::default() };
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
        let identifier = Some(identifier);
        let request = v1::LinkIdentityRequest { user_id: user_id.to_owned(), identifier, ..Default::default() };
        Ok(self.registry.link_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn unlink(&mut self, user_id: &str, identifier: v1::Identifier) -> Outcome {
        let identifier = Some(identifier);
        let request = v1::UnlinkIdentityRequest { user_id: user_id.to_owned(), identifier, ..Default::default() };
        Ok(self.registry.unlink_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn replace(&mut self, user_id: &str, old: v1::Identifier, new: v1::Identifier) -> Outcome {
        let request = v1::ReplaceIdentityRequest {
            user_id: user_id.to_owned(),
            old_identifier: Some(old),
            new_identifier: Some(new),
            ..Default::default()
        };
        Ok(self.registry.replace_identity(request).await?.into_inner().user.unwrap())
    }

    pub async fn verify(&mut self, user_id: &str, identifier: v1::Identifier, verified: bool, by: &str) -> Outcome {
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
