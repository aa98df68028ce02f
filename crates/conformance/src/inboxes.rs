//! Inboxes, compared with a model of lists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Delivery, Error, IdempotencyKey, InboxChange, InboxLimits, Notice, NoticeContent, Now, Tenant,
    Timestamp, UserChange, Value, stores::InboxEntry,
};

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::random::Random;
use super::fixture::{Fixture, create, request};

const USERS: usize = 4;
const STEPS: u64 = 400;
const LIMITS: InboxLimits = InboxLimits { retention: Duration::from_secs(1_000_000), count: 130 };

/// 2030-01-01T00:00:00Z. MongoDB removes expired notices by its own clock.
const START: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// The inboxes of some users, and what they should contain.
struct Scene {
    f: Fixture,
    random: Random,
    /// The ids of notices.
    ids: Generator,
    users: Vec<LocalityId>,
    model: HashMap<LocalityId, Vec<InboxEntry>>,
    now: Timestamp,
}

impl Scene {
    async fn new(f: Fixture) -> Result<Self, Failure> {
        let mut users = Vec::new();
        for _ in 0..USERS {
            users.push(f.change_new(create(&[])?).await?.id);
        }
        let model = users.iter().map(|user| (*user, Vec::new())).collect();
        let ids = Generator::new(Mode::Sequential);
        Ok(Self { f, random: Random(7), ids, users, model, now: START })
    }

    fn notice(&mut self) -> Notice {
        // Stores may store large contents in another way.
        let size = match self.random.below(8) {
            0 => 16 << 10,
            1 | 2 => 200 + self.random.below(2_000),
            _ => self.random.below(200),
        };
        let value = Value::Int(self.random.below(1 << 40) as i64);
        let content = NoticeContent {
            sender: "web".to_owned(),
            subject: "Ünïcode 題".to_owned(),
            body: "x".repeat(size),
            attributes: BTreeMap::from([("number".to_owned(), value)]),
        };
        let expires = self.random.below(6) == 0;
        let expire_time = expires.then(|| self.now.plus(Duration::from_secs(40)));
        Notice { id: self.ids.next_id(), send_time: self.now, expire_time, content }
    }

    fn inbox(&self, user: LocalityId) -> &[InboxEntry] {
        self.model.get(&user).map_or(&[], Vec::as_slice)
    }

    async fn send(&self, notice: Notice, users: Vec<LocalityId>) -> Result<Vec<bool>, Error> {
        let delivery = Delivery { notice, users, limits: LIMITS, clock_uncertain: false };
        self.f.store.inboxes.deliver(Arc::new(delivery)).await
    }

    async fn deliver(&mut self, notice: Notice, users: Vec<LocalityId>) -> Result<(), Failure> {
        let delivered = self.send(notice.clone(), users.clone()).await?;
        equal(&delivered, &vec![true; users.len()], "whether the users exist")?;
        for user in users {
            let inbox = self.model.entry(user).or_default();
            let position = inbox.len() as u128 + 1;
            inbox.push(InboxEntry { position, read: false, notice: Some(notice.clone()) });
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Failure> {
        self.now = self.now.plus(Duration::from_secs(1));
        let user = self.random.one_of(&self.users);
        let known = self.inbox(user).iter().rev().take(70);
        let known: Vec<_> = known.filter_map(|entry| entry.notice.clone()).collect();
        let action = self.random.below(10);
        if known.is_empty() || action > 3 {
            let users =
                self.users.clone().into_iter().filter(|_| self.random.below(4) > 0).collect();
            let notice = self.notice();
            return self.deliver(notice, users).await;
        }
        let notice = self.random.one_of(&known);
        match action {
            0 => {
                let others = (0..3).map(|_| self.f.ids.next_id()).collect();
                self.change(user, InboxChange::Delete(notice.id)).await?;
                self.change(user, InboxChange::Read(others)).await
            }
            1 => {
                let ids = (0..3).map(|_| self.random.one_of(&known).id).collect();
                self.change(user, InboxChange::Read(ids)).await
            }
            2 => self.change(user, InboxChange::ReadUpTo(notice.send_time)).await,
            _ => self.deliver_again(user).await,
        }
    }

    /// Delivers a recent notice again that cannot have expired. Nothing changes.
    async fn deliver_again(&mut self, user: LocalityId) -> Result<(), Failure> {
        let last = self.inbox(user).iter().rev().take(40).filter_map(|entry| entry.notice.clone());
        let last: Vec<_> = last.filter(|notice| notice.expire_time.is_none()).collect();
        if last.is_empty() {
            return Ok(());
        }
        let notice = self.random.one_of(&last);
        let holders =
            self.f.store.inboxes.holders(notice.id, notice.send_time, &self.users).await?;
        for user in &self.users {
            let is_it =
                |entry: &InboxEntry| entry.notice.as_ref().is_some_and(|own| own.id == notice.id);
            let mut recent = self.inbox(*user).iter().rev().take(LIMITS.count as usize);
            ensure(holders.contains(user) || !recent.any(is_it), "a holder is missing")?;
        }
        equal(&self.send(notice, vec![user]).await?, &vec![true], "whether the user exists")
    }

    async fn change(&mut self, user: LocalityId, change: InboxChange) -> Result<(), Failure> {
        self.f.store.inboxes.change_inbox(user, change.clone()).await?;
        for entry in self.model.entry(user).or_default() {
            let Some(notice) = &entry.notice else { continue };
            match &change {
                InboxChange::Read(ids) => entry.read |= ids.contains(&notice.id),
                InboxChange::ReadUpTo(time) => entry.read |= notice.send_time <= *time,
                InboxChange::Delete(id) if *id == notice.id => entry.notice = None,
                InboxChange::Delete(_) => {}
            }
        }
        Ok(())
    }

    /// Compares an inbox with the model, page by page.
    async fn compare(&mut self, user: LocalityId) -> Result<(), Failure> {
        let inboxes = self.f.store.inboxes.clone();
        let (mut before, mut shown) = (None, Vec::new());
        loop {
            let limit = 1 + self.random.below(60);
            let part = inboxes.inbox(user, before, limit, true).await?;
            let headers = inboxes.inbox(user, before, limit, false).await?;
            equal(&facts(&headers), &facts(&part), "entries without content")?;
            let (len, last) = (part.len(), part.last().map(|one| one.position));
            shown.extend(part);
            before = last.or(before);
            if len < limit {
                break;
            }
        }
        let are_in_order = shown.is_sorted_by(|a, b| a.position > b.position);
        ensure(are_in_order, "entries are not in the order of their positions")?;
        shown.truncate(LIMITS.count as usize);
        shown.retain(|entry| LIMITS.shows(entry, self.now));
        let all = self.inbox(user);
        let oldest = (all.len() as u128).saturating_sub(LIMITS.count.into());
        let is_shown = |entry: &&InboxEntry| {
            let Some(notice) = &entry.notice else { return false };
            entry.position > oldest && notice.expire_time.is_none_or(|time| time > self.now)
        };
        let state = |entry: &InboxEntry| (entry.read, entry.notice.clone());
        let expected: Vec<_> = all.iter().rev().filter(is_shown).map(state).collect();
        let shown: Vec<_> = shown.iter().map(state).collect();
        ensure(shown == expected, format!("{} shown, {} expected", shown.len(), expected.len()))
    }
}

/// The positions, states and notices of entries.
fn facts(entries: &[InboxEntry]) -> Vec<(u128, bool, Option<LocalityId>)> {
    let id = |entry: &InboxEntry| entry.notice.as_ref().map(|notice| notice.id);
    entries.iter().map(|entry| (entry.position, entry.read, id(entry))).collect()
}

pub async fn inboxes_agree_with_the_model(f: Fixture) -> Result<(), Failure> {
    let mut scene = Scene::new(f).await?;
    for step in 0..STEPS {
        scene.step().await?;
        if step % 20 == 0 {
            let user = scene.random.one_of(&scene.users);
            scene.compare(user).await?;
        }
    }
    for user in scene.users.clone() {
        ensure(scene.inbox(user).len() > 150, "no inbox exceeds its limit")?;
        scene.compare(user).await?;
    }
    Ok(())
}

pub async fn a_request_keeps_its_first_notice(f: Fixture) -> Result<(), Failure> {
    let [first, other, third] = [f.ids.next_id(), f.ids.next_id(), f.ids.next_id()];
    let now = Now::certain(START);
    let begin = async |hash, notice, now| {
        let key = request("default,SendNotice,1", hash).ok_or("no request")?;
        let since = Timestamp::default();
        Ok::<_, Failure>(f.store.inboxes.begin_notice(&key, since, notice, now).await)
    };
    equal(&begin(1, None, now).await??, &None, "a new request without a notice")?;
    equal(&begin(1, Some(first), now).await??, &Some((first, None)), "the first request")?;
    let again = Some((first, Some(START)));
    equal(&begin(1, Some(other), now).await??, &again, "the same request")?;
    equal(&begin(1, None, now).await??, &again, "the same request without a notice")?;
    let reused = begin(2, Some(other), now).await?;
    let is_reused = matches!(reused, Err(Error::RequestIdReused));
    ensure(is_reused, "another request with the same id")?;

    let day_later = Now::certain(START.plus(IdempotencyKey::LIFETIME));
    let in_doubt = Now { clock_uncertain: true, ..day_later };
    equal(&begin(1, Some(other), in_doubt).await??, &again, "a request of an uncertain age")?;
    equal(&begin(2, None, day_later).await??, &None, "a void request without a notice")?;
    let next = begin(2, Some(third), day_later).await??;
    equal(&next, &Some((third, None)), "a request of the next day")?;
    let again = begin(2, Some(other), day_later).await??;
    equal(&again, &Some((third, Some(day_later.time))), "the same one")
}

pub async fn a_request_of_a_deleted_tenant_has_no_notice(f: Fixture) -> Result<(), Failure> {
    let key = request("default,SendNotice,2", 1).ok_or("no request")?;
    let begin = async |since: Timestamp| {
        let (notice, now) = (Some(f.ids.next_id()), Now::certain(START));
        let begun = f.store.inboxes.begin_notice(&key, since, notice, now).await?;
        begun.ok_or(Error::UserNotFound)
    };
    let [former, later] = [1, 2].map(Timestamp::from_millis);
    let (first, time) = begin(former).await?;
    equal(&time, &None, "the time of a first request")?;
    equal(&begin(former).await?, &(first, Some(START)), "the same request")?;
    let (second, time) = begin(later).await?;
    ensure(second != first && time.is_none(), "the later tenant has the notice of the former")?;
    equal(&begin(later).await?, &(second, Some(START)), "the same request of the later tenant")
}

pub async fn a_purged_user_has_no_inbox(f: Fixture) -> Result<(), Failure> {
    let mut scene = Scene::new(f).await?;
    let [user, other] = [scene.users[0], scene.users[1]];
    let mut notice = scene.notice();
    notice.content.body = "x".repeat(16 << 10);
    scene.deliver(notice, vec![user, other]).await?;
    let purge = scene.f.mutation(user, UserChange::Purge);
    scene.f.apply(purge).await?;
    scene.compare(other).await?;
    let inboxes = &scene.f.store.inboxes.clone();
    equal(&inboxes.inboxes(&Tenant::DEFAULT, user).await?, &None, "the inboxes of a purged user")?;
    let notice = scene.notice();
    equal(
        &scene.send(notice, vec![user, other]).await?,
        &vec![false, true],
        "the users that exist",
    )?;
    equal(&inboxes.inbox(user, None, 10, true).await?, &vec![], "the inbox of a purged user")
}
