//! The base of every kind of call: a share of a connection, random numbers, and the check of an
//! answer.

use std::sync::Arc;

use http::uri::PathAndQuery;
use prost::Message;
use prost_types::Duration as ProtoDuration;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::message::{Changed, Found, Listed};
use super::people::{KINDS, Person};
use super::targets::Targets;
use crate::cli::client::Connection;
use crate::proto::v1::{BatchResolveIdentitiesRequest, CreateUserRequest, Identifier};

const BATCH: &str = "/polynym.v1.DirectoryService/BatchResolveIdentities";
const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// The state of a caller: its share of a connection, and its own random numbers.
pub struct Caller {
    grpc: Grpc<Connection>,
    tenant: Arc<str>,
    random: u64,
    scratch: String,
}

impl Caller {
    pub fn new(connection: Connection, tenant: Arc<str>, number: u64) -> Self {
        let grpc = Grpc::new(connection).max_decoding_message_size(usize::MAX);
        let random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { grpc, tenant, random, scratch: String::new() }
    }

    /// Makes one call.
    pub async fn unary<Q, A>(&mut self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let answer =
            self.grpc.unary(Request::new(message), PathAndQuery::from_static(path), codec).await;
        answer.map(tonic::Response::into_inner)
    }

    pub fn tenant(&self) -> String {
        // The empty name means the same, and costs nothing.
        if &*self.tenant == "default" { String::new() } else { self.tenant.to_string() }
    }

    /// A number, by xorshift64* (Vigna 2016).
    const fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One of the users, and one of the kinds.
    pub fn anybody(&mut self, targets: &Targets) -> (Person, usize) {
        // The upper bits are the better ones, and as many as the fraction of a float has.
        let share = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        let kind = (self.random() >> 32) as usize % KINDS;
        (Person(targets.pick(share)), kind)
    }

    /// Whether the answer is the person who was asked for by one of the kinds.
    pub fn is_right(&mut self, (person, kind): (Person, usize), found: &Found) -> bool {
        let Some((user, identity)) = found.user.as_ref().zip(found.identity.as_ref()) else {
            return false;
        };
        let identifier = identity.identifier.as_ref();
        person.is_named(&user.display_name, &mut self.scratch)
            && identifier
                .is_some_and(|identifier| person.is_identified(kind, identifier, &mut self.scratch))
    }

    /// Resolves many identifiers.
    pub async fn batch<A: Message + Default + 'static>(
        &mut self,
        identifiers: Vec<Identifier>,
        max_staleness: Option<ProtoDuration>,
    ) -> Result<A, Status> {
        let request = BatchResolveIdentitiesRequest {
            tenant: self.tenant(),
            identifiers,
            max_staleness,
            ..Default::default()
        };
        self.unary(BATCH, request).await
    }

    /// Registers a person.
    pub async fn create(&mut self, person: Person) -> Result<Changed, Status> {
        let request = CreateUserRequest {
            tenant: self.tenant(),
            user: Some(person.user()),
            request_id: String::new(),
        };
        self.unary(CREATE, request).await
    }

    /// Whether the user is this person, with all that belongs to it.
    pub fn is_whole(&mut self, person: Person, answer: &Changed) -> bool {
        let whole = |user: &Listed| (0..KINDS).all(|kind| user.has(&person.identifier(kind)));
        answer
            .user
            .as_ref()
            .is_some_and(|u| person.is_named(&u.display_name, &mut self.scratch) && whole(u))
    }
}
