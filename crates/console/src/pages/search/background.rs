//! What is behind an identifier: its owners, the owner at a time, and the rules by which it was
//! read.

use std::collections::HashMap;

use polynym_client::{Client, Kind};
use polynym_proto::v1;
use prost_types::Timestamp;
use v1::batch_get_users_response::result::Outcome;

use crate::change::problem::sentence;
use crate::failure::Failure;
use crate::form;
use crate::views::reading::Typed;
use crate::views::{Time, UserView, identity};

/// What is behind an identifier.
#[derive(Default)]
pub struct Background {
    /// The text form of its canonical value.
    pub canonical: String,
    /// The version of the rules.
    pub rules_version: u32,
    /// The rules that changed what was typed.
    pub rules: Vec<v1::normalize_identity_response::Change>,
    /// The owners, the latest first; none if the caller may not know them.
    pub owners: Option<Owners>,
    /// The owner at a time, if one was asked for.
    pub as_of: Option<AsOf>,
}

/// The owners of an identifier.
pub struct Owners {
    pub list: Vec<Owner>,
    /// The time before which owners are not known.
    pub known_since: Option<Time>,
}

/// An owner, and the period.
pub struct Owner {
    /// The id; empty once the user is purged.
    pub user: String,
    pub title: String,
    pub state: &'static str,
    pub from: Option<Time>,
    /// The end; none for the present owner.
    pub to: Option<Time>,
}

/// The owner at a time.
pub struct AsOf {
    pub time: Option<Time>,
    pub owner: Option<UserView>,
    /// The reason why there is no owner.
    pub reason: String,
    /// Whether what was typed is no time.
    pub is_wrong: bool,
}

impl Background {
    /// Whether a time was asked for that is none.
    pub fn is_wrong(&self) -> bool {
        self.as_of.as_ref().is_some_and(|at| at.is_wrong)
    }
}

/// Gathers what is behind an identifier. A viewer may know its owners, and that at `as_of`.
pub async fn gather(
    client: &Client,
    typed: &Typed,
    may_view: bool,
    as_of: &str,
) -> Result<Background, Failure> {
    let request = v1::NormalizeIdentityRequest {
        identifier: Some(typed.message.clone()),
        ..Default::default()
    };
    let directory = client.directory();
    let (rules, owners, as_of) = tokio::join!(
        directory.normalize_identity(request),
        async { if may_view { owners(client, typed).await.map(Some) } else { Ok(None) } },
        async {
            match form::time("Owner at", as_of) {
                Ok(Some(at)) if may_view => owner_at(client, typed, at).await.map(Some),
                Ok(_) => Ok(None),
                Err(Failure::Form(reason)) => {
                    Ok(Some(AsOf { time: None, owner: None, reason, is_wrong: true }))
                }
                Err(failure) => Err(failure),
            }
        },
    );
    let rules = rules?;
    Ok(Background {
        canonical: identity::text(rules.identifier.as_ref()),
        rules_version: rules.rules_version,
        rules: rules.changes,
        owners: owners?,
        as_of: as_of?,
    })
}

async fn owners(client: &Client, typed: &Typed) -> Result<Owners, Failure> {
    let request =
        v1::ListOwnersRequest { identifier: Some(typed.message.clone()), ..Default::default() };
    let answer = client.directory().list_owners(request).await?;
    let mut ids: Vec<_> = answer.owners.iter().map(|owner| owner.user_id.clone()).collect();
    ids.retain(|id| !id.is_empty());
    ids.sort_unstable();
    ids.dedup();
    let users = users(client, ids).await?;
    let list = answer.owners.iter().map(|owner| {
        let user = users.get(&owner.user_id);
        Owner {
            user: owner.user_id.clone(),
            title: user.map_or(owner.user_id.clone(), |user| user.title().to_owned()),
            state: user.map_or("", |user| user.state),
            from: Time::of(owner.from.as_ref()),
            to: Time::of(owner.to.as_ref()),
        }
    });
    Ok(Owners { list: list.collect(), known_since: Time::of(answer.known_since.as_ref()) })
}

/// The users with these ids that are there. A merged user is there under its own id.
async fn users(client: &Client, ids: Vec<String>) -> Result<HashMap<String, UserView>, Failure> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let paths = ["user_id", "display_name", "state", "identities"];
    let request = v1::BatchGetUsersRequest {
        user_ids: ids.clone(),
        read_mask: Some(prost_types::FieldMask { paths: paths.map(str::to_owned).into() }),
        ..Default::default()
    };
    let results = client.directory().batch_get_users(request).await?.results;
    let found = ids.into_iter().zip(results).filter_map(|(id, result)| match result.outcome? {
        Outcome::Found(found) => {
            let mut user = UserView::of(&found.user?);
            if !found.merged_from.is_empty() {
                user.state = "merged";
            }
            Some((id, user))
        }
        Outcome::Error(_) => None,
    });
    Ok(found.collect())
}

async fn owner_at(client: &Client, typed: &Typed, at: Timestamp) -> Result<AsOf, Failure> {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(typed.message.clone()),
        as_of: Some(at),
        ..Default::default()
    };
    let (owner, reason) = match client.directory().resolve_identity(request).await {
        Ok(answer) => (answer.user.as_ref().map(UserView::of), String::new()),
        Err(error) if error.reason() == "IDENTITY_NOT_FOUND" => (None, "Nobody.".to_owned()),
        Err(error) if matches!(error.kind(), Kind::InvalidArgument | Kind::OutOfRange) => {
            (None, sentence(&error))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(AsOf { time: Time::of(Some(&at)), owner, reason, is_wrong: false })
}
