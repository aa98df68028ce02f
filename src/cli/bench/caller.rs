//! The base of every kind of call: a share of a connection, random numbers, and the check of an
//! answer.

use std::sync::Arc;

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::message::{Changed, Found, Listed};
use super::people::{KINDS, Person};
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

    /// A number below `limit`, by xorshift64* (Vigna 2016).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let number = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(number) * u128::from(limit)) >> 64) as u64
    }

    /// One of the first `users`, and one of the kinds.
    pub fn anybody(&mut self, users: u64) -> (Person, usize) {
        let n = self.below(users * KINDS as u64);
        (Person(n / KINDS as u64), (n % KINDS as u64) as usize)
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
    ) -> Result<A, Status> {
        let request = BatchResolveIdentitiesRequest {
            tenant: self.tenant(),
            identifiers,
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
