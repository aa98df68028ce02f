//! Every call of a store's traits counts as one operation of its kind. A method that a trait gets
//! must have a call here, which fails unless the stores measure it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use polynym::telemetry::Metrics;
use polynym_directory::{
    AccessPath, Backend, Consistency, IdempotencyKey, InboxChange, Now, PageLimit, Resolution,
    Shortening, Tenant, Timestamp, View,
};
use polynym_store_common::operations::{OPERATIONS, Operation};

use super::counters::{batch, query, server};
use super::deliveries::{START, delivery};
use crate::users::{creation, email, id, keys};

/// Methods that do nothing with the store.
const NO_OPERATIONS: [&str; 4] =
    ["CurrentRules::rules", "Reads::in_order", "StoreClock::time", "Histories::has_expiry_turn"];

/// The environment variable of a process that counts.
const ALONE: &str = "POLYNYM_TEST_OPERATIONS";

/// Whether this process counts.
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs a test of this program in a process of its own: metrics are those of a process.
pub fn run_alone(test: &str) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    let output = program.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

/// The calls so far.
struct Calls {
    metrics: Metrics,
    methods: BTreeSet<String>,
}

impl Calls {
    /// Makes a call, which must count as this number of operations of this kind alone.
    async fn count<T>(
        &mut self,
        method: &str,
        kind: Operation,
        n: u64,
        call: impl Future<Output = T>,
    ) -> T {
        let mut expected = self.counts();
        let outcome = call.await;
        *expected.entry(kind.name()).or_default() += n;
        assert_eq!(self.counts(), expected, "{method}");
        self.methods.insert(method.to_owned());
        outcome
    }

    async fn one<T>(&mut self, method: &str, kind: Operation, call: impl Future<Output = T>) -> T {
        self.count(method, kind, 1, call).await
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let text = self.metrics.render();
        let count = |kind: &Operation| {
            let series = format!("{}{{operation=\"{}\",", OPERATIONS.0, kind.name());
            let lines = text.lines().filter(|line| line.starts_with(&series));
            let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
            (kind.name(), values.sum())
        };
        Operation::ALL.iter().map(count).collect()
    }
}

/// The methods of all traits of stores, from their source.
fn declared() -> BTreeSet<String> {
    let mut methods = BTreeSet::new();
    for file in fs::read_dir(crate::root().join("crates/directory/src/stores")).unwrap() {
        let (text, mut of) = (fs::read_to_string(file.unwrap().path()).unwrap(), None);
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("pub trait ") {
                of = head.split(':').next();
            } else if line == "}" {
                of = None;
            }
            let line = line.trim_start().trim_start_matches("async ");
            if let (Some(of), Some(method)) = (of, line.strip_prefix("fn ")) {
                methods.insert(format!("{of}::{}", method.split(['(', '<']).next().unwrap()));
            }
        }
    }
    methods
}

/// Calls every method of the traits on a new store.
pub async fn every_call_is_an_operation(store: Backend) {
    let mut calls =
        Calls { metrics: Metrics::install(&[], &[]).unwrap(), methods: BTreeSet::new() };
    changes(&mut calls, &store).await;
    reads(&mut calls, &store).await;
    inboxes(&mut calls, &store).await;
    others(&mut calls, &store).await;

    let mut expected = declared();
    let is_file = |method: &String| store.file.is_some() || !method.starts_with("StoreFile::");
    expected.retain(|method| is_file(method) && !NO_OPERATIONS.contains(&method.as_str()));
    assert_eq!(calls.methods, expected, "called, and declared");
    let silent: Vec<_> = calls.counts().into_iter().filter(|(_, count)| *count == 0).collect();
    let copies = (Operation::Copy.name(), 0);
    assert!(silent.iter().all(|kind| store.file.is_none() && *kind == copies), "{silent:?}");
}

async fn changes(calls: &mut Calls, store: &Backend) {
    let mutations = &store.mutations;
    calls.one("Mutations::mutate", Operation::Mutate, mutations.mutate(creation(1))).await.unwrap();
    let refused = mutations.mutate(creation(1));
    calls.one("Mutations::mutate", Operation::Mutate, refused).await.unwrap_err();
    let all = mutations.mutate_all((2..5).map(creation).collect());
    let outcomes = calls.count("Mutations::mutate_all", Operation::Mutate, 3, all).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    calls.one("Mutations::counter", Operation::Get, mutations.counter("x")).await.unwrap();
}

async fn reads(calls: &mut Calls, store: &Backend) {
    let (tenant, ids, keys, view) = (&Tenant::DEFAULT, &[id(1)], &keys(1), View::Full);
    let limit = PageLimit::new(10, 1 << 20);
    let (latest, any_age) = (Consistency::Latest, Duration::ZERO);
    let look_up = store.lookups.resolve(keys, latest, view, any_age);
    calls.one("LookUps::resolve", Operation::Resolve, look_up).await.unwrap();
    let get = store.lookups.get(tenant, ids, view);
    calls.one("LookUps::get", Operation::Get, get).await.unwrap();

    let reads = &store.reads;
    let get = reads.get_snapshot(tenant, ids, view);
    calls.one("Reads::get_snapshot", Operation::Get, get).await.unwrap();
    calls.one("Reads::claims", Operation::Claims, reads.claims(keys)).await.unwrap();
    calls.one("Reads::check", Operation::Check, reads.check()).await.unwrap();
    let mut ordered = reads.in_order().await.unwrap();
    calls.one("OrderedReads::claims", Operation::Claims, ordered.claims(keys)).await.unwrap();
    let ended = ordered.ended_ownerships(keys);
    calls.one("OrderedReads::ended_ownerships", Operation::Scan, ended).await.unwrap();
    let get = ordered.get(tenant, ids, view);
    calls.one("OrderedReads::get", Operation::Get, get).await.unwrap();
    let history = ordered.history(tenant, id(1), None, limit);
    calls.one("OrderedReads::history", Operation::Scan, history).await.unwrap();

    let tenants = &store.tenants;
    calls.one("Tenants::tenant", Operation::Tenant, tenants.tenant(tenant)).await.unwrap();
    calls.one("Tenants::tenants", Operation::Tenant, tenants.tenants("", "", 10)).await.unwrap();
    calls.one("Tenants::keys", Operation::Scan, tenants.keys(tenant, 10)).await.unwrap();
    let holds = tenants.ownerless_holds(tenant, None, 10);
    calls.one("Tenants::ownerless_holds", Operation::Scan, holds).await.unwrap();
    let names = tenants.attribute_names(tenant, "", 10);
    calls.one("Tenants::attribute_names", Operation::Search, names).await.unwrap();

    let search = &store.search;
    for path in [AccessPath::All, AccessPath::Identity(vec![email(1)])] {
        let found = search.search(tenant, &path, None, 10, view);
        calls.one("Search::search", Operation::Search, found).await.unwrap();
        let probe = search.probe(tenant, &path, 10);
        calls.one("Search::probe", Operation::Search, probe).await.unwrap();
    }
    let known = search.known_words(tenant, &[]);
    calls.one("Search::known_words", Operation::Search, known).await.unwrap();
    calls.one("Search::scan", Operation::Scan, search.scan(tenant, None, 10)).await.unwrap();
    let taken = calls.one("Search::snapshot", Operation::Scan, search.snapshot()).await;
    let export = taken.unwrap().unwrap();
    calls.one("ExportSnapshot::tenant", Operation::Tenant, export.tenant(tenant)).await.unwrap();
    let scan = export.scan(tenant, None, 10);
    calls.one("ExportSnapshot::scan", Operation::Scan, scan).await.unwrap();
    let holds = export.ownerless_holds(tenant, None, 10);
    calls.one("ExportSnapshot::ownerless_holds", Operation::Scan, holds).await.unwrap();

    let (histories, now) = (&store.histories, Timestamp::now());
    let history = histories.history(tenant, id(1), None, limit);
    calls.one("Histories::history", Operation::Scan, history).await.unwrap();
    let history = histories.tenant_history(tenant, None, 10);
    calls.one("Histories::tenant_history", Operation::Scan, history).await.unwrap();
    let newest = histories.newest_events(tenant, Timestamp::MIN..now, None, limit);
    calls.one("Histories::newest_events", Operation::Scan, newest).await.unwrap();
    let ended = histories.ended_ownerships(keys);
    calls.one("Histories::ended_ownerships", Operation::Scan, ended).await.unwrap();
    let by = Shortening { retention: Duration::from_secs(86_400), now };
    let shorten = histories.shorten_history(tenant, by, None);
    calls.one("Histories::shorten_history", Operation::Scan, shorten).await.unwrap();
    let strays = histories.remove_strays(None);
    calls.one("Histories::remove_strays", Operation::Scan, strays).await.unwrap();
    let expired = histories.expired_users(now, None, 10);
    calls.one("Histories::expired_users", Operation::ExpiredUsers, expired).await.unwrap();
}

async fn inboxes(calls: &mut Calls, store: &Backend) {
    let (inboxes, inbox) = (&store.inboxes, Operation::Inbox);
    let (user, notice) = (id(1), server());
    let request = IdempotencyKey { key: "x".to_owned(), request_hash: 1 };
    let begin = inboxes.begin_notice(&request, START, Some(notice), Now::certain(START));
    calls.one("Inboxes::begin_notice", inbox, begin).await.unwrap();
    let deliver = inboxes.deliver(Arc::new(delivery(notice, START, user)));
    calls.one("Inboxes::deliver", inbox, deliver).await.unwrap();
    let users = [user];
    let holders = inboxes.holders(notice, START, &users);
    calls.one("Inboxes::holders", inbox, holders).await.unwrap();
    let list = inboxes.inboxes(&Tenant::DEFAULT, user);
    calls.one("Inboxes::inboxes", inbox, list).await.unwrap();
    calls.one("Inboxes::inbox", inbox, inboxes.inbox(user, None, 10, true)).await.unwrap();
    calls.one("Inboxes::oldest", inbox, inboxes.oldest(user, 1)).await.unwrap();
    let change = inboxes.change_inbox(user, InboxChange::ReadUpTo(START));
    calls.one("Inboxes::change_inbox", inbox, change).await.unwrap();
}

async fn others(calls: &mut Calls, store: &Backend) {
    let (tenant, now) = (&Tenant::DEFAULT, Timestamp::now());
    let add = store.usage.add_usage(Arc::new(batch(server(), 1, now, 1)));
    calls.one("Usage::add_usage", Operation::Usage, add).await.unwrap();
    let read = store.usage.usage(query(Resolution::Day, START, now), 10);
    calls.one("Usage::usage", Operation::Usage, read).await.unwrap();
    let remove = store.usage.remove_usage(tenant);
    calls.one("Usage::remove_usage", Operation::Usage, remove).await.unwrap();

    let (changes, bulk) = (&store.bulk_changes, Operation::Bulk);
    calls.one("BulkChanges::bulk_change", bulk, changes.bulk_change(tenant, "x")).await.unwrap();
    let listed = changes.listed_users(tenant, "x", 0);
    calls.one("BulkChanges::listed_users", bulk, listed).await.unwrap();
    calls.one("BulkChanges::bulk_changes", bulk, changes.bulk_changes(tenant)).await.unwrap();
    let due = changes.due_bulk_changes(now, 10);
    calls.one("BulkChanges::due_bulk_changes", bulk, due).await.unwrap();
    let expired = changes.expired_bulk_changes(now, 10);
    calls.one("BulkChanges::expired_bulk_changes", bulk, expired).await.unwrap();
    let remove = changes.remove_bulk_changes(tenant);
    calls.one("BulkChanges::remove_bulk_changes", bulk, remove).await.unwrap();

    let (deliveries, of_events) = (&store.deliveries, Operation::Delivery);
    let one = deliveries.delivery(tenant, "x");
    calls.one("Deliveries::delivery", of_events, one).await.unwrap();
    let listed = deliveries.deliveries(tenant);
    calls.one("Deliveries::deliveries", of_events, listed).await.unwrap();
    let due = deliveries.due_deliveries(now, 10);
    calls.one("Deliveries::due_deliveries", of_events, due).await.unwrap();
    let remove = deliveries.remove_deliveries(tenant);
    calls.one("Deliveries::remove_deliveries", of_events, remove).await.unwrap();

    let (feed, at_once) = (&store.feed, Duration::ZERO);
    let position = calls.one("EventFeed::position", Operation::Feed, feed.position()).await;
    let position = position.unwrap();
    let events = feed.events(tenant, &position, at_once);
    calls.one("EventFeed::events", Operation::Feed, events).await.unwrap();

    if let Some(file) = store.file.clone() {
        let copy = async { file.copy(&AtomicBool::new(false)) };
        calls.one("StoreFile::copy", Operation::Copy, copy).await.unwrap();
    }
}
