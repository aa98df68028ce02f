//! Answers to callers when the store fails in ways that real stores do not on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym::grpc;
use polynym::readiness::{Readiness, State};
use polynym_access::Access;
use polynym_deliver::AddressPolicy;
use polynym_directory::{
    Backend, Claim, Consistency, Directory, EncodedUser, Error, ItemResult, Limits, LookUps,
    Mutation, Mutations, OrderedReads, Outcome, Reads, Resolved, Tenant, View,
};
use polynym_embedded::Embedded;
use polynym_identifier::IdentityKey;
use polynym_proto::v1;
use polynym_transport::Options;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::support::calls::{Client, handle};
use crate::support::status::{StatusDetails, status_details};

/// A store that panics at look-ups, never answers a get, and does not know the outcome of any
/// mutation. Its health check may succeed after a delay.
struct Faulty {
    healthy_after: Option<Duration>,
    /// Whether the health check is never answered.
    hangs: Arc<AtomicBool>,
    /// One permit for each get received.
    gets: Arc<Semaphore>,
    /// One permit for each mutation received, and one for each that may go on; else all may.
    mutations: Option<[Arc<Semaphore>; 2]>,
}

impl Default for Faulty {
    fn default() -> Self {
        let gets = Arc::new(Semaphore::new(0));
        Self { healthy_after: None, hangs: Arc::default(), gets, mutations: None }
    }
}

#[async_trait]
impl LookUps for Faulty {
    async fn resolve(
        &self,
        _: &[IdentityKey],
        consistency: Consistency,
        _: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        match consistency {
            Consistency::Eventual => Err(Error::Unavailable("cut off: secret cause".into())),
            _ => panic!("secret panic"),
        }
    }

    async fn get(
        &self,
        _: &Tenant,
        _: &[LocalityId],
        _: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.gets.add_permits(1);
        std::future::pending().await
    }
}

#[async_trait]
impl Reads for Faulty {
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.get(tenant, ids, view).await
    }

    async fn claims(&self, _: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        Err(Error::Unavailable("cut off: secret cause".into()))
    }

    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error> {
        Err(Error::Unavailable("cut off: secret cause".into()))
    }

    async fn check(&self) -> Result<(), Error> {
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let after = self.healthy_after.ok_or_else(|| Error::Unavailable("down".into()))?;
        tokio::time::sleep(after).await;
        Ok(())
    }
}

#[async_trait]
impl Mutations for Faulty {
    async fn mutate(&self, _: Mutation) -> Result<Outcome, Error> {
        if let Some([received, allowed]) = &self.mutations {
            received.add_permits(1);
            allowed.acquire().await.unwrap().forget();
        }
        Err(Error::OutcomeUnknown("reply lost: secret cause".into()))
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        mutations.into_iter().map(|_| Err(Error::Unavailable("cut off".into()))).collect()
    }

    async fn counter(&self, _: &str) -> Result<u64, Error> {
        Err(Error::Unavailable("cut off".into()))
    }
}

/// Serves a faulty store and returns the URL.
async fn serve(options: Options) -> String {
    serve_store(Faulty::default(), options).await
}

async fn serve_store(store: Faulty, options: Options) -> String {
    serve_with(store, options, Arc::default()).await
}

async fn serve_with(store: Faulty, options: Options, readiness: Arc<Readiness>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let store = Arc::new(store);
    let folder = tempfile::tempdir().unwrap();
    let whole = Arc::new(Embedded::open(folder.path(), Default::default()).unwrap()).backend();
    let backend =
        Backend { lookups: store.clone(), reads: store.clone(), mutations: store, ..whole };
    let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default());
    tokio::spawn(grpc::serve(
        listener,
        Arc::new(directory),
        Arc::new(Access::open()),
        options,
        AddressPolicy::default(),
        readiness,
        std::future::pending(),
    ));
    url
}

fn get() -> v1::GetUserRequest {
    v1::GetUserRequest {
        user_id: "20be0ffc-314a-bd53-7a50-013a65ca76d2".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_panic_is_answered_without_detail() {
    let mut client = Client::connect(&serve(Options::default()).await).await;
    for _ in 0..3 {
        let status = client.resolve(handle("joe")).await.unwrap_err();
        assert_eq!(status.message(), "internal error");
        assert_eq!(status_details(status), StatusDetails::new(Code::Internal, "INTERNAL"));
    }
}

#[tokio::test]
async fn a_lost_outcome_is_reported_as_unknown() {
    let mut client = Client::connect(&serve(Options::default()).await).await;
    let status = client.create(v1::User::default()).await.unwrap_err();
    assert!(!status.message().contains("secret"), "{status:?}");
    assert_eq!(status_details(status), StatusDetails::new(Code::Unknown, "OUTCOME_UNKNOWN"));
}

#[tokio::test]
async fn an_unavailable_store_is_reported_with_a_retry_delay() {
    let mut client = Client::connect(&serve(Options::default()).await).await;
    let consistency = v1::Consistency::Eventual.into();
    let request = v1::ResolveIdentityRequest {
        identifier: Some(handle("joe")),
        consistency,
        ..Default::default()
    };

    let status = client.directory.resolve_identity(request).await.unwrap_err();
    assert!(!status.message().contains("secret"), "{status:?}");
    assert_eq!(
        status_details(status),
        StatusDetails { retry: true, ..StatusDetails::new(Code::Unavailable, "STORE_UNAVAILABLE") }
    );
}

#[tokio::test]
async fn a_slow_call_ends_at_its_deadline() {
    let options = Options { call_timeout: Duration::from_millis(200), ..Options::default() };
    let mut client = Client::connect(&serve(options).await).await;
    let status = client.directory.get_user(get()).await.unwrap_err();
    assert!(!status.message().contains("mutation"), "{status:?}");
    assert_eq!(status_details(status), StatusDetails::new(Code::DeadlineExceeded, "DEADLINE"));
}

#[tokio::test]
async fn excess_calls_are_refused_at_once() {
    let options =
        Options { max_calls: 1, call_timeout: Duration::from_secs(60), ..Options::default() };

    let store = Faulty::default();
    let gets = store.gets.clone();
    let client = Client::connect(&serve_store(store, options).await).await;
    let (mut first, mut second) = (client.directory.clone(), client.directory);
    let waiting = tokio::spawn(async move { first.get_user(get()).await });
    gets.acquire().await.unwrap().forget();

    let status = second.get_user(get()).await.unwrap_err();
    assert_eq!(
        status_details(status),
        StatusDetails { retry: true, ..StatusDetails::new(Code::ResourceExhausted, "OVERLOADED") }
    );
    assert!(!waiting.is_finished(), "the first call is still pending");
}

#[tokio::test]
async fn a_mutation_whose_caller_has_left_keeps_its_permit() {
    let options =
        Options { max_calls: 1, call_timeout: Duration::from_secs(10), ..Options::default() };
    let [received, allowed] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let mutations = Some([received.clone(), allowed.clone()]);
    let store = Faulty { mutations, ..Faulty::default() };
    let mut client = Client::connect(&serve_store(store, options).await).await;
    let mut leaving = client.clone();
    let left = tokio::spawn(async move { leaving.create(v1::User::default()).await });
    received.acquire().await.unwrap().forget();
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    // The server resets the call.
    tokio::time::sleep(Duration::from_millis(500)).await;

    let refused = status_details(client.create(v1::User::default()).await.unwrap_err());
    assert_eq!((refused.code, &*refused.reason), (Code::ResourceExhausted, "OVERLOADED"));
    allowed.add_permits(2);
    let since = Instant::now();
    loop {
        let created = status_details(client.create(v1::User::default()).await.unwrap_err());
        if created.reason == "OUTCOME_UNKNOWN" {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{created:?}");
    }
}

async fn health(url: String) -> HealthClient<Channel> {
    HealthClient::new(Channel::from_shared(url).unwrap().connect().await.unwrap())
}

#[tokio::test]
async fn health_reports_a_failing_store() {
    let mut health = health(serve(Options::default()).await).await;
    for service in ["", "polynym.v1.DirectoryService", "polynym.v1.RegistryService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing);
    }
}

#[tokio::test]
async fn a_healthy_server_serves_from_its_first_call() {
    let store = Faulty { healthy_after: Some(Duration::from_millis(100)), ..Faulty::default() };
    let mut health = health(serve_store(store, Options::default()).await).await;
    let answer = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
}

#[tokio::test]
async fn a_store_that_stops_to_answer_makes_the_server_unready() {
    let store = Faulty { healthy_after: Some(Duration::ZERO), ..Faulty::default() };
    let (hangs, readiness) = (store.hangs.clone(), Arc::<Readiness>::default());
    let url = serve_with(store, Options::default(), readiness.clone()).await;
    let mut health = health(url).await;
    let status = async |health: &mut HealthClient<Channel>| {
        let answer = health.check(HealthCheckRequest::default()).await.unwrap();
        answer.into_inner().status()
    };
    assert_eq!(status(&mut health).await, ServingStatus::Serving);
    assert_eq!(readiness.state(), State::Ready);

    hangs.store(true, Ordering::Relaxed);
    let since = Instant::now();
    while status(&mut health).await == ServingStatus::Serving {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", readiness.state());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(since.elapsed() > Duration::from_millis(3_900), "{:?}", since.elapsed());
    assert_eq!(readiness.state(), State::StoreUnavailable);
}
