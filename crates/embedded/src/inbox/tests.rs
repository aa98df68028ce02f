//! Random changes of inboxes: a shared content stays exactly as long as a user has its notice.

use std::collections::BTreeSet;
use std::time::Duration;

use locality_uuid::LocalityId;
use proptest::collection::vec;
use proptest::prelude::*;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::inbox::contents::Content;
use crate::inbox::entry::EntryRecord;
use crate::inbox::inboxes::Inboxes;
use crate::schema::tables::{
    INBOX, INBOX_CONTENT_USERS, INBOX_CONTENTS, INBOX_NOTICES, INBOX_TIMES,
};
use polynym_directory::{InboxChange, InboxLimits, Notice, NoticeContent, Timestamp};

const USERS: u64 = 5;
const LIMITS: InboxLimits = InboxLimits { retention: Duration::from_secs(60), count: 8 };

#[derive(Clone, Debug)]
enum Step {
    /// Delivers a new notice of this size to the users whose bits are set.
    Deliver {
        users: u8,
        bytes: usize,
        expires: bool,
    },
    /// Delivers an earlier notice again.
    Repeat {
        back: usize,
        users: u8,
    },
    Delete {
        user: u64,
        back: usize,
    },
    Read {
        user: u64,
        back: usize,
    },
    ReadAll {
        user: u64,
    },
    Forget {
        user: u64,
    },
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(10), Just(400), Just(16 << 10)];
    let users = 0..1u8 << USERS;
    prop_oneof![
        8 => (users.clone(), bytes, any::<bool>())
            .prop_map(|(users, bytes, expires)| Step::Deliver { users, bytes, expires }),
        2 => (0..9usize, users).prop_map(|(back, users)| Step::Repeat { back, users }),
        6 => (0..USERS, 0..9usize).prop_map(|(user, back)| Step::Delete { user, back }),
        2 => (0..USERS, 0..9usize).prop_map(|(user, back)| Step::Read { user, back }),
        1 => (0..USERS).prop_map(|user| Step::ReadAll { user }),
        1 => (0..USERS).prop_map(|user| Step::Forget { user }),
        2 => Just(Step::Sweep),
    ]
}

fn id(n: u64) -> LocalityId {
    LocalityId::from(u128::from(n + 1).to_be_bytes())
}

fn time(n: usize) -> Timestamp {
    Timestamp::from_millis(1_000 * n as i64)
}

/// The notices that were sent, each with the content of its delivery.
struct Sent(Vec<(Notice, Content)>);

impl Sent {
    fn back(&self, back: usize) -> Option<&(Notice, Content)> {
        self.0.iter().rev().nth(back)
    }

    fn apply(&mut self, inboxes: &mut Inboxes<'_>, now: usize, step: &Step) {
        let users_of = |users: u8| (0..USERS).filter(move |user| users >> user & 1 == 1);
        match *step {
            Step::Deliver { users, bytes, expires } => {
                let content = NoticeContent { body: "x".repeat(bytes), ..Default::default() };
                let stored = Content::for_users(&content, users.count_ones() as usize);
                let expire_time = expires.then(|| time(now + 9));
                let (id, send_time) = (id(1_000 + now as u64), time(now));
                self.0.push((Notice { id, send_time, expire_time, content }, stored));
                self.deliver(inboxes, 0, users_of(users));
            }
            Step::Repeat { back, users } => self.deliver(inboxes, back, users_of(users)),
            Step::Delete { user, back } => {
                let Some((notice, _)) = self.back(back) else { return };
                inboxes.change(id(user), &InboxChange::Delete(notice.id), u64::MAX).unwrap();
            }
            Step::Read { user, back } => {
                let Some((notice, _)) = self.back(back) else { return };
                inboxes.change(id(user), &InboxChange::Read(vec![notice.id]), u64::MAX).unwrap();
            }
            Step::ReadAll { user } => {
                inboxes.change(id(user), &InboxChange::ReadUpTo(time(now)), u64::MAX).unwrap();
            }
            Step::Forget { user } => inboxes.forget(id(user)).unwrap(),
            Step::Sweep => while inboxes.sweep(time(now)).unwrap() {},
        }
    }

    fn deliver(&self, inboxes: &mut Inboxes<'_>, back: usize, users: impl Iterator<Item = u64>) {
        let Some((notice, content)) = self.back(back) else { return };
        for user in users {
            inboxes.deliver(id(user), notice, content, LIMITS).unwrap();
        }
    }
}

/// Checks that exactly the rows that share a content are linked to it, and that exactly the linked
/// contents are there. Returns their number.
fn check(transaction: &WriteTransaction) -> usize {
    let (mut sharing, mut linked, mut contents) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in transaction.open_table(INBOX).unwrap().iter().unwrap() {
        let (key, row) = row.unwrap();
        let record = EntryRecord::read(row.value(), false).unwrap();
        if record.is_shared {
            sharing.insert((record.id().unwrap(), LocalityId::from(*key.value().0)));
        }
    }
    for row in transaction.open_table(INBOX_CONTENT_USERS).unwrap().iter().unwrap() {
        let (key, _) = row.unwrap();
        let (notice, user) = key.value();
        linked.insert((LocalityId::from(*notice), LocalityId::from(*user)));
    }
    for row in transaction.open_table(INBOX_CONTENTS).unwrap().iter().unwrap() {
        contents.insert(LocalityId::from(*row.unwrap().0.value()));
    }
    assert_eq!(sharing, linked);
    assert_eq!(contents, linked.iter().map(|(notice, _)| *notice).collect());
    contents.len()
}

#[test]
fn a_shared_content_stays_as_long_as_a_user_has_its_notice() {
    let shared = std::cell::Cell::new(0);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let run = |steps: Vec<Step>| {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut sent = Sent(Vec::new());
        for (now, step) in steps.iter().enumerate() {
            {
                let mut inboxes = Inboxes::open(&transaction).unwrap();
                sent.apply(&mut inboxes, now, step);
            }
            shared.set(shared.get().max(check(&transaction)));
        }

        {
            let mut inboxes = Inboxes::open(&transaction).unwrap();
            (0..USERS).for_each(|user| inboxes.forget(id(user)).unwrap());
        }
        assert_eq!(check(&transaction), 0);
        assert!(transaction.open_table(INBOX_NOTICES).unwrap().is_empty().unwrap());
        assert!(transaction.open_table(INBOX_TIMES).unwrap().is_empty().unwrap());
        Ok(())
    };
    runner.run(&vec(step(), 1..60), run).unwrap();
    assert!(shared.get() > 5, "at most {} contents were shared at a time", shared.get());
}
