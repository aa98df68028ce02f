//! The changes that can be made to many users.

use std::collections::BTreeMap;

use prost_types::FieldMask;

use super::targets::Target;
use crate::client::Session;
use polynym_client::Error;
use polynym_proto::v1::{
    AttributeValue, DeleteUserRequest, DisableUserRequest, EnableUserRequest, State,
    UpdateUserRequest, User,
};

/// A change of one user, made to many.
pub enum Action {
    Disable,
    Enable,
    Delete,
    /// The fields that the mask names get these values.
    Update {
        mask: Vec<String>,
        display_name: String,
        attributes: BTreeMap<String, AttributeValue>,
    },
}

impl Action {
    /// The verb.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::Delete => "delete",
            Self::Update { .. } => "update",
        }
    }

    /// The verb at the start of a sentence.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Disable => "Disable",
            Self::Enable => "Enable",
            Self::Delete => "Delete",
            Self::Update { .. } => "Update",
        }
    }

    /// The participle.
    pub const fn done(&self) -> &'static str {
        match self {
            Self::Disable => "disabled",
            Self::Enable => "enabled",
            Self::Delete => "deleted",
            Self::Update { .. } => "updated",
        }
    }

    /// Whether it can change a user in this state.
    pub const fn changes(&self, state: State) -> bool {
        match self {
            Self::Disable => matches!(state, State::Active),
            Self::Enable => matches!(state, State::Disabled),
            Self::Delete | Self::Update { .. } => matches!(state, State::Active | State::Disabled),
        }
    }

    /// Whether a user in this state is as the action leaves it.
    pub const fn is_done(&self, state: State) -> bool {
        match self {
            Self::Disable => matches!(state, State::Disabled),
            Self::Enable => matches!(state, State::Active),
            Self::Delete => matches!(state, State::Deleted),
            Self::Update { .. } => false,
        }
    }

    /// Makes the change.
    pub async fn call(
        &self,
        session: &Session,
        target: &Target,
        request_id: &str,
    ) -> Result<(), Error> {
        let (tenant, user_id, etag, request_id) =
            (session.tenant(), target.user_id.clone(), target.etag.clone(), request_id.to_owned());
        let registry = session.registry();
        match self {
            Self::Disable => {
                let request = DisableUserRequest { tenant, user_id, etag, request_id };
                registry.disable_user(request).await.map(drop)
            }
            Self::Enable => {
                let request = EnableUserRequest { tenant, user_id, etag, request_id };
                registry.enable_user(request).await.map(drop)
            }
            Self::Delete => {
                let request = DeleteUserRequest { tenant, user_id, etag, request_id };
                registry.delete_user(request).await.map(drop)
            }
            Self::Update { mask, display_name, attributes } => {
                let user = User {
                    user_id,
                    etag,
                    display_name: display_name.clone(),
                    attributes: attributes.clone(),
                    ..User::default()
                };
                let update_mask = Some(FieldMask { paths: mask.clone() });
                let user = Some(user);
                let request = UpdateUserRequest { tenant, user, update_mask, request_id };
                registry.update_user(request).await.map(drop)
            }
        }
    }
}
