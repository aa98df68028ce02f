//! Users that a name no longer resolves to: deleted ones, and those that were merged into others.
//! The caller needs the role viewer to find them.

use std::collections::BTreeSet;

use tonic::Status;

use super::Session;
use crate::output::printable;
use polynym_identifier::RawIdentifier;
use polynym_proto::v1;
use v1::event::Change;
use v1::identifier::Kind;
use v1::list_history_request::User as Subject;
use v1::{EventType, Identifier, ListHistoryRequest, NormalizeIdentityRequest, SearchUsersRequest};

/// The maximum number of merges of a user to look through.
const MAX_MERGES: i32 = 200;

/// The deleted user who has an identifier. None if there is no such user, or if the caller may not
/// know it.
pub async fn deleted_owner(session: &Session, identifier: &Identifier) -> Option<v1::User> {
    let filter =
        format!("{} AND state = DELETED", condition(&canonical(session, identifier).await?)?);
    let request =
        SearchUsersRequest { tenant: session.tenant(), filter, page_size: 1, ..Default::default() };
    let answer = session.directory().search_users(request).await.ok()?;
    answer.users.into_iter().next()
}

/// A note for people about a deleted user: who deleted it, when and why, and the command that
/// restores it.
pub async fn deletion_note(session: &Session, user: &v1::User) -> String {
    let id = printable(&user.user_id);
    let mut note = format!("user {id}");
    if !user.display_name.is_empty() {
        note += &format!(" ({})", printable(&user.display_name));
    }
    note +=
        &format!(" was deleted{}", origin(session, &user.user_id, EventType::UserDeleted).await);
    if let Some(time) = &user.purge_time {
        note += &format!(", and will be purged at {time}");
    }
    note + &format!("\n  to restore it: polynym user undelete {id}")
}

/// A note for people about a merged user: who merged it, when and why, and the command that undoes
/// the merge.
pub async fn merge_note(session: &Session, secondary: &str, primary: &str) -> String {
    let (id, primary) = (printable(secondary), printable(primary));
    let origin = origin(session, secondary, EventType::UserMerged).await;
    format!(
        "user {id} was merged into {primary}{origin}\n  to undo it: polynym user unmerge {primary} \
         {id}"
    )
}

/// The error of an identifier without a user, with the deleted user who has it.
pub async fn with_deleted_owner(session: &Session, text: &str, user: &v1::User) -> Status {
    let note = deletion_note(session, user).await;
    Status::not_found(format!("{} resolves to no user: {note}", printable(text)))
}

/// The user whose merge into `primary` brought the identifier along: the latest that was not
/// undone.
pub async fn merged_owner(
    session: &Session,
    primary: &str,
    identifier: &Identifier,
) -> Option<String> {
    let wanted = canonical(session, identifier).await?;
    let types = [EventType::UserMerged, EventType::UserUnmerged].map(Into::into).to_vec();
    let events = history(session, primary, types, MAX_MERGES).await?;
    let mut undone = BTreeSet::new();
    for event in events {
        match event.change? {
            Change::UserUnmerged(changes) => {
                undone.insert(changes.other_user_id);
            }
            Change::UserMerged(changes) if !undone.remove(&changes.other_user_id) => {
                let gained = changes.identities.iter().filter(|change| change.before.is_none());
                let mut after =
                    gained.filter_map(|change| change.after.as_ref()?.identifier.as_ref());
                if after.any(|known| *known == wanted) {
                    return Some(changes.other_user_id);
                }
            }
            _ => {}
        }
    }
    None
}

/// The time, caller and reason of the latest event of a type, as far as the caller may see it.
async fn origin(session: &Session, user_id: &str, kind: EventType) -> String {
    let events = history(session, user_id, vec![kind.into()], 1).await.unwrap_or_default();
    let Some(event) = events.into_iter().next() else { return String::new() };
    let time = event.time.map(|time| format!(" at {time}")).unwrap_or_default();
    let reason = match event.reason.as_str() {
        "" => String::new(),
        reason => format!(", with the reason \"{}\"", printable(reason)),
    };
    format!("{time} by {}{reason}", printable(&event.caller))
}

async fn history(
    session: &Session,
    user_id: &str,
    types: Vec<i32>,
    page_size: i32,
) -> Option<Vec<v1::Event>> {
    let request = ListHistoryRequest {
        tenant: session.tenant(),
        user: Some(Subject::UserId(user_id.to_owned())),
        types,
        page_size,
        ..Default::default()
    };
    let answer = session.directory().list_history(request).await.ok()?;
    Some(answer.events)
}

async fn canonical(session: &Session, identifier: &Identifier) -> Option<Identifier> {
    let (tenant, identifier) = (session.tenant(), Some(identifier.clone()));
    let request = NormalizeIdentityRequest { tenant, identifier };
    session.directory().normalize_identity(request).await.ok()?.identifier
}

/// The condition of a filter for a canonical identifier.
fn condition(identifier: &Identifier) -> Option<String> {
    let (field, value) = match identifier.kind.as_ref()? {
        Kind::Email(email) => ("email", email.clone()),
        Kind::Handle(handle) => ("handle", handle.clone()),
        Kind::Phone(phone) => ("phone", phone.number.clone()),
        Kind::Social(v1::Social { provider, subject }) => {
            let text = RawIdentifier::Social { provider, subject }.to_string();
            ("social", text.trim_start_matches("social:").to_owned())
        }
        Kind::Url(url) => ("url", url.clone()),
    };
    let quoted: String = value
        .chars()
        .flat_map(|c| matches!(c, '"' | '\\' | '*').then_some('\\').into_iter().chain([c]))
        .collect();
    Some(format!("identities.{field} = \"{quoted}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_quotes_the_identifier() {
        let email = Identifier { kind: Some(Kind::Email("a\"*\\b@example.com".to_owned())) };
        let quoted = r#"identities.email = "a\"\*\\b@example.com""#;
        assert_eq!(condition(&email).unwrap(), quoted);
        let social = v1::Social { provider: "github".to_owned(), subject: "1/2".to_owned() };
        let social = Identifier { kind: Some(Kind::Social(social)) };
        assert_eq!(condition(&social).unwrap(), r#"identities.social = "github/1/2""#);
    }
}
