//! A server whose clock jumps: it does nothing irreversible by that clock, and keeps serving calls.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use locality_uuid::{Generator, Mode};
use polynym::grpc;
use polynym_access::Access;
use polynym_deliver::AddressPolicy;
use polynym_directory::{Backend, Clock, Directory, Limits};
use polynym_embedded::{self as embedded, Embedded};
use polynym_proto::v1;
use polynym_transport::Options;
use prost_types::Timestamp;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::watching::{Watching, from, rename};
use crate::calls::{Client, email, handle, identity};
use crate::status::{StatusDetails, status_details};

/// One day in milliseconds.
pub const DAY: i64 = 24 * 60 * 60 * 1_000;
/// 31 days in milliseconds: longer than the default hold times and restore window.
pub const MONTH: i64 = 31 * DAY;
/// Longer than two rounds of the expiry loop.
const TWO_ROUNDS: Duration = Duration::from_millis(2_500);

/// The number of concurrent callers, and the number of users that each creates.
const CALLERS: usize = 4;
const STEPS: usize = 36;
const JUMPS: [i64; 8] = [MONTH, 0, -MONTH, 0, 400 * DAY, -DAY, 2 * DAY, 0];

/// A server in this process, with its clock and a client.
pub struct Scene {
    pub url: String,
    pub clock: Clock,
    pub client: Client,
}

impl Scene {
    /// Starts a server on the store.
    pub async fn new(store: Backend) -> Self {
        Self::at(store, 0).await
    }

    /// Starts a server on the store whose clock is `ahead` milliseconds fast.
    pub async fn at(store: Backend, ahead: i64) -> Self {
        Self::of(Directory::new(store, ids(), Limits::default()), ahead).await
    }

    /// Starts a server on an empty embedded store in `folder`, in which only admins make tenants.
    pub async fn embedded(folder: &Path) -> Self {
        let store =
            Embedded::open(folder, embedded::Options { create: true, ..Default::default() });
        let backend = Arc::new(store.unwrap()).backend();
        Self::of(Directory::new(backend, ids(), Limits::default()).closed(), 0).await
    }

    async fn of(directory: Directory, ahead: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let clock = Clock::default();
        clock.set_ahead(ahead);
        let shared = Arc::new(directory.with_clock(clock.clone()));
        let expiry = shared.clone();
        tokio::spawn(async move { expiry.run_expiry().await });
        let jobs = shared.clone();
        tokio::spawn(async move { jobs.run_tenant_jobs().await });
        tokio::spawn(grpc::serve(
            listener,
            shared,
            Arc::new(Access::open()),
            Options::default(),
            AddressPolicy::default(),
            Arc::default(),
            std::future::pending(),
        ));
        let client = Client::connect(&url).await;
        Self { url, clock, client }
    }

    /// Creates a user with one identity. Returns its id.
    pub async fn create(&mut self, identifier: v1::Identifier) -> String {
        let user = v1::User { identities: vec![identity(identifier)], ..Default::default() };
        self.client.create(user).await.unwrap().user_id
    }

    /// Asserts that the handle `name` is held: user `other` cannot link it.
    async fn assert_held(&mut self, name: &str, other: &str) {
        let held = status_details(self.client.link(other, handle(name)).await.unwrap_err());
        assert_eq!(
            (held.code, held.reason.as_str()),
            (Code::FailedPrecondition, "IDENTITY_HELD"),
            "{name}"
        );
    }

    /// Waits until the expiry loop purges a user that has expired by every clock.
    async fn await_expiry(&mut self) {
        let restore_window = Some(prost_types::Duration { seconds: 1, nanos: 0 });
        self.client.govern(v1::Policies { restore_window, ..Default::default() }).await.unwrap();

        let zed = self.create(email("zed@example.com")).await;
        self.client.delete(&zed).await.unwrap();
        for _ in 0..1_000 {
            let user = v1::User {
                identities: vec![identity(email("zed@example.com"))],
                ..Default::default()
            };
            if self.client.create(user).await.is_ok() {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }

        panic!("the user is not purged");
    }
}

/// Skips the time between the mark of a tenant and the first step of its job.
pub fn skip_quiet_time(clock: &Clock) {
    clock.skip(Duration::from_secs(20));
}

fn ids() -> Generator {
    Generator::new(Mode::Variable)
}

/// Creates user `n` with a request id that depends on `n` alone.
async fn requested(client: &mut Client, n: usize) -> Result<String, Status> {
    let names = [handle(&format!("user{n}")), handle(&format!("old{n}"))];
    let user = v1::User { identities: names.map(identity).into(), ..Default::default() };
    let request_id = format!("00000000-0000-4000-8000-{n:012}");
    let request = v1::CreateUserRequest { user: Some(user), request_id, ..Default::default() };
    Ok(client.registry.create_user(request).await?.into_inner().user.unwrap().user_id)
}

/// The clock jumps ahead of every deadline.
pub async fn ahead(store: Backend) {
    let mut s = Scene::new(store).await;
    let (joe, ann, bob) = (
        s.create(handle("joe")).await,
        s.create(handle("ann")).await,
        s.create(handle("bob")).await,
    );

    s.client.delete(&joe).await.unwrap();
    s.client.link(&ann, handle("anna")).await.unwrap();
    s.client.unlink(&ann, handle("anna")).await.unwrap();

    let first = requested(&mut s.client, 1).await.unwrap();
    s.clock.set_ahead(MONTH);
    let rejected = status_details(s.client.link(&bob, handle("anna")).await.unwrap_err());
    assert_eq!(
        rejected,
        StatusDetails { retry: true, ..StatusDetails::new(Code::Unavailable, "CLOCK_IN_DOUBT") }
    );
    assert_eq!(requested(&mut s.client, 1).await.unwrap(), first);

    let second = requested(&mut s.client, 2).await.unwrap();
    assert_eq!(requested(&mut s.client, 2).await.unwrap(), second);
    assert_eq!(s.client.resolve(handle("ann")).await.unwrap().user.unwrap().user_id, ann);
    assert_eq!(s.client.get(&joe).await.unwrap().state(), v1::State::Deleted);

    // The time of this change would decide where histories begin.
    let history_retention = Some(prost_types::Duration { seconds: 800 * DAY / 1_000, nanos: 0 });
    let longer = v1::Policies { history_retention, ..Default::default() };
    let refused = status_details(s.client.govern(longer.clone()).await.unwrap_err());
    assert_eq!(refused, rejected);

    s.client.disable(&ann).await.unwrap();
    sleep(TWO_ROUNDS).await;
    s.clock.set_ahead(0);
    s.client.govern(longer).await.unwrap();
    s.assert_held("anna", &bob).await;
    assert_eq!(requested(&mut s.client, 1).await.unwrap(), first);
    assert_eq!(requested(&mut s.client, 2).await.unwrap(), second);

    s.await_expiry().await;
    s.client.undelete(&joe).await.unwrap();
    s.client.link(&ann, handle("anna")).await.unwrap();
}

/// The clock jumps back: holds, restore windows and idempotency keys still last their full time.
pub async fn behind(store: Backend) {
    let mut s = Scene::new(store).await;
    let (joe, bob) = (s.create(handle("joe")).await, s.create(handle("bob")).await);
    s.clock.set_ahead(-MONTH);

    let ann = s.create(handle("anna")).await;
    s.client.unlink(&ann, handle("anna")).await.unwrap();
    s.client.delete(&joe).await.unwrap();

    let first = requested(&mut s.client, 1).await.unwrap();
    assert_eq!(requested(&mut s.client, 1).await.unwrap(), first);
    s.clock.set_ahead(0);
    assert_eq!(requested(&mut s.client, 1).await.unwrap(), first);
    s.assert_held("anna", &bob).await;

    s.await_expiry().await;
    s.client.undelete(&joe).await.unwrap();
    s.client.link(&ann, handle("anna")).await.unwrap();
}

/// The clock jumps back and forth while callers change users.
pub async fn jumping(store: Backend) {
    let mut s = Scene::new(store).await;
    let bob = s.create(handle("bob")).await;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| tokio::spawn(work(s.clock.clone(), s.client.clone(), caller)))
        .collect();
    let mut users = Vec::new();

    for caller in callers {
        users.extend(caller.await.unwrap());
    }

    s.clock.set_ahead(0);
    assert_eq!(users.len(), CALLERS * STEPS);
    s.await_expiry().await;

    for (n, id) in users {
        assert_eq!(
            requested(&mut s.client, n).await.unwrap(),
            id,
            "request of user {n} sent again"
        );
        s.assert_held(&format!("old{n}"), &bob).await;
        if n.is_multiple_of(2) {
            s.client.undelete(&id).await.unwrap();
        }
        assert_eq!(
            s.client.resolve(handle(&format!("user{n}"))).await.unwrap().user.unwrap().user_id,
            id
        );
    }
}

/// Creates users, unlinks one handle of each, and deletes every second user. No call may fail.
async fn work(clock: Clock, mut client: Client, caller: usize) -> Vec<(usize, String)> {
    let mut users = Vec::new();
    for step in 0..STEPS {
        clock.set_ahead(JUMPS[(step + caller) % JUMPS.len()]);
        let n = caller * STEPS + step;
        let id = requested(&mut client, n).await.unwrap();
        assert_eq!(requested(&mut client, n).await.unwrap(), id);
        client.unlink(&id, handle(&format!("old{n}"))).await.unwrap();
        assert_eq!(
            client.resolve(handle(&format!("user{n}"))).await.unwrap().user.unwrap().user_id,
            id
        );
        if n.is_multiple_of(2) {
            client.delete(&id).await.unwrap();
        }
        users.push((n, id));
    }

    users
}

/// The clock jumps while a user changes and is watched: its events stay in order, all are stored
/// and sent, and former owners are found.
pub async fn histories(mut s: Scene) {
    s.client.hold_nothing().await;
    let joe = s.create(handle("joe")).await;
    let mut watching = Watching::begin(&mut s.client, from("")).await.unwrap();
    s.client.link(&joe, handle("wanderer")).await.unwrap();
    sleep(Duration::from_millis(20)).await;
    let with_joe = Timestamp::from(SystemTime::now());
    sleep(Duration::from_millis(20)).await;
    s.client.unlink(&joe, handle("wanderer")).await.unwrap();

    let (mut changes, mut token) = (3, watching.token.clone());
    for ahead in [MONTH, -MONTH, 500 * DAY, 0, -500 * DAY, 2 * DAY, 0] {
        s.clock.set_ahead(ahead);
        for n in 0..3 {
            rename(&mut s.client, &joe, &format!("Joe {ahead} {n}")).await.unwrap();
        }
        changes += 3;
        let events = all_events(&mut s.client, &joe).await;
        let numbers: Vec<_> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(numbers, (1..=changes).rev().collect::<Vec<_>>(), "{ahead} ms ahead");
        let stamps: Vec<_> = events.iter().map(|event| event.time.unwrap()).collect();
        let times: Vec<_> = stamps.iter().map(|time| (time.seconds, time.nanos)).collect();
        assert!(times.is_sorted_by(|later, earlier| later >= earlier), "{times:?}");
        assert_eq!(owner_at(&mut s.client, "wanderer", with_joe).await, joe, "{ahead} ms ahead");
        // A watch resumes after a token of another time.
        let mut again = Watching::begin(&mut s.client, from(&token)).await.unwrap();
        let first = again.next().await.unwrap().sequence;
        let mut last = first;
        while last < changes {
            last += 1;
            assert_eq!(again.next().await.unwrap().sequence, last);
        }
        token = again.token.clone();
        while watching.next().await.unwrap().sequence < changes {}
    }
}

/// The clock jumps while calls are counted: each is counted once, and no counter is removed.
pub async fn usage(mut s: Scene) {
    s.create(handle("joe")).await;
    let mut calls = 0;
    for ahead in [0, MONTH, -MONTH, 0] {
        s.clock.set_ahead(ahead);
        // The first counts after a jump are in the minute of the earlier clock.
        for _ in 0..2 {
            for _ in 0..10 {
                s.client.resolve(handle("nobody")).await.unwrap_err();
            }
            calls += 10;
            until_counted(&mut s, calls).await;
        }
    }
    let minutes = v1::UsageResolution::Minute;
    let (from, to) = (Duration::from_secs(3_600), Duration::from_secs(60));
    let of_now = counted(&mut s.client, minutes, (from, to)).await;
    assert!((40..=60).contains(&of_now), "{of_now} calls in the minutes of the true time");
}

/// Waits until this number of calls is counted, in days far apart.
async fn until_counted(s: &mut Scene, calls: i64) {
    let days = v1::UsageResolution::Day;
    for _ in 0..1_200 {
        let far = Duration::from_millis(3 * MONTH as u64);
        let counted = counted(&mut s.client, days, (far, far)).await;
        assert!(counted <= calls, "{counted} of {calls} calls");
        if counted == calls {
            return;
        }
        // The counts are written every ten seconds.
        s.clock.skip(Duration::from_secs(10));
        sleep(Duration::from_millis(100)).await;
    }
    panic!("{calls} calls are not counted");
}

/// The counted look-ups from `before` to `after` now.
async fn counted(
    client: &mut Client,
    resolution: v1::UsageResolution,
    (before, after): (Duration, Duration),
) -> i64 {
    let now = SystemTime::now();
    let request = v1::GetUsageRequest {
        metrics: vec!["calls.ResolveIdentity.NOT_FOUND".to_owned()],
        from: Some(Timestamp::from(now - before)),
        to: Some(Timestamp::from(now + after)),
        resolution: resolution.into(),
        ..Default::default()
    };
    client.usage(request).await.unwrap().values().sum()
}

/// The clock advances by more than a day between two pages of a history.
pub async fn page_tokens(store: Backend) {
    let mut s = Scene::new(store).await;
    let joe = s.create(handle("joe")).await;
    rename(&mut s.client, &joe, "Joe").await.unwrap();
    let user = Some(v1::list_history_request::User::UserId(joe));
    let mut request = v1::ListHistoryRequest { user, page_size: 1, ..Default::default() };
    let mut pages = s.client.directory.clone();
    let page = pages.list_history(request.clone()).await.unwrap().into_inner();
    request.page_token = page.next_page_token;
    for (ahead, is_good) in [(DAY - 60_000, true), (DAY + 60_000, false), (0, true)] {
        s.clock.set_ahead(ahead);
        match pages.list_history(request.clone()).await {
            Ok(page) => assert!(is_good && page.into_inner().events.len() == 1),
            Err(refused) => {
                assert!(!is_good && refused.message().contains("expired"), "{refused:?}");
                let invalid = StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
                assert_eq!(status_details(refused), invalid.field("page_token"));
            }
        }
    }
}

async fn all_events(client: &mut Client, user: &str) -> Vec<v1::Event> {
    let user = Some(v1::list_history_request::User::UserId(user.to_owned()));
    let request = v1::ListHistoryRequest { user, page_size: 1_000, ..Default::default() };
    client.directory.list_history(request).await.unwrap().into_inner().events
}

async fn owner_at(client: &mut Client, name: &str, time: Timestamp) -> String {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(handle(name)),
        as_of: Some(time),
        ..Default::default()
    };
    let found = client.directory.resolve_identity(request).await.unwrap().into_inner();
    found.user.unwrap().user_id
}
