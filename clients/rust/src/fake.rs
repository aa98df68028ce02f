//! A server of look-ups whose answers the tests write.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use polynym_proto::google::rpc;
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tonic_types::{ErrorDetails, StatusExt};

use crate::Builder;
use crate::v1::batch_resolve_identities_response::{Found, Result as Item, result::Outcome};
use crate::v1::identifier::Kind;
use crate::v1::{
    BatchResolveIdentitiesRequest, BatchResolveIdentitiesResponse, Identifier,
    ResolveIdentityRequest, ResolveIdentityResponse, User,
};

/// A call of the client.
pub struct Call {
    /// From 1.
    pub number: usize,
    pub is_batch: bool,
    pub count: usize,
}

/// The reaction of the server to a call.
#[derive(Clone)]
pub enum Answer {
    /// It finds every user. The id is the handle.
    Found,
    /// It fails.
    Fails(Status),
    /// It refuses the first item of a batch.
    RefusesFirst(Status),
    /// It does not answer.
    Never,
}

type Script = Arc<dyn Fn(&Call) -> Answer + Send + Sync>;

/// A running server.
pub struct Fake {
    pub address: String,
    /// The calls so far: the number of identifiers of each.
    calls: Arc<Mutex<Vec<usize>>>,
}

impl Fake {
    pub async fn start(script: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_with(listener, script)
    }

    pub fn start_with(
        listener: TcpListener,
        script: impl Fn(&Call) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let address = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::default();
        let directory = Directory { script: Arc::new(script), calls: Arc::clone(&calls) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, directory.clone()));
            }
        });
        Self { address, calls }
    }

    pub fn builder(&self) -> Builder {
        Builder::new(&self.address).timeout(Duration::from_secs(30))
    }

    /// The numbers of identifiers of the calls so far.
    pub fn counts(&self) -> Vec<usize> {
        self.calls.lock().unwrap().clone()
    }
}

/// The status of a reason, with a delay if it is not zero, and a limit.
pub fn status(code: Code, reason: &str, delay: Duration, limit: &str) -> Status {
    let metadata = [("limit".to_owned(), limit.to_owned())];
    let mut details = ErrorDetails::with_error_info(reason, "polynym", metadata);
    if !delay.is_zero() {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code, reason, details)
}

async fn serve(stream: TcpStream, directory: Directory) {
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let directory = directory.clone();
        async move {
            let is_batch = request.uri().path().ends_with("BatchResolveIdentities");
            Ok::<_, std::convert::Infallible>(match is_batch {
                true => Grpc::new(ProstCodec::default()).unary(Batch(directory), request).await,
                false => Grpc::new(ProstCodec::default()).unary(Single(directory), request).await,
            })
        }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    // The connection of a client that has ended is no error.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

#[derive(Clone)]
struct Directory {
    script: Script,
    calls: Arc<Mutex<Vec<usize>>>,
}

impl Directory {
    fn answer(&self, identifiers: &[Identifier], is_batch: bool) -> Answer {
        let mut calls = self.calls.lock().unwrap();
        calls.push(identifiers.len());
        let (number, count) = (calls.len(), identifiers.len());
        (self.script)(&Call { number, is_batch, count })
    }
}

#[derive(Clone)]
struct Single(Directory);
#[derive(Clone)]
struct Batch(Directory);

type Answering<A> = BoxFuture<'static, Result<Response<A>, Status>>;

impl UnaryService<ResolveIdentityRequest> for Single {
    type Response = ResolveIdentityResponse;
    type Future = Answering<Self::Response>;

    fn call(&mut self, request: Request<ResolveIdentityRequest>) -> Self::Future {
        let identifier = request.into_inner().identifier.unwrap_or_default();
        let user = Some(user(&identifier));
        match self.0.answer(&[identifier], false) {
            Answer::Fails(status) | Answer::RefusesFirst(status) => ready(Err(status)).boxed(),
            Answer::Never => pending().boxed(),
            Answer::Found => {
                ready(Ok(Response::new(ResolveIdentityResponse { user, identity: None }))).boxed()
            }
        }
    }
}

impl UnaryService<BatchResolveIdentitiesRequest> for Batch {
    type Response = BatchResolveIdentitiesResponse;
    type Future = Answering<Self::Response>;

    fn call(&mut self, request: Request<BatchResolveIdentitiesRequest>) -> Self::Future {
        let identifiers = request.into_inner().identifiers;
        let found = |identifier| {
            let found = Found { user: Some(user(identifier)), identity: None };
            Item { outcome: Some(Outcome::Found(found)) }
        };
        let mut results: Vec<Item> = identifiers.iter().map(found).collect();
        match self.0.answer(&identifiers, true) {
            Answer::Fails(status) => return ready(Err(status)).boxed(),
            Answer::Never => return pending().boxed(),
            Answer::RefusesFirst(status) => {
                let status = rpc::Status::decode(status.details()).unwrap();
                results[0].outcome = Some(Outcome::Error(status));
            }
            Answer::Found => {}
        }
        ready(Ok(Response::new(BatchResolveIdentitiesResponse { results }))).boxed()
    }
}

fn user(identifier: &Identifier) -> User {
    User { user_id: handle(identifier), ..Default::default() }
}

fn handle(identifier: &Identifier) -> String {
    match &identifier.kind {
        Some(Kind::Handle(handle)) => handle.clone(),
        _ => String::new(),
    }
}
