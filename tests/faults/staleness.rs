//! Look-ups of mixed ages through the caches of two stores, while callers change users through
//! both: answers are within the accepted age, and the latest without one. On a set of one member,
//! and on one of three during failovers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Consistency, EncodedUser, Error, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;
use polynym_layers::lookup_cache::Cached;
use polynym_mongodb::{Mongo, Options};

use crate::audit::State;
use crate::caller::{Caller, Direct, Lagging};
use crate::load::{Length, Load, Plan};
use crate::servers::{Layout, ReplicaSet, Signal};
use crate::stores::{TIMEOUT, fresh, limit_transactions, prepare, print_line};

/// The ages that callers accept.
const AGES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(1_500)];
/// The look-ups and mutations answered before and after a fault.
const SOME: usize = 50;
const PLAN: Plan = Plan { callers: 16, creates: false, ..Plan::DEFAULT };

/// A store whose callers accept answers of some age.
struct Accepting {
    inner: Arc<dyn LookUps>,
    age: Duration,
}

#[async_trait]
impl LookUps for Accepting {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        self.inner.resolve(keys, consistency, view, self.age).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner.get(tenant, ids, view).await
    }
}

/// Callers of a store with a cache: one accepts no age, one asks for linearizable answers and names
/// an age, the others accept some age. `strict` is the consistency of the first.
async fn callers(uri: &str, strict: Consistency) -> Vec<Arc<dyn Caller>> {
    let options = Options { timeout: TIMEOUT, cache_bytes: 1 << 20, ..Options::default() };
    let store = Arc::new(Mongo::open(uri, options).await.unwrap());
    let cache = store.cache().unwrap();
    let backend = store.backend();
    let rules = backend.rules.clone();
    let cached = backend.layered(|inner| Cached::new(inner, rules, cache));
    let accepting = |age, consistency| Direct {
        store: cached.clone().layered(|inner| Accepting { inner, age }),
        consistency,
    };
    let mut callers: Vec<Arc<dyn Caller>> = vec![
        Arc::new(accepting(Duration::ZERO, strict)),
        Arc::new(accepting(AGES[1], Consistency::Linearizable)),
    ];
    for age in AGES {
        callers.push(Arc::new(Lagging(accepting(age, Consistency::Latest))));
    }
    callers
}

async fn prepare_callers(set: &ReplicaSet, strict: Consistency) -> (String, Vec<Arc<dyn Caller>>) {
    let name = fresh();
    prepare(set, &name).await;
    let mut all = callers(&set.uri(&name, ""), strict).await;
    all.extend(callers(&set.uri(&name, ""), strict).await);
    (name, all)
}

async fn check(set: &ReplicaSet, name: &str, callers: &[Arc<dyn Caller>], load: Load, what: &str) {
    let (ledger, before) = load.stop().await;
    let after = State::read(&set.primary().await.database(name).await).await;
    // Callers that accept an age are answered from the caches, and see the changes in time.
    tokio::time::sleep(AGES[1]).await;
    for caller in callers {
        after.is_found(&**caller).await;
    }
    print_line(&format!("look-ups of mixed ages, {what}: {}", ledger.count()));
    ledger.may_be_stale(AGES[1]);
    ledger.check(&before, &after);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_within_the_accepted_age() {
    let set = ReplicaSet::start(Layout::default()).await;
    let (name, callers) = prepare_callers(&set, Consistency::Latest).await;
    let load = Load::start(PLAN, &callers).await;
    load.run_for(Length::Calls(800)).await;
    check(&set, &name, &callers, load, "nothing fails").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_within_the_accepted_age_despite_failovers() {
    let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
    limit_transactions(&set.members).await;
    let (name, callers) = prepare_callers(&set, Consistency::Linearizable).await;
    let load = Load::start(PLAN, &callers).await;
    for is_killed in [true, false] {
        load.until_answered(SOME, Instant::now()).await;
        if is_killed {
            let primary = set.primary().await;
            primary.signal(Signal::Kill).await;
            set.primary().await;
            primary.restart().await;
            limit_transactions([primary]).await;
        } else {
            set.step_down().await;
        }
        set.whole().await;
        load.until_answered(SOME, Instant::now()).await;
    }
    check(&set, &name, &callers, load, "the primary is lost").await;
}
