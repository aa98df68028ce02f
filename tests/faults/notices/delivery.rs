//! Notices to many users during kills and failovers: each recipient gets each notice once, those of
//! one sender in order, and unread notices are counted. Callers repeat a request, also on two
//! servers concurrently, until it is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use polynym_proto::v1::{self, notice_result, recipient};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;
use uuid::Uuid;

use super::servers::{Disruption, Servers};
use crate::calls::{Client, handle, identity};
use crate::load::Random;
use crate::stores::print_line;

/// The time after which a call is no longer repeated.
const RETRY_LIMIT: Duration = Duration::from_secs(180);
/// Bodies of this size fill pages before they have 50 notices.
const LARGE: usize = 12 << 10;
/// Concurrent reads of users.
const CONCURRENT_READS: usize = 8;

/// The numbers of users and notices.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub users: usize,
    pub senders: usize,
    pub notices: usize,
    /// The recipients of each notice, always with the first user.
    pub recipients: usize,
    pub page: i32,
}

const SAMPLE: Size = Size { users: 30, senders: 4, notices: 60, recipients: 10, page: 7 };
const LONG_RUN: Size = Size { users: 1_000, senders: 8, notices: 1_000, recipients: 100, page: 30 };

/// The sender and number of a notice.
type Sent = (usize, usize);

/// The successful mutations, as acknowledged to callers.
#[derive(Default)]
struct Acknowledged {
    /// The recipients of each notice.
    sent: BTreeMap<Sent, BTreeSet<usize>>,
    read: BTreeSet<(usize, Sent)>,
    deleted: BTreeSet<(usize, Sent)>,
}

/// Users of a store behind servers, and their notices.
pub struct Stage {
    pub servers: Servers,
    size: Size,
    /// The ids of the users.
    pub users: Vec<String>,
    acknowledged: Mutex<Acknowledged>,
    calls: AtomicUsize,
    repeated: AtomicUsize,
}

impl Stage {
    pub async fn new(servers: Servers, size: Size) -> Self {
        let (acknowledged, calls, repeated) = Default::default();
        let stage = Self { servers, size, users: Vec::new(), acknowledged, calls, repeated };
        let create = |n: usize| {
            let identities = vec![identity(handle(&format!("reader{n}")))];
            let user = Some(v1::User { identities, ..Default::default() });
            let request_id = format!("7d9f3a1c-5a0e-4a1b-9a53-{n:012x}");
            let request = v1::CreateUserRequest { user, request_id, ..Default::default() };
            let created = stage.until_answered(move |mut client: Client| {
                let request = request.clone();
                async move { client.registry.create_user(request).await }
            });
            async move { created.await.unwrap().user.unwrap().user_id }
        };
        let creating: Vec<_> = (0..size.users).map(create).collect();
        let users = stream::iter(creating).buffered(CONCURRENT_READS).collect().await;
        Self { users, ..stage }
    }

    /// Repeats a call on random servers until it is answered.
    pub async fn until_answered<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let (since, mut random) = (Instant::now(), Random::default());
        loop {
            self.calls.fetch_add(1, Relaxed);
            match call(self.servers.client(random.below(16))).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) if !is_retryable(&status) => return Err(status),
                Err(status) => assert!(since.elapsed() < RETRY_LIMIT, "{status:?}"),
            }
            self.repeated.fetch_add(1, Relaxed);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The recipients of a notice, by their ids or by their handles.
    fn recipients(&self, users: &BTreeSet<usize>, random: &mut Random) -> Vec<v1::Recipient> {
        let mut recipient = |user: &usize| match random.below(2) {
            0 => recipient::Recipient::UserId(self.users[*user].clone()),
            _ => recipient::Recipient::Identifier(handle(&format!("reader{user}"))),
        };
        users.iter().map(|user| v1::Recipient { recipient: Some(recipient(user)) }).collect()
    }

    /// Sends a notice until each user has it or is gone. Returns the latter.
    pub async fn send(&self, notice: Sent, users: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut random = Random::default();
        let (sender, n) = notice;
        let body = "x".repeat(if n % 3 == 0 { LARGE } else { 40 });
        let request = v1::SendNoticeRequest {
            recipients: self.recipients(users, &mut random),
            notice: Some(v1::NoticeContent {
                subject: format!("{sender}.{n}"),
                body,
                ..Default::default()
            }),
            request_id: Uuid::new_v4().to_string(),
            ..Default::default()
        };
        let mut answer = match random.below(3) {
            0 => tokio::join!(self.send_request(&request), self.send_request(&request)).1,
            _ => self.send_request(&request).await,
        };
        if random.below(4) == 0 {
            answer = self.send_request(&request).await;
        }
        let since = Instant::now();
        loop {
            let failed = failures(&answer, users);
            if failed.values().all(|code| *code == Code::NotFound) {
                return failed.into_keys().collect();
            }
            assert!(since.elapsed() < RETRY_LIMIT, "{failed:?}");
            answer = self.send_request(&request).await;
        }
    }

    async fn send_request(&self, request: &v1::SendNoticeRequest) -> v1::SendNoticeResponse {
        let answer = self.until_answered(|mut client| {
            let request = request.clone();
            async move { client.inbox.send_notice(request).await }
        });
        answer.await.unwrap_or_else(|status| panic!("{status:?}"))
    }

    /// Sends the notices of one sender in order.
    async fn send_all(&self, sender: usize) {
        let mut random = Random::default();
        for n in 0..self.size.notices / self.size.senders {
            let mut users = BTreeSet::from([0]);
            while users.len() < self.size.recipients {
                users.insert(random.below(self.size.users));
            }
            let gone = self.send((sender, n), &users).await;
            assert!(gone.is_empty(), "no user was removed: {gone:?}");
            self.acknowledged.lock().unwrap().sent.insert((sender, n), users);
        }
    }

    /// Reads and deletes notices until all are sent.
    async fn read_until(&self, is_sent: &AtomicBool) {
        let mut random = Random::default();
        while !is_sent.load(Relaxed) {
            let user = random.below(self.size.users);
            let unread = self.list(user, true, 3).await;
            for notice in unread.iter().take(3) {
                let read = random.below(3) > 0;
                self.read_or_delete(user, notice, read).await;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Marks a notice as read or deletes it. Repeats the call until it is answered.
    async fn read_or_delete(&self, user: usize, notice: &v1::Notice, read: bool) {
        let (user_id, id) = (&self.users[user], &notice.notice_id);
        if read {
            let request = v1::MarkReadRequest {
                user_id: user_id.clone(),
                notice_ids: vec![id.clone()],
                ..Default::default()
            };
            let marked = self.until_answered(|mut client| {
                let request = request.clone();
                async move { client.inbox.mark_read(request).await }
            });
            marked.await.unwrap();
            self.acknowledged.lock().unwrap().read.insert((user, number(notice)));
            return;
        }
        let request = v1::DeleteNoticeRequest {
            user_id: user_id.clone(),
            notice_id: id.clone(),
            ..Default::default()
        };
        let deleted = self.until_answered(|mut client| {
            let request = request.clone();
            async move { client.inbox.delete_notice(request).await }
        });
        // An earlier attempt may have deleted it.
        let outcome = deleted.await.map(drop).or_else(|status| match status.code() {
            Code::NotFound => Ok(()),
            _ => Err(status),
        });
        outcome.unwrap();
        self.acknowledged.lock().unwrap().deleted.insert((user, number(notice)));
    }

    /// All notices of a user, the latest first, in pages.
    pub async fn list(&self, user: usize, unread_only: bool, page_size: i32) -> Vec<v1::Notice> {
        let user_id = self.users[user].clone();
        let mut request =
            v1::ListNoticesRequest { user_id, unread_only, page_size, ..Default::default() };
        let mut notices = Vec::new();
        loop {
            let answer = self.until_answered(|mut client| {
                let request = request.clone();
                async move { client.inbox.list_notices(request).await }
            });
            let page = answer.await.unwrap_or_else(|status| panic!("{status:?}"));
            notices.extend(page.notices);
            if page.next_page_token.is_empty() || unread_only && notices.len() > 3 {
                return notices;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// The number of notices that a user has not read.
    pub async fn unread(&self, user: usize) -> usize {
        let request =
            v1::CountUnreadRequest { user_id: self.users[user].clone(), ..Default::default() };
        let counted = self.until_answered(|mut client| {
            let request = request.clone();
            async move { client.inbox.count_unread(request).await }
        });
        counted.await.unwrap().unread as usize
    }

    /// Compares the inbox of a user with the acknowledged mutations. Returns the number of notices
    /// sent to the user.
    async fn check(&self, user: usize) -> usize {
        let shown = self.list(user, false, self.size.page).await;
        let unread = self.unread(user).await;
        let acknowledged = self.acknowledged.lock().unwrap();
        let numbers: Vec<_> = shown.iter().map(number).collect();
        let received: BTreeSet<_> = acknowledged
            .sent
            .iter()
            .filter(|(_, users)| users.contains(&user))
            .map(|(notice, _)| *notice)
            .collect();
        let expected: BTreeSet<_> = received
            .iter()
            .copied()
            .filter(|notice| !acknowledged.deleted.contains(&(user, *notice)))
            .collect();
        assert_eq!(numbers.iter().copied().collect::<BTreeSet<_>>(), expected, "user {user}");
        assert_eq!(numbers.len(), expected.len(), "user {user} has a notice twice: {numbers:?}");
        assert_in_order(&numbers);
        for (notice, sent) in shown.iter().zip(&numbers) {
            let was_read = acknowledged.read.contains(&(user, *sent));
            assert_eq!(notice.read, was_read, "user {user}: {sent:?}");
        }
        assert_eq!(unread, shown.iter().filter(|notice| !notice.read).count(), "user {user}");
        received.len()
    }
}

/// Fails unless the notices of each sender are in order, latest first.
pub fn assert_in_order(numbers: &[Sent]) {
    let mut lowest = BTreeMap::new();
    for (sender, n) in numbers {
        let before = lowest.insert(sender, n);
        assert!(before.is_none_or(|before| before > n), "of sender {sender}: {numbers:?}");
    }
}

pub fn number(notice: &v1::Notice) -> Sent {
    let (sender, n) = notice.subject.split_once('.').unwrap();
    (sender.parse().unwrap(), n.parse().unwrap())
}

/// The users that did not get a notice, with the codes.
fn failures(answer: &v1::SendNoticeResponse, users: &BTreeSet<usize>) -> BTreeMap<usize, Code> {
    assert_eq!(answer.results.len(), users.len());
    let mut failures = BTreeMap::new();
    for (result, user) in answer.results.iter().zip(users) {
        if let Some(notice_result::Result::Error(error)) = &result.result {
            failures.insert(*user, Code::from(error.code));
        }
    }
    failures
}

/// Whether a call with this status should be repeated: the server or its store was unreachable.
fn is_retryable(status: &Status) -> bool {
    let details = status.get_error_details();
    details.error_info().is_none_or(|info| {
        ["STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "OVERLOADED", "DEADLINE"]
            .contains(&info.reason.as_str())
    })
}

/// Sends everything during consecutive disruptions, and checks all inboxes.
async fn deliver_during(servers: Servers, size: Size, disruptions: &[Disruption], rounds: usize) {
    let stage = Arc::new(Stage::new(servers, size).await);
    let (since, is_sent) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let mut senders = JoinSet::new();
    for sender in 0..size.senders {
        let stage = stage.clone();
        senders.spawn(async move { stage.send_all(sender).await });
    }
    let reader = tokio::spawn({
        let (stage, is_sent) = (stage.clone(), is_sent.clone());
        async move { stage.read_until(&is_sent).await }
    });
    let disruption_count = disruptions.len() * rounds;
    for n in 0..disruption_count {
        let due = size.notices * (n + 1) / (disruption_count + 2);
        while stage.acknowledged.lock().unwrap().sent.len() < due {
            if let Some(ended) = senders.try_join_next() {
                ended.unwrap();
            }
            sleep(Duration::from_millis(2)).await;
        }
        stage.servers.disrupt(disruptions[n % disruptions.len()]).await;
    }
    while let Some(sent) = senders.join_next().await {
        sent.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    }
    is_sent.store(true, Relaxed);
    reader.await.unwrap();
    let took = since.elapsed();

    let checks = stream::iter((0..size.users).map(|user| stage.check(user)));
    let delivered: usize =
        checks.buffer_unordered(CONCURRENT_READS).fold(0, async |a, b| a + b).await;
    assert_eq!(delivered, size.notices * size.recipients);
    let acknowledged = stage.acknowledged.lock().unwrap();
    print_line(&format!(
        "inboxes: {} notices, {delivered} deliveries to {} users in {took:.0?} under \
         {disruption_count} disruptions ({disruptions:?}): {} calls, {} repeated after a failure; \
         {} marked as read, {} deleted; each recipient has each notice once, in order",
        size.notices,
        size.users,
        stage.calls.load(Relaxed),
        stage.repeated.load(Relaxed),
        acknowledged.read.len(),
        acknowledged.deleted.len(),
    ));
}

const REPLICA_SET_DISRUPTIONS: [Disruption; 4] =
    [Disruption::Server(0), Disruption::StepDown, Disruption::Server(1), Disruption::Primary];

#[tokio::test(flavor = "multi_thread")]
async fn notices_arrive_once_and_in_order_during_failovers() {
    deliver_during(Servers::on_a_set(3, 2).await, SAMPLE, &REPLICA_SET_DISRUPTIONS, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_arrive_once_and_in_order_despite_kills() {
    deliver_during(Servers::embedded().await, SAMPLE, &[Disruption::Server(0)], 4).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_inboxes() {
    deliver_during(Servers::on_a_set(3, 2).await, LONG_RUN, &REPLICA_SET_DISRUPTIONS, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_inboxes_of_the_embedded_store() {
    deliver_during(Servers::embedded().await, LONG_RUN, &[Disruption::Server(0)], 20).await;
}
