//! The calls that change something.

use std::sync::Arc;

use tonic::Status;

use super::caller::Caller;
use super::message::Changed;
use super::people::Person;
use super::work::{Verdict, Work};
use crate::locality::LocalityId;
use crate::proto::v1::{Identifier, LinkIdentityRequest, UnlinkIdentityRequest, identifier::Kind};

const LINK: &str = "/polynym.v1.RegistryService/LinkIdentity";
const UNLINK: &str = "/polynym.v1.RegistryService/UnlinkIdentity";

/// Registers people with new numbers.
pub struct Create {
    caller: Caller,
    next: u64,
    step: u64,
}

impl Create {
    /// The numbers are `first` and every `step`th after it.
    pub fn new(caller: Caller, first: u64, step: u64) -> Self {
        Self { caller, next: first, step }
    }
}

impl Work for Create {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let person = Person(self.next);
        self.next += self.step;
        let answer = self.caller.create(person).await?;
        Ok(Verdict::right_if(self.caller.is_whole(person, &answer)))
    }
}

/// Links a new handle to one user after the other, and unlinks it again, so that the store does not grow.
pub struct Link {
    caller: Caller,
    ids: Arc<Vec<LocalityId>>,
    next: u64,
    step: u64,
    linked: Option<(usize, Identifier)>,
}

impl Link {
    /// `ids` are those of the people 0, 1 and so on. The handles' numbers are `first` and every `step`th after it.
    pub fn new(caller: Caller, ids: Arc<Vec<LocalityId>>, first: u64, step: u64) -> Self {
        Self { caller, ids, next: first, step, linked: None }
    }

    async fn link(&mut self) -> Result<Verdict, Status> {
        let number = self.next;
        self.next += self.step;
        let user = (number & 0xffff_ffff) as usize % self.ids.len();
        let handle = Identifier { kind: Some(Kind::Handle(format!("link_{number}"))) };
        let request = LinkIdentityRequest {
            tenant: self.caller.tenant(),
            user_id: self.ids[user].to_string(),
            identifier: Some(handle.clone()),
            ..Default::default()
        };
        let answer: Changed = self.caller.unary(LINK, request).await?;
        let right = self.is_user(user, &answer) && has(&answer, &handle);
        self.linked = Some((user, handle));
        Ok(Verdict::right_if(right))
    }

    async fn unlink(&mut self, user: usize, handle: Identifier) -> Result<Verdict, Status> {
        let request = UnlinkIdentityRequest {
            tenant: self.caller.tenant(),
            user_id: self.ids[user].to_string(),
            identifier: Some(handle.clone()),
            ..Default::default()
        };
        let answer: Changed = self.caller.unary(UNLINK, request).await?;
        Ok(Verdict::right_if(self.is_user(user, &answer) && !has(&answer, &handle)))
    }

    fn is_user(&mut self, user: usize, answer: &Changed) -> bool {
        self.caller.is_whole(Person(user as u64), answer)
    }
}

fn has(answer: &Changed, handle: &Identifier) -> bool {
    answer.user.as_ref().is_some_and(|user| user.has(handle))
}

impl Work for Link {
    async fn call(&mut self) -> Result<Verdict, Status> {
        match self.linked.take() {
            Some((user, handle)) => self.unlink(user, handle).await,
            None => self.link().await,
        }
    }

    async fn finish(&mut self) {
        if let Some((user, handle)) = self.linked.take() {
            // A handle that stays does no harm: the next run takes other ones.
            let _ = self.unlink(user, handle).await;
        }
    }
}
