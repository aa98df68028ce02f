//! Searches on three shards while chunks of users move and other users change: each unchanged user
//! is found once and in order.

use std::pin::pin;
use std::time::Duration;

use mongodb::bson::{Binary, Bson, spec::BinarySubtype};
use polynym_directory::{
    AccessPath, Backend, Filter, NewUser, Position, Tenant, Update, User, UserChange, Value, View,
    search::parse_order_by,
};
use polynym_identifier::Rules;
use polynym_mongodb::Options;
use tokio::time::{Instant, sleep};

use crate::servers::Sharded;
use crate::stores::{cluster, fresh, open, prepare_sharded, print_line};
use crate::users;

/// Unchanged and changing users. Chunks begin at users 2 and 5, so more splits follow below them.
const UNCHANGED: usize = 90;
const RESTLESS: usize = 6;
/// The number of moves.
const MOVES: usize = 12;
/// The time limit, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

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

fn paths() -> Vec<AccessPath> {
    let filters = [
        "attributes.team = red",
        "attributes.level >= 3 attributes.level < 9",
        "attributes.tags = t1",
        "attributes.tags:*",
        "display_name = \"user 1*\"",
    ];
    let path = |text: &str| {
        Filter::parse(text, &[Rules::PRESENT]).unwrap().access_paths().into_iter().next().unwrap()
    };
    let all = Filter::parse("", &[Rules::PRESENT]).unwrap();
    let field = parse_order_by("attributes.tags").unwrap().unwrap();
    let paths = filters.into_iter().map(path).chain([AccessPath::All]);
    paths.chain(all.ordered_paths(&field)).collect()
}

fn is_unchanged(user: &User) -> bool {
    (0..UNCHANGED).any(|n| users::id(n) == user.id)
}

/// The unchanged users that a path finds, page by page.
async fn found(store: &Backend, path: &AccessPath, size: usize) -> Vec<Position> {
    let (mut found, mut after) = (Vec::new(), None::<Position>);
    loop {
        let answer = store.search.search(&Tenant::DEFAULT, path, after.as_ref(), size, View::Full);
        let page = answer.await.unwrap();
        assert_eq!(page.unreadable().next(), None);
        let resting = page.readable().filter(|found| is_unchanged(&found.user));
        found.extend(resting.filter_map(|found| path.position(&found.user)));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// Changes users until the task is dropped.
async fn change_users(store: Backend) {
    for round in 0.. {
        for n in UNCHANGED..UNCHANGED + RESTLESS {
            let attributes = attributes(n + round).into();
            let update = Update::from_mask(None, format!("user {round}"), attributes).unwrap();
            let mutation = users::mutation(users::id(n), UserChange::Update(update));
            store.mutations.mutate(mutation).await.unwrap();
        }
    }
}

/// Moves chunks of users between shards.
async fn move_chunks(cluster: &Sharded, space: &str) {
    let (since, mut moves) = (Instant::now(), 0);
    while moves < MOVES {
        assert!(since.elapsed() < TIMEOUT, "{moves} chunks have moved");
        let bytes = users::id(moves * 7 % UNCHANGED).as_bytes().to_vec();
        let point = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes });
        let owner = cluster.owner(space, point.clone()).await;
        let others: Vec<_> = cluster.shards.iter().filter(|other| other.name != owner).collect();
        let to = &others[moves % others.len()].name;
        // A move may fail if a transaction blocks it for too long.
        if cluster.move_chunk(space, point, to).await.is_ok() {
            moves += 1;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_users_in_moving_chunks() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let space = format!("{name}.users");
    let store = open(&cluster.uri(&name), Options::default(), false).await;
    for n in 0..UNCHANGED + RESTLESS {
        store.mutations.mutate(creation(n)).await.unwrap();
    }
    let paths = paths();
    let mut wanted = Vec::new();
    for path in &paths {
        wanted.push(found(&store, path, 1_000).await);
        assert!(wanted.last().is_some_and(|users| users.len() > 10 && users.is_sorted()), "{path}");
    }

    let disturbing = tokio::spawn(change_users(store.clone()));
    let mut moving = pin!(move_chunks(cluster, &space));
    let (mut searches, mut is_moving) = (0, true);
    while is_moving || searches < paths.len() {
        let n = searches % paths.len();
        let mut search = pin!(found(&store, &paths[n], [3, 10, 50][searches % 3]));
        let users = tokio::select! {
            () = &mut moving, if is_moving => {
                is_moving = false;
                search.await
            }
            users = &mut search => users,
        };
        assert_eq!(users, wanted[n], "{}", paths[n]);
        searches += 1;
    }
    disturbing.abort();
    print_line(&format!("{searches} searches while {MOVES} chunks of users moved"));
    cluster.client().await.database(&name).drop().await.unwrap();
}
