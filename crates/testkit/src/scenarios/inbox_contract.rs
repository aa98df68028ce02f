//! The contract of a store of inboxes, held against a model that keeps lists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::inbox::{Delivery, InboxChange, InboxEntry, InboxLimits, InboxStore};
use polynym::directory::{
    IdempotencyKey, Mutation, NewUser, Notice, NoticeContent, Store, Tenant, Timestamp, UserChange,
    Value,
};

const USERS: usize = 4;
const STEPS: u64 = 400;
/// The limits of each inbox.
pub const LIMITS: InboxLimits =
    InboxLimits { retention: Duration::from_secs(1_000_000), count: 130 };

/// 2030-01-01T00:00:00Z. MongoDB removes what is over by its own clock.
pub const START: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// A store with users, and a model of their inboxes.
pub struct World<S> {
    pub store: S,
    ids: Generator,
    random: fastrand::Rng,
    pub users: Vec<LocalityId>,
    model: HashMap<LocalityId, Vec<InboxEntry>>,
    now: Timestamp,
}

impl<S: Store + InboxStore> World<S> {
    pub async fn new(store: S) -> Self {
        let ids = Generator::new(Mode::Variable);
        let users: Vec<_> = (0..USERS).map(|_| ids.next_id()).collect();
        for user in &users {
            let new = NewUser {
                display_name: "Ann".to_owned(),
                identities: Vec::new(),
                attributes: BTreeMap::new(),
            };
            let create = UserChange::Create(new);
            let create = Mutation::of_user(Tenant::DEFAULT, *user, START, create);
            store.mutate(create).await.unwrap();
        }
        let model = users.iter().map(|user| (*user, Vec::new())).collect();
        let random = fastrand::Rng::with_seed(7);
        Self { store, ids, random, users, model, now: START }
    }

    pub fn notice(&mut self) -> Notice {
        let size = if self.random.u8(..8) == 0 { 16 << 10 } else { self.random.usize(..200) };
        let value = Value::Int(self.random.i64(..));
        let content = NoticeContent {
            sender: "web".to_owned(),
            subject: "Ünïcode 題".to_owned(),
            body: "x".repeat(size),
            attributes: BTreeMap::from([("number".to_owned(), value)]),
        };
        let expires = self.random.u8(..6) == 0;
        let expire_time = expires.then(|| self.now.plus(Duration::from_secs(40)));
        Notice { id: self.ids.next_id(), send_time: self.now, expire_time, content }
    }

    /// Some of the users.
    fn some(&mut self) -> Vec<LocalityId> {
        let users = self.users.clone();
        users.into_iter().filter(|_| self.random.u8(..4) > 0).collect()
    }

    pub async fn deliver(&mut self, notice: Notice, users: Vec<LocalityId>) {
        let delivery = Delivery {
            notice: notice.clone(),
            users: users.clone(),
            limits: LIMITS,
            in_doubt: false,
        };
        let delivered = self.store.deliver(Arc::new(delivery)).await.unwrap();
        assert_eq!(delivered, vec![true; users.len()]);
        for user in users {
            let inbox = self.model.get_mut(&user).unwrap();
            let position = inbox.len() as u64 + 1;
            inbox.push(InboxEntry { position, read: false, notice: Some(notice.clone()) });
        }
    }

    async fn step(&mut self) {
        self.now = self.now.plus(Duration::from_secs(1));
        let user = self.users[self.random.usize(..USERS)];
        let known: Vec<_> = self.model[&user].iter().rev().take(70).cloned().collect();
        let known: Vec<_> = known.into_iter().filter_map(|entry| entry.notice).collect();
        let pick = |random: &mut fastrand::Rng| random.choice(&known).cloned();
        match self.random.u8(..10) {
            0 => {
                let Some(notice) = pick(&mut self.random) else { return };
                let others: Vec<_> = (0..3).map(|_| self.ids.next_id()).collect();
                self.change(user, InboxChange::Delete(notice.id)).await;
                self.change(user, InboxChange::Read(others)).await;
            }
            1 => {
                let ids = (0..3).filter_map(|_| pick(&mut self.random)).map(|notice| notice.id);
                let change = InboxChange::Read(ids.collect());
                self.change(user, change).await;
            }
            2 => {
                let Some(notice) = pick(&mut self.random) else { return };
                self.change(user, InboxChange::ReadUpTo(notice.send_time)).await;
            }
            3 => self.deliver_again(user).await,
            _ => {
                let (notice, users) = (self.notice(), self.some());
                self.deliver(notice, users).await;
            }
        }
    }

    /// Delivers one of the last notices of a user again, unless its time may be over: nothing
    /// changes.
    async fn deliver_again(&mut self, user: LocalityId) {
        let last = self.model[&user].iter().rev().take(40).filter_map(|entry| entry.notice.clone());
        let last: Vec<_> = last.filter(|notice| notice.expire_time.is_none()).collect();
        let Some(notice) = self.random.choice(&last).cloned() else { return };
        let holders = self.store.holders(notice.id, &self.users).await.unwrap();
        for user in &self.users {
            let is_it =
                |entry: &&InboxEntry| entry.notice.as_ref().is_some_and(|own| own.id == notice.id);
            let kept = self.model[user].iter().rev().take(LIMITS.count as usize);
            let is_holder = holders.contains(user);
            assert!(is_holder || kept.filter(is_it).count() == 0, "a holder is not known");
        }
        let delivery = Delivery { notice, users: vec![user], limits: LIMITS, in_doubt: false };
        assert_eq!(self.store.deliver(Arc::new(delivery)).await.unwrap(), [true]);
    }

    async fn change(&mut self, user: LocalityId, change: InboxChange) {
        self.store.change_inbox(user, change.clone()).await.unwrap();
        for entry in self.model.get_mut(&user).unwrap() {
            let Some(notice) = &entry.notice else { continue };
            match &change {
                InboxChange::Read(ids) => entry.read |= ids.contains(&notice.id),
                InboxChange::ReadUpTo(time) => entry.read |= notice.send_time <= *time,
                InboxChange::Delete(id) if *id == notice.id => entry.notice = None,
                InboxChange::Delete(_) => {}
            }
        }
    }

    /// Compares an inbox with the model, page by page.
    async fn check(&mut self, user: LocalityId) {
        let (mut before, mut shown) = (None, Vec::new());
        loop {
            let limit = 1 + self.random.usize(..60);
            let part = self.store.inbox(user, before, limit, true).await.unwrap();
            let headers = self.store.inbox(user, before, limit, false).await.unwrap();
            assert_eq!(part.last, self.model[&user].len() as u64);
            let positions = |entries: &[InboxEntry]| -> Vec<_> {
                let facts = |entry: &InboxEntry| {
                    (entry.position, entry.read, entry.notice.as_ref().map(|notice| notice.id))
                };
                entries.iter().map(facts).collect()
            };
            assert_eq!(positions(&headers.entries), positions(&part.entries));
            let (len, last) = (part.entries.len(), part.entries.last().map(|one| one.position));
            shown.extend(part.shown(LIMITS, self.now));
            before = last.or(before);
            if len < limit {
                break;
            }
        }
        let all = &self.model[&user];
        let oldest = (all.len() as u64).saturating_sub(LIMITS.count);
        let is_shown = |entry: &&InboxEntry| {
            let Some(notice) = &entry.notice else { return false };
            entry.position > oldest && notice.expire_time.is_none_or(|time| time > self.now)
        };
        let expected: Vec<_> = all.iter().rev().filter(is_shown).cloned().collect();
        assert!(shown == expected, "{} shown, {} expected", shown.len(), expected.len());
    }
}

/// Random deliveries and changes.
pub async fn check<S: Store + InboxStore>(store: S) -> S {
    let mut world = World::new(store).await;
    for step in 0..STEPS {
        world.step().await;
        if step % 20 == 0 {
            let user = world.users[world.random.usize(..USERS)];
            world.check(user).await;
        }
    }
    for user in world.users.clone() {
        assert!(world.model[&user].len() > 150, "an inbox has outgrown its limit");
        world.check(user).await;
    }
    requests(&world).await;
    removed(&mut world).await;
    world.store
}

/// A request keeps the notice that it had first.
async fn requests<S: InboxStore>(world: &World<S>) {
    let request =
        |hash| IdempotencyKey { key: "default,SendNotice,1".to_owned(), request_hash: hash };
    let (first, other) = (world.ids.next_id(), world.ids.next_id());
    let begun = world.store.begin_notice(&request(1), first, world.now).await.unwrap();
    assert_eq!(begun, (first, false));
    let begun = world.store.begin_notice(&request(1), other, world.now).await.unwrap();
    assert_eq!(begun, (first, true));
    let refused = world.store.begin_notice(&request(2), other, world.now).await.unwrap_err();
    assert!(matches!(refused, polynym::directory::Error::RequestIdReused), "{refused}");
}

/// A user that is purged has no inbox any more, and gets none.
async fn removed<S: Store + InboxStore>(world: &mut World<S>) {
    let user = world.users[0];
    let purge = Mutation::of_user(Tenant::DEFAULT, user, world.now, UserChange::Purge);
    world.store.mutate(purge).await.unwrap();
    assert_eq!(world.store.inboxes(&Tenant::DEFAULT, user).await.unwrap(), None);
    let notice = world.notice();
    let users = vec![user, world.users[1]];
    let delivery = Delivery { notice, users, limits: LIMITS, in_doubt: false };
    let delivered = world.store.deliver(Arc::new(delivery)).await.unwrap();
    assert_eq!(delivered, [false, true]);
    assert_eq!(world.store.inbox(user, None, 10, true).await.unwrap().entries, []);
}
