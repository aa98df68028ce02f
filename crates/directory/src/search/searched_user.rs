//! Users as searches find them.

use crate::encoded::encoded_user::EncodedUser;
use crate::model::user::User;
use crate::model::view::View;
use polynym_identifier::Rules;

/// A user that a search has found, with what answers show of it: no identity has the version of its
/// rules.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedUser {
    /// The user; in [`View::Basic`] without attributes.
    pub user: User,
    /// In [`View::Basic`]: the user as it is stored, whose etag covers the attributes.
    pub basic: Option<EncodedUser>,
}

impl SearchedUser {
    /// The part of a whole user that a search asks for.
    pub fn of(mut user: User, view: View) -> Self {
        let basic = match view {
            View::Full => None,
            View::Basic => Some(EncodedUser::of(&user).without_attributes()),
        };
        if basic.is_some() {
            user.attributes.clear();
        }
        for identity in &mut user.identities {
            identity.rules_version = Rules::UNNAMED;
        }
        Self { user, basic }
    }

    /// The user as answers carry it.
    pub fn encoded(&self) -> EncodedUser {
        self.basic.clone().unwrap_or_else(|| EncodedUser::of(&self.user))
    }
}
