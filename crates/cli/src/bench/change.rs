//! The calls that change users.

use std::sync::Arc;

use locality_uuid::LocalityId;
use tonic::{Code, Status};

use super::caller::Caller;
use super::message::UserResponse;
use super::numbered_user::NumberedUser;
use super::work::{Verdict, Work};
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{Identifier, LinkIdentityRequest, UnlinkIdentityRequest};

const LINK: &str = "/polynym.v1.RegistryService/LinkIdentity";
const UNLINK: &str = "/polynym.v1.RegistryService/UnlinkIdentity";

/// Registers users with new numbers.
pub struct Create {
    caller: Caller,
    next: u64,
    step: u64,
}

impl Create {
    /// The users' numbers are `first` and every `step`th after it.
    pub fn new(caller: Caller, first: u64, step: u64) -> Self {
        Self { caller, next: first, step }
    }
}

impl Work for Create {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let person = NumberedUser(self.next);
        let answer = self.caller.create(person).await;
        // A failed call repeats its number: a gap would hide later users from a removal.
        if !answer.as_ref().is_err_and(|status| status.code() != Code::AlreadyExists) {
            self.next += self.step;
        }
        Ok(Verdict::correct_if(self.caller.is_complete(person, &answer?)))
    }
}

/// Links a new email to one user after the other, and unlinks it again, so that the store does not
/// grow.
pub struct Link {
    caller: Caller,
    ids: Arc<Vec<LocalityId>>,
    next: u64,
    step: u64,
    linked: Option<(usize, Identifier)>,
}

impl Link {
    /// `ids` are those of the users 0, 1 and so on. The emails' numbers are `first` and every
    /// `step`th after it.
    pub fn new(caller: Caller, ids: Arc<Vec<LocalityId>>, first: u64, step: u64) -> Self {
        Self { caller, ids, next: first, step, linked: None }
    }

    async fn link(&mut self) -> Result<Verdict, Status> {
        let number = self.next;
        self.next += self.step;
        let user = (number & 0xffff_ffff) as usize % self.ids.len();
        let email = Identifier { kind: Some(Kind::Email(format!("link_{number}@example.com"))) };
        let request = LinkIdentityRequest {
            tenant: self.caller.tenant(),
            user_id: self.ids[user].to_string(),
            identifier: Some(email.clone()),
            ..Default::default()
        };
        let answer: UserResponse = self.caller.unary(LINK, request).await?;
        let right = self.is_user(user, &answer) && has(&answer, &email);
        self.linked = Some((user, email));

        Ok(Verdict::correct_if(right))
    }

    async fn unlink(&mut self, user: usize, email: Identifier) -> Result<Verdict, Status> {
        let request = UnlinkIdentityRequest {
            tenant: self.caller.tenant(),
            user_id: self.ids[user].to_string(),
            identifier: Some(email.clone()),
            ..Default::default()
        };
        let answer: UserResponse = self.caller.unary(UNLINK, request).await?;
        Ok(Verdict::correct_if(self.is_user(user, &answer) && !has(&answer, &email)))
    }

    fn is_user(&mut self, user: usize, answer: &UserResponse) -> bool {
        self.caller.is_complete(NumberedUser(user as u64), answer)
    }
}

fn has(answer: &UserResponse, email: &Identifier) -> bool {
    answer.user.as_ref().is_some_and(|user| user.has(email))
}

impl Work for Link {
    async fn call(&mut self) -> Result<Verdict, Status> {
        match self.linked.take() {
            Some((user, email)) => self.unlink(user, email).await,
            None => self.link().await,
        }
    }

    async fn finish(&mut self) {
        if let Some((user, email)) = self.linked.take() {
            // A remaining email is harmless: the next run uses others.
            let _ = self.unlink(user, email).await;
        }
    }
}
