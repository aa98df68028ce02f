//! The calls that look up users, and the checks of their answers.

use std::sync::Arc;

use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::caller::Caller;
use super::message;
use super::message::{Found, Outcome};
use super::numbered_user::NumberedUser;
use super::targets::Targets;
use polynym_proto::v1::ResolveIdentityRequest;

const RESOLVE: &str = "/polynym.v1.DirectoryService/ResolveIdentity";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// The result of checking an answer, in items of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Items that differ from the loaded users.
    pub wrong: u64,
    /// Items that failed, or an answer of a server that does not serve.
    pub errors: u64,
}

impl Verdict {
    pub const CORRECT: Verdict = Verdict { wrong: 0, errors: 0 };

    pub fn correct_if(is_correct: bool) -> Self {
        Self { wrong: u64::from(!is_correct), errors: 0 }
    }
}

/// A kind of call, made repeatedly.
pub trait Work: Send + 'static {
    /// Makes one call and checks its answer.
    fn call(&mut self) -> impl Future<Output = Result<Verdict, Status>> + Send;

    /// Undoes the last call.
    fn finish(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Looks up one identifier.
pub struct Resolve {
    caller: Caller,
    targets: Arc<Targets>,
}

impl Resolve {
    pub fn new(caller: Caller, targets: Arc<Targets>) -> Self {
        Self { caller, targets }
    }
}

impl Work for Resolve {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let (person, kind) = self.caller.random_target(&self.targets);
        let request = ResolveIdentityRequest {
            tenant: self.caller.tenant(),
            identifier: Some(person.identifier(kind)),
            max_staleness: self.targets.max_staleness,
            ..Default::default()
        };
        match self.caller.unary(RESOLVE, request).await {
            Ok(found) => Ok(Verdict::correct_if(self.caller.is_expected((person, kind), &found))),
            Err(status) if status.code() == Code::NotFound => Ok(Verdict::correct_if(false)),
            Err(status) => Err(status),
        }
    }
}

/// Looks up one identifier. Callers share calls, as those of a client do.
pub struct SharedResolve {
    caller: Caller,
    targets: Arc<Targets>,
}

impl SharedResolve {
    pub fn new(caller: Caller, targets: Arc<Targets>) -> Self {
        Self { caller, targets }
    }
}

impl Work for SharedResolve {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let (person, kind) = self.caller.random_target(&self.targets);
        let options = ResolveIdentityRequest {
            tenant: self.caller.tenant(),
            max_staleness: self.targets.max_staleness,
            ..Default::default()
        };
        match self.caller.client.resolve(person.identifier(kind)).options(options).await {
            Ok(answer) => {
                let found = Found::from(answer);
                Ok(Verdict::correct_if(self.caller.is_expected((person, kind), &found)))
            }
            Err(error) if error.code() == Code::NotFound => Ok(Verdict::correct_if(false)),
            Err(error) => Err(error.status().clone()),
        }
    }
}

/// Looks up many identifiers.
pub struct Batch {
    caller: Caller,
    targets: Arc<Targets>,
    size: usize,
    asked: Vec<(NumberedUser, usize)>,
}

impl Batch {
    pub fn new(caller: Caller, targets: Arc<Targets>, size: usize) -> Self {
        Self { caller, targets, size, asked: Vec::with_capacity(size) }
    }

    fn check(&mut self, answer: &message::Batch) -> Verdict {
        let missing = self.asked.len().abs_diff(answer.results.len()) as u64;
        let mut verdict = Verdict { wrong: missing, errors: 0 };
        for (&asked, item) in self.asked.iter().zip(&answer.results) {
            match &item.outcome {
                Some(Outcome::Found(found)) => {
                    verdict.wrong += u64::from(!self.caller.is_expected(asked, found))
                }
                Some(Outcome::Error(status)) if status.code != Code::NotFound as i32 => {
                    verdict.errors += 1
                }
                Some(Outcome::Error(_)) | None => verdict.wrong += 1,
            }
        }

        verdict
    }
}

impl Work for Batch {
    async fn call(&mut self) -> Result<Verdict, Status> {
        self.asked.clear();
        self.asked.extend((0..self.size).map(|_| self.caller.random_target(&self.targets)));
        let identifiers =
            self.asked.iter().map(|(person, kind)| person.identifier(*kind)).collect();
        let answer = self.caller.batch(identifiers, self.targets.max_staleness).await?;
        Ok(self.check(&answer))
    }
}

/// Checks the server's health.
pub struct Health(pub Caller);

impl Work for Health {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let answer: HealthCheckResponse =
            self.0.unary(HEALTH, HealthCheckRequest::default()).await?;
        Ok(Verdict { wrong: 0, errors: u64::from(answer.status() != ServingStatus::Serving) })
    }
}
