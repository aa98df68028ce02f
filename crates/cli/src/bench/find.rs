//! The calls that find users by what people type, and the checks of their answers.

use std::sync::Arc;

use tonic::Status;

use super::caller::Caller;
use super::message::FoundUsers;
use super::numbered_user::NumberedUser;
use super::targets::Targets;
use super::work::{Verdict, Work};
use polynym_proto::v1::FindUsersRequest;

const FIND: &str = "/polynym.v1.DirectoryService/FindUsers";

/// Finds a user by a text, in turn by each kind of texts.
pub struct Find {
    caller: Caller,
    targets: Arc<Targets>,
    calls: usize,
}

impl Find {
    pub fn new(caller: Caller, targets: Arc<Targets>) -> Self {
        Self { caller, targets, calls: 0 }
    }
}

impl Work for Find {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let (person, _) = self.caller.random_target(&self.targets);
        let name = person.name();
        let mut words = name.split(' ');
        let (first, last) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let number = person.0;
        let (text, is_one) = match self.calls % 5 {
            // The last word may go on: the number first, which others begin with.
            0 => (format!("{number} {first} {last}"), true),
            1 => (format!("{first}.{last}.{number}@ex"), true),
            2 => (format!("{first} <{first}.{last}.{number}@example.com>"), true),
            // Words that thousands of users have, and a wrong letter: many users match.
            3 => (format!("{last} {first}"), false),
            _ => (format!("x{first} {number}"), false),
        };
        self.calls += 1;
        let request = FindUsersRequest { tenant: self.caller.tenant(), text, ..Default::default() };
        let found: FoundUsers = self.caller.unary(FIND, request).await?;
        let is_correct = if is_one { self.has(person, &found) } else { !found.matches.is_empty() };
        Ok(Verdict::correct_if(is_correct))
    }
}

impl Find {
    fn has(&mut self, person: NumberedUser, found: &FoundUsers) -> bool {
        let users = found.matches.iter().filter_map(|found| found.user.as_ref());
        let mut names = users.map(|user| &user.display_name);
        names.any(|name| self.caller.is_named(person, name))
    }
}
