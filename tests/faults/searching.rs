//! Users are searched on three shards while chunks of users move between them, and others change:
//! a search finds each user that does not change, once and in its place.

use std::time::Duration;

use mongodb::bson::{Binary, Bson, spec::BinarySubtype};
use polynym_directory::search::{Filter, Lead, Position, parse_order_by};
use polynym_directory::{Backend, NewUser, Tenant, Update, User, UserChange, Value, View};
use polynym_identifier::Rules;
use polynym_mongodb::Options;
use tokio::time::{Instant, sleep};

use crate::place::{cluster, fresh, open, prepare_sharded, print_line};
use crate::servers::Sharded;
use crate::users;

/// Users that rest, and users that change. Chunks begin at users 2 and 5, so more are cut below.
const RESTING: usize = 90;
const RESTLESS: usize = 6;
/// Chunks that move.
const MOVES: usize = 12;
/// The time limit, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn attributes(n: usize) -> [(String, Value); 3] {
    let text = |text: &str| Value::String(text.to_owned());
    let list = Value::List(vec![format!("t{}", n % 5), format!("t{}", n % 7)]);
    [
        ("team".to_owned(), text(["red", "blue", "green"][n % 3])),
        ("level".to_owned(), Value::Int((n % 11) as i64)),
        ("tags".to_owned(), list),
    ]
}

fn creation(n: usize) -> polynym_directory::Mutation {
    let attributes = attributes(n).into();
    let display_name = format!("user {:02}", n % 40);
    let new = NewUser { attributes, display_name, ..NewUser::default() };
    users::mutation(users::id(n), UserChange::Create(new))
}

fn leads() -> Vec<Lead> {
    let filters = [
        "attributes.team = red",
        "attributes.level >= 3 attributes.level < 9",
        "attributes.tags = t1",
        "attributes.tags:*",
        "display_name = \"user 1*\"",
    ];
    let lead = |text: &str| {
        Filter::parse(text, &[Rules::PRESENT]).unwrap().leads().into_iter().next().unwrap()
    };
    let all = Filter::parse("", &[Rules::PRESENT]).unwrap();
    let field = parse_order_by("attributes.tags").unwrap().unwrap();
    let leads = filters.into_iter().map(lead).chain([Lead::All]);
    leads.chain(all.ordered_leads(&field)).collect()
}

fn is_resting(user: &User) -> bool {
    (0..RESTING).any(|n| users::id(n) == user.id)
}

/// The resting users that a lead finds, page by page.
async fn found(store: &Backend, lead: &Lead, size: usize) -> Vec<Position> {
    let (mut found, mut after) = (Vec::new(), None::<Position>);
    loop {
        let page = store.search.search(&Tenant::DEFAULT, lead, after.as_ref(), size, View::Full);
        let page = page.await.unwrap();
        let Some(last) = page.last() else { return found };
        after = lead.position(&last.user);
        let resting = page.iter().filter(|found| is_resting(&found.user));
        found.extend(resting.filter_map(|found| lead.position(&found.user)));
    }
}

/// Changes users until it is dropped.
async fn disturb(store: Backend) {
    for round in 0.. {
        for n in RESTING..RESTING + RESTLESS {
            let attributes = attributes(n + round).into();
            let update = Update::from_mask(None, format!("user {round}"), attributes).unwrap();
            let mutation = users::mutation(users::id(n), UserChange::Update(update));
            store.mutations.mutate(mutation).await.unwrap();
        }
    }
}

/// Moves chunks of users from shard to shard.
async fn move_chunks(cluster: &Sharded, space: &str) {
    let (since, mut moves) = (Instant::now(), 0);
    while moves < MOVES {
        assert!(since.elapsed() < PATIENCE, "{moves} chunks have moved");
        let bytes = users::id(moves * 7 % RESTING).as_bytes().to_vec();
        let point = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes });
        let owner = cluster.owner(space, point.clone()).await;
        let others: Vec<_> = cluster.shards.iter().filter(|other| other.name != owner).collect();
        let to = &others[moves % others.len()].name;
        // A move may fail where a transaction is in its way for too long.
        if cluster.move_chunk(space, point, to).await.is_ok() {
            moves += 1;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_whom_chunks_that_move_hide() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let space = format!("{name}.users");
    let store = open(&cluster.uri(&name), Options::default(), false).await;
    for n in 0..RESTING + RESTLESS {
        store.mutations.mutate(creation(n)).await.unwrap();
    }
    let leads = leads();
    let mut wanted = Vec::new();
    for lead in &leads {
        wanted.push(found(&store, lead, 1_000).await);
        assert!(wanted.last().is_some_and(|users| users.len() > 10 && users.is_sorted()), "{lead}");
    }

    let disturbing = tokio::spawn(disturb(store.clone()));
    let mut moving = std::pin::pin!(move_chunks(cluster, &space));
    let mut searches = 0;
    loop {
        let n = searches % leads.len();
        let search = found(&store, &leads[n], [3, 10, 50][searches % 3]);
        tokio::select! {
            () = &mut moving => break,
            users = search => assert_eq!(users, wanted[n], "{}", leads[n]),
        }
        searches += 1;
    }
    disturbing.abort();
    print_line(&format!("{searches} searches while {MOVES} chunks of users moved"));
    assert!(searches >= leads.len(), "{searches} searches");
    cluster.client().await.database(&name).drop().await.unwrap();
}
