//! Searches by a range read few entries, wherever values are: on a shard that was just added, on
//! one with the greatest values, or where many users have one value.

use std::collections::BTreeMap;
use std::ops::Bound;

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, doc};
use polynym_directory::{
    AccessPath, Class, IdempotencyKey, Mutation, Mutations, NewUser, Position, Range, Scalar,
    Search, Tenant, UserChange, Value, View, search::Field,
};
use polynym_mongodb::Mongo;

use crate::servers::{self, InDatabase};
use crate::support::users;

/// The limits for a page of 10, on all shards: of the returned documents, and of their bytes. The
/// users of the page have at most 90,000 bytes, and an entry about 150.
const MAX_READ: i64 = 400;
const MAX_BYTES: i64 = 150_000;
/// A text that no search needs, in each user.
const LARGE: usize = 4_000;

/// A user id on the shard with this number.
fn id(shard: usize, n: usize) -> LocalityId {
    let first = ["10", "70", "c0"][shard];
    format!("{first}{n:06x}-0001-b000-0001-000000000000").parse().unwrap()
}

/// Creates users with these values, each on a shard. Returns their ids in the order of the least.
async fn create(store: &Mongo, values: Vec<(usize, Value)>) -> Vec<LocalityId> {
    let (mut mutations, mut order) = (Vec::new(), Vec::new());
    for (n, (shard, value)) in values.into_iter().enumerate() {
        let id = id(shard, n);
        order.push(match &value {
            Value::List(items) => (0, items.iter().min().cloned(), id),
            Value::Int(number) => (*number, None, id),
            other => panic!("{other:?}"),
        });
        let text = Value::String("x".repeat(LARGE));
        let attributes = BTreeMap::from([("v".to_owned(), value), ("text".to_owned(), text)]);
        let new = NewUser { attributes, ..NewUser::default() };
        let request = Some(IdempotencyKey { key: format!("user {n}"), request_hash: 1 });
        mutations.push(Mutation { request, ..users::mutation(id, UserChange::Create(new)) });
    }
    for mutations in mutations.chunks(100) {
        for created in store.mutate_all(mutations.to_vec()).await {
            created.unwrap();
        }
    }
    order.sort();
    order.into_iter().map(|(_, _, id)| id).collect()
}

/// The numbers from this one on.
fn from(first: i64) -> Range {
    Range::above(Bound::Included(Scalar::Int(first)), Class::Number)
}

/// A store with a search by a range.
struct Searched {
    factory: InDatabase,
    store: Mongo,
    path: AccessPath,
}

impl Searched {
    async fn new(range: Range) -> Self {
        Self::by(vec![range]).await
    }

    async fn by(ranges: Vec<Range>) -> Self {
        let factory = super::databases().await.factory();
        let store = factory.mongo().await.unwrap();
        let path = AccessPath::Range { field: Field::Attribute("v".to_owned()), ranges };
        Self { factory, store, path }
    }

    async fn page(
        &self,
        after: Option<&Position>,
        size: usize,
    ) -> (Vec<LocalityId>, Option<Position>) {
        let search = self.store.search(&Tenant::DEFAULT, &self.path, after, size, View::Full);
        let found = search.await.unwrap();
        (found.readable().map(|found| found.user.id).collect(), found.next)
    }

    /// All users, by pages.
    async fn all(&self, size: usize) -> Vec<LocalityId> {
        let (mut all, mut last) = self.page(None, size).await;
        while last.is_some() {
            let (page, next) = self.page(last.as_ref(), size).await;
            all.extend(page);
            last = next;
        }
        all
    }

    /// Reads the first page of 10 within the limits.
    async fn first(&self) -> Vec<LocalityId> {
        self.read_within(None).await.0
    }

    /// Reads a page of 10 within the limits.
    async fn read_within(&self, after: Option<&Position>) -> (Vec<LocalityId>, Option<Position>) {
        let shards = &servers::three_shards().await.shards;
        let name = self.factory.name().await;
        for shard in shards {
            let database = shard.members[0].database(name).await;
            database.run_command(doc! { "profile": 2 }).await.unwrap();
        }
        let found = self.page(after, 10).await;
        let (mut read, mut bytes) = (0, 0);
        for shard in shards {
            let database = shard.members[0].database(name).await;
            database.run_command(doc! { "profile": 0 }).await.unwrap();
            let profile = database.collection::<Document>("system.profile");
            let finds = doc! { "ns": format!("{name}.users") };
            let done: Vec<_> = profile.find(finds).await.unwrap().try_collect().await.unwrap();
            profile.drop().await.unwrap();
            let number = |find: &Document, field| match find.get(field) {
                Some(Bson::Int32(number)) => i64::from(*number),
                Some(Bson::Int64(number)) => *number,
                _ => 0,
            };
            read += done.iter().map(|find| number(find, "nreturned")).sum::<i64>();
            bytes += done.iter().map(|find| number(find, "responseLength")).sum::<i64>();
        }
        println!("{read} documents, {bytes} bytes");
        assert!((10..=MAX_READ).contains(&read), "{read} documents");
        assert!(bytes < MAX_BYTES, "{bytes} bytes");
        found
    }
}

/// The first shard has few users, with the greatest values; the third none.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_with_few_users_decides_nothing() {
    let searched = Searched::new(from(0)).await;
    let few = (0..45).map(|n| (0, Value::Int(1_000_000 + n)));
    let many = (0..1_200).map(|n| (1, Value::Int(n * 7 % 1_200)));
    let order = create(&searched.store, few.chain(many).collect()).await;
    assert_eq!(searched.first().await, order[..10]);
    assert!(searched.all(150).await == order);
    searched.store.close().await;
}

/// Nearly all users have one value, and some have less or more.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_most_users_is_read_by_ids() {
    let searched = Searched::new(from(-9)).await;
    let same = (0..900).map(|n| (n % 3, Value::Int(5)));
    let others = (-4..15_i64).map(|n| (n.unsigned_abs() as usize % 3, Value::Int(n)));
    let order = create(&searched.store, same.chain(others).collect()).await;
    assert_eq!(searched.first().await, order[..10]);
    for size in [7, 200] {
        assert!(searched.all(size).await == order, "pages of {size}");
    }
    searched.store.close().await;
}

/// A user with many values in the range is found at the least one, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_many_values_is_found_once() {
    let searched = Searched::new(Range::prefix("w")).await;
    let word = |n: usize| format!("w{:04}", n * 37 % 1_000);
    let list = |n: usize| Value::List((0..30).map(|k| word(n + k)).collect());
    let order = create(&searched.store, (0..300).map(|n| (n % 2, list(n))).collect()).await;
    assert_eq!(searched.first().await, order[..10]);
    assert!(searched.all(40).await == order);
    searched.store.close().await;
}

/// Most users have values in both ranges of a search, and are found in the first one.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_in_two_ranges_is_found_in_the_first() {
    let searched = Searched::by(vec![Range::prefix("a"), Range::prefix("w")]).await;
    let list = |n: usize| match n % 10 {
        0 => Value::List(vec![format!("w{n:04}")]),
        _ => Value::List(vec![format!("a{:04}", n * 7 % 600), format!("w{n:04}")]),
    };
    let order = create(&searched.store, (0..600).map(|n| (n % 3, list(n))).collect()).await;
    assert_eq!(searched.first().await, order[..10]);
    assert!(searched.all(40).await == order);
    // The last users of the first range are on one page with the first ones of the second.
    let (_, last) = searched.page(None, 535).await;
    let (found, _) = searched.read_within(last.as_ref()).await;
    assert_eq!(found, order[535..545]);
    searched.store.close().await;
}
