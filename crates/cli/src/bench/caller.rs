//! The client of one caller: a shared connection, random numbers, and checks of answers.

use std::sync::Arc;

use http::uri::PathAndQuery;
use prost::Message;
use prost_types::Duration as ProtoDuration;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::message::{Found, UserResponse};
use super::numbered_user::{KINDS, NumberedUser};
use super::targets::Targets;
use polynym_client::{Client, Connection};
use polynym_proto::v1::{BatchResolveIdentitiesRequest, CreateUserRequest, Identifier};

const BATCH: &str = "/polynym.v1.DirectoryService/BatchResolveIdentities";
const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// One caller.
pub struct Caller {
    /// The client, for calls by its rules.
    pub client: Client,
    grpc: Grpc<Connection>,
    tenant: Arc<str>,
    random: u64,
    scratch: String,
}

impl Caller {
    pub fn new(client: Client, tenant: Arc<str>, number: u64) -> Self {
        let grpc = Grpc::new(client.connection());
        let random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { client, grpc, tenant, random, scratch: String::new() }
    }

    /// Makes one call.
    pub async fn unary<Q, A>(&mut self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let path = PathAndQuery::from_static(path);
        Ok(self.grpc.unary(Request::new(message), path, codec).await?.into_inner())
    }

    pub fn tenant(&self) -> String {
        // An empty name means the default tenant and allocates nothing.
        if &*self.tenant == "default" { String::new() } else { self.tenant.to_string() }
    }

    /// A random number, by xorshift64* (Vigna 2016).
    const fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A random user, and a random kind of its identifiers.
    pub fn random_target(&mut self, targets: &Targets) -> (NumberedUser, usize) {
        // The upper 53 bits are the most random, and fill the fraction of a float.
        let share = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        let kind = (self.random() >> 32) as usize % KINDS;
        (NumberedUser(targets.pick(share)), kind)
    }

    /// Whether the answer is the user whose identifier was looked up.
    pub fn is_expected(&mut self, (person, kind): (NumberedUser, usize), found: &Found) -> bool {
        let Some((user, identity)) = found.user.as_ref().zip(found.identity.as_ref()) else {
            return false;
        };
        let identifier = identity.identifier.as_ref();
        person.is_named(&user.display_name, &mut self.scratch)
            && identifier.is_some_and(|identifier| {
                person.has_identifier(kind, identifier, &mut self.scratch)
            })
    }

    /// Whether this is the name of the user.
    pub fn is_named(&mut self, person: NumberedUser, name: &[u8]) -> bool {
        person.is_named(name, &mut self.scratch)
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

    /// Registers a user.
    pub async fn create(&mut self, person: NumberedUser) -> Result<UserResponse, Status> {
        let request = CreateUserRequest {
            tenant: self.tenant(),
            user: Some(person.user()),
            request_id: String::new(),
        };
        self.unary(CREATE, request).await
    }

    /// Whether the answer has the name and all identifiers of the user.
    pub fn is_complete(&mut self, person: NumberedUser, answer: &UserResponse) -> bool {
        answer.user.as_ref().is_some_and(|found| {
            person.is_named(&found.display_name, &mut self.scratch)
                && (0..KINDS).all(|kind| found.has(&person.identifier(kind)))
        })
    }
}
