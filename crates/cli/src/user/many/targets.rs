//! The users that a command changes. All are found before the first one changes, so that the
//! changes do not alter what a filter matches.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use prost_types::FieldMask;
use tonic::Code;

use super::action::Action;
use crate::client::Session;
use crate::client::user_ref::{self, UserRef};
use crate::failure::Failure;
use crate::files;
use crate::text::filter_error::with_excerpt;
use polynym_client::Error;
use polynym_presentation::state;
use polynym_proto::google::rpc;
use polynym_proto::v1::{self, SearchUsersRequest, State, User};
use v1::batch_get_users_response::result::Outcome as GetOutcome;
use v1::batch_resolve_identities_response::result::Outcome as ResolveOutcome;

/// The maximum number of users of one operation.
const MAX_USERS: usize = 1_000_000;
/// The users of one call.
const PAGE_SIZE: usize = 200;
/// The maximum bytes of a line of a file.
const MAX_LINE_BYTES: usize = 4 << 10;
/// The fields of a user that are read.
const FIELDS: [&str; 4] = ["user_id", "display_name", "state", "etag"];

/// The source of the users.
pub enum Source {
    One(UserRef),
    Filter(String),
    File(PathBuf),
}

/// A user to change.
#[derive(Clone, Debug)]
pub struct Target {
    /// The user as the source names it.
    pub text: String,
    pub user_id: String,
    pub display_name: String,
    pub state: State,
    /// The etag of a user that a filter matched: it may no longer match once the user changes.
    pub etag: String,
}

/// The users of a source.
#[derive(Default)]
pub struct Targets {
    /// Those that the action changes.
    pub eligible: Vec<Target>,
    /// The number of users that are as the action leaves them.
    pub unchanged: usize,
    /// The number of users that a filter matches and the action does not apply to.
    pub skipped: usize,
    /// The named users that the action cannot change, with the reason.
    pub refused: Vec<(String, String)>,
}

impl Targets {
    /// Finds the users of a source.
    pub async fn find(session: &Session, source: Source, action: &Action) -> Result<Self, Failure> {
        let mut targets = Self::default();
        match source {
            Source::One(user) => targets.add_named(session, vec![user], action).await?,
            Source::Filter(filter) => targets.add_matching(session, filter, action).await?,
            Source::File(path) => {
                let mut users = read_file(&path)?;
                while !users.is_empty() {
                    let rest = users.split_off(users.len().min(PAGE_SIZE));
                    targets.add_named(session, users, action).await?;
                    users = rest;
                }
            }
        }
        Ok(targets)
    }

    async fn add_matching(
        &mut self,
        session: &Session,
        filter: String,
        action: &Action,
    ) -> Result<(), Failure> {
        if filter.trim().is_empty() {
            let message = "--filter is empty, which would be every user: write a condition";
            return Err(Failure::Usage(message.to_owned()));
        }
        let mut request = SearchUsersRequest {
            tenant: session.tenant(),
            filter,
            page_size: PAGE_SIZE as i32,
            read_mask: read_mask(),
            ..SearchUsersRequest::default()
        };
        loop {
            let message = request.clone();
            let outcome = session.directory().search_users(message).await;
            let answer =
                session.answer(outcome.map_err(|error| with_excerpt(error, &request.filter)))?;
            for user in answer.users {
                let (text, etag) = (user.user_id.clone(), user.etag.clone());
                let target = Target { etag, ..target(text, user) };
                match action.changes(target.state) || action.is_done(target.state) {
                    true => self.add(action, target)?,
                    false => self.skipped += 1,
                }
            }
            if answer.next_page_token.is_empty() {
                return Ok(());
            }
            request.page_token = answer.next_page_token;
        }
    }

    /// Adds users by id or identifier. Those that are not there are refused.
    async fn add_named(
        &mut self,
        session: &Session,
        users: Vec<UserRef>,
        action: &Action,
    ) -> Result<(), Failure> {
        let (mut ids, mut identifiers) = (Vec::new(), Vec::new());
        for user in users {
            match user {
                UserRef::Id(id) => ids.push(id),
                UserRef::Identifier(typed) => identifiers.push(typed),
            }
        }
        for (text, found) in get_users(session, ids).await? {
            self.add_found(action, text, found)?;
        }
        if identifiers.is_empty() {
            return Ok(());
        }
        let request = v1::BatchResolveIdentitiesRequest {
            tenant: session.tenant(),
            identifiers: identifiers.iter().map(|typed| typed.message.clone()).collect(),
            show_disabled: true,
            read_mask: read_mask(),
            ..Default::default()
        };
        let outcome = session.directory().batch_resolve_identities(request).await;
        let results = session.answer(outcome)?.results;
        for (typed, result) in identifiers.into_iter().zip(results) {
            let found = match result.outcome {
                Some(ResolveOutcome::Found(found)) => Ok(found.user.unwrap_or_default()),
                Some(ResolveOutcome::Error(error)) => Err(error),
                None => Err(rpc::Status::default()),
            };
            self.add_found(action, typed.text, found)?;
        }
        Ok(())
    }

    fn add_found(
        &mut self,
        action: &Action,
        text: String,
        found: Result<User, rpc::Status>,
    ) -> Result<(), Failure> {
        match found {
            Ok(user) => self.add(action, target(text, user)),
            Err(error) => {
                self.refused.push((text, error.message));
                Ok(())
            }
        }
    }

    fn add(&mut self, action: &Action, target: Target) -> Result<(), Failure> {
        if action.changes(target.state) {
            self.eligible.push(target);
        } else if action.is_done(target.state) {
            self.unchanged += 1;
        } else {
            let word = state::word(target.state);
            self.refused.push((target.text, format!("the user is {word}")));
        }
        match self.eligible.len() + self.refused.len() > MAX_USERS {
            true => {
                Err(Failure::Usage(format!("more than {MAX_USERS} users: take fewer at a time")))
            }
            false => Ok(()),
        }
    }
}

fn target(text: String, user: User) -> Target {
    let state = user.state();
    let User { user_id, display_name, .. } = user;
    Target { text, user_id, display_name, state, etag: String::new() }
}

fn read_mask() -> Option<FieldMask> {
    Some(FieldMask { paths: FIELDS.map(str::to_owned).to_vec() })
}

/// The users with these ids.
async fn get_users(
    session: &Session,
    ids: Vec<String>,
) -> Result<Vec<(String, Result<User, rpc::Status>)>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let request = v1::BatchGetUsersRequest {
        tenant: session.tenant(),
        user_ids: ids.clone(),
        read_mask: read_mask(),
    };
    let outcome = session.directory().batch_get_users(request).await;
    let results = session.answer(outcome)?.results.into_iter().map(|result| match result.outcome {
        Some(GetOutcome::Found(found)) if found.merged_from.is_empty() => {
            Ok(found.user.unwrap_or_default())
        }
        Some(GetOutcome::Found(found)) => {
            let primary = found.user.unwrap_or_default().user_id;
            let message = format!("the user was merged into {primary}");
            Err(rpc::Status { code: Code::FailedPrecondition.into(), message, details: Vec::new() })
        }
        Some(GetOutcome::Error(error)) => Err(error),
        None => Err(rpc::Status::default()),
    });
    Ok(ids.into_iter().zip(results).collect())
}

/// The users that a file names. Fails at the first line that names none.
fn read_file(path: &Path) -> Result<Vec<UserRef>, Failure> {
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

/// Whether a call can never succeed, whatever user it is about.
pub fn is_denied(error: &Error) -> bool {
    matches!(error.code(), Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
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
