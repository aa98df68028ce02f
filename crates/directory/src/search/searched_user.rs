//! Users as searches return them.

use crate::encoded::encoded_user::EncodedUser;
use crate::model::user::User;
use crate::view::View;
use polynym_identifier::Rules;

/// A user found by a search, as answers show it: without the rules' versions of its identities.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedUser {
    /// The user; in [`View::Basic`] without attributes.
    pub user: User,
    /// In [`View::Basic`]: the stored user, whose etag covers the attributes.
    pub basic: Option<EncodedUser>,
}

impl SearchedUser {
    /// The view of a whole user.
    pub fn new(mut user: User, view: View) -> Self {
        let basic = match view {
            View::Full => None,
            View::Basic => Some(EncodedUser::from_user(&user).without_attributes()),
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
        self.basic.clone().unwrap_or_else(|| EncodedUser::from_user(&self.user))
    }
}
