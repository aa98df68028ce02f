//! The users that a command changes: those of a filter, or those that arguments or a file name.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use prost_types::FieldMask;
use tonic::Code;
use uuid::Uuid;

use super::action::{Action, changes};
use crate::client::Session;
use crate::client::user_ref::{self, UserRef};
use crate::failure::Failure;
use crate::files;
use crate::output::printable;
use crate::text::identifier::IdentifierArg;
use polynym_proto::v1::batch_get_users_response::result::Outcome as GetOutcome;
use polynym_proto::v1::batch_resolve_identities_response::result::Outcome as ResolveOutcome;
use polynym_proto::v1::{
    BatchGetUsersRequest, BatchResolveIdentitiesRequest, SearchUsersRequest, User,
};

/// The maximum number of users of one operation.
const MAX_USERS: usize = 1_000_000;
/// The users of one call.
const PAGE_SIZE: usize = 200;
const NO_ID: &str = "a user's id is a UUID in its 36-character text form";
/// The maximum bytes of a line of a file.
const MAX_LINE_BYTES: usize = 4 << 10;

/// The users of a command.
pub enum Users {
    Matching(String),
    Named(Vec<UserRef>),
}

impl Users {
    /// Those that a filter matches.
    pub fn matching(filter: String) -> Result<Self, Failure> {
        match filter.trim() {
            "" => {
                let message = "--filter is empty, which would be every user: write a condition";
                Err(Failure::Usage(message.to_owned()))
            }
            _ => Ok(Self::Matching(filter)),
        }
    }

    /// Some that the action would change.
    pub async fn first(&self, session: &Session, action: &Action) -> Result<Vec<User>, Failure> {
        let tenant = session.tenant();
        let found: Vec<_> = match self {
            Self::Matching(filter) => {
                let (filter, page_size) = (filter.clone(), PAGE_SIZE as i32);
                let request =
                    SearchUsersRequest { tenant, filter, page_size, ..Default::default() };
                session.answer(session.directory().search_users(request).await)?.users
            }
            Self::Named(names) => {
                let (user_ids, _) = find(session, &names[..names.len().min(PAGE_SIZE)]).await?;
                if user_ids.is_empty() {
                    return Ok(Vec::new());
                }
                let request = BatchGetUsersRequest { tenant, user_ids, ..Default::default() };
                let answer = session.answer(session.directory().batch_get_users(request).await)?;
                let user = |outcome| match outcome {
                    Some(GetOutcome::Found(found)) if found.merged_from.is_empty() => found.user,
                    _ => None,
                };
                answer.results.into_iter().filter_map(|result| user(result.outcome)).collect()
            }
        };
        Ok(found.into_iter().filter(|user| changes(action, user.state())).collect())
    }
}

/// The ids of the users with these names, and the names without a user, with the reason.
pub async fn find(
    session: &Session,
    names: &[UserRef],
) -> Result<(Vec<String>, Vec<(String, String)>), Failure> {
    let (mut ids, mut identifiers, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match name {
            UserRef::Identifier(typed) => identifiers.push(typed),
            UserRef::Id(id) if id.len() == 36 && id.parse::<Uuid>().is_ok() => ids.push(id.clone()),
            UserRef::Id(text) => unknown.push((text.clone(), NO_ID.to_owned())),
        }
    }
    for identifiers in identifiers.chunks(PAGE_SIZE) {
        for (text, found) in resolve(session, identifiers).await? {
            match found {
                Ok(id) => ids.push(id),
                Err(reason) => unknown.push((text, reason)),
            }
        }
    }
    Ok((ids, unknown))
}

/// The ids of the users with these identifiers, or the reasons why there are none.
async fn resolve(
    session: &Session,
    identifiers: &[&IdentifierArg],
) -> Result<Vec<(String, Result<String, String>)>, Failure> {
    let request = BatchResolveIdentitiesRequest {
        tenant: session.tenant(),
        identifiers: identifiers.iter().map(|typed| typed.message.clone()).collect(),
        show_disabled: true,
        read_mask: Some(FieldMask { paths: vec!["user_id".to_owned()] }),
        ..Default::default()
    };
    let answer = session.answer(session.directory().batch_resolve_identities(request).await)?;
    let found = identifiers.iter().zip(answer.results).map(|(typed, result)| {
        let id = match result.outcome {
            Some(ResolveOutcome::Found(found)) => Ok(found.user.unwrap_or_default().user_id),
            Some(ResolveOutcome::Error(error)) if is_about_name(error.code) => Err(error.message),
            Some(ResolveOutcome::Error(error)) => {
                let (name, message) = (printable(&typed.text), printable(&error.message));
                let text = format!("{name} cannot be looked up: {message}; run the command again");
                return Err(Failure::Other(text));
            }
            None => Err(String::new()),
        };
        Ok((typed.text.clone(), id))
    });
    found.collect()
}

/// Whether an error says that nobody has a name, or that it is none. Others pass.
fn is_about_name(code: i32) -> bool {
    let codes = [Code::NotFound, Code::InvalidArgument, Code::FailedPrecondition];
    codes.contains(&Code::from(code))
}

/// The users that a file names. Fails at the first line that names none.
pub fn read_file(path: &Path) -> Result<Vec<UserRef>, Failure> {
    let mut reader =
        BufReader::new(files::open(path).map_err(|error| files::failure(path, error))?);
    let (mut users, mut number) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let limit = MAX_LINE_BYTES as u64 + 1;
        let read = reader.by_ref().take(limit).read_until(b'\n', &mut line);
        if read.map_err(|error| files::failure(path, error))? == 0 {
            break;
        }
        number += 1;
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::Usage(format!("{} line {number}: {error}", path.display()))
        };
        if line.len() > MAX_LINE_BYTES {
            return Err(wrong(&"the line is too long for an id or an identifier"));
        }
        let text = String::from_utf8(line).map_err(|_| wrong(&"the line is no UTF-8"))?;
        let named = without_comment(text.trim_start_matches('\u{feff}'));
        if named.is_empty() {
            continue;
        }
        users.push(user_ref::parse(named).map_err(|error| wrong(&error))?);
        if users.len() > MAX_USERS {
            return Err(wrong(&format!("more than {MAX_USERS} users: take fewer at a time")));
        }
    }
    match users.is_empty() {
        true => Err(Failure::Usage(format!("{}: the file names no user", path.display()))),
        false => Ok(users),
    }
}

/// The line up to a `#` at its start or after a space: an identifier may have one, too.
fn without_comment(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    let end = [" #", "\t#"].iter().filter_map(|mark| line.find(mark)).min();
    line[..end.unwrap_or(line.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::without_comment;

    #[test]
    fn a_comment_begins_after_a_space() {
        assert_eq!(without_comment("# all of it"), "");
        assert_eq!(without_comment("handle:joe # USER_DELETED\n"), "handle:joe");
        assert_eq!(
            without_comment(" url:https://example.com/a#b \n"),
            "url:https://example.com/a#b"
        );
    }
}
