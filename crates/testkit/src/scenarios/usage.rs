//! Counters of calls across restarts of servers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use polynym_proto::v1;
use tonic::Code;

use crate::calls::{Client, email, handle, identity};
use crate::server::Server;

/// The counters of the last day, by metric.
async fn counted(client: &mut Client) -> BTreeMap<String, i64> {
    client.usage(v1::GetUsageRequest::default()).await.unwrap()
}

/// Makes calls, including four look-ups of unknown users. Returns the calls by metric.
pub async fn work(client: &mut Client, names: std::ops::Range<usize>) -> BTreeMap<String, i64> {
    let count = names.len() as i64;
    for n in names {
        let name = format!("user{n}");
        let user = v1::User { identities: vec![identity(handle(&name))], ..Default::default() };
        client.create(user).await.unwrap();
        client.resolve(handle(&name)).await.unwrap();
    }
    for n in 0..3 {
        let nobody = email(&format!("nobody{n}@example.com"));
        assert_eq!(client.resolve(nobody).await.unwrap_err().code(), Code::NotFound);
    }
    let identifiers = vec![handle("user0"), email("nobody@example.com"), handle("user0")];
    let batch = v1::BatchResolveIdentitiesRequest { identifiers, ..Default::default() };
    client.directory.batch_resolve_identities(batch).await.unwrap();

    let expected = [
        ("calls.BatchResolveIdentities.OK", 1),
        ("calls.CreateUser.OK", count),
        ("calls.ResolveIdentity.NOT_FOUND", 3),
        ("calls.ResolveIdentity.OK", count),
        ("resolves.email.not_found", 4),
        ("resolves.handle.found", count + 2),
    ];
    expected.map(|(metric, count)| (metric.to_owned(), count)).into()
}

/// Adds counts to others.
fn add(sums: &mut BTreeMap<String, i64>, counts: &BTreeMap<String, i64>) {
    for (metric, count) in counts {
        *sums.entry(metric.clone()).or_default() += count;
    }
}

/// Runs servers on a store one after the other. Counters equal the calls of cleanly stopped
/// servers.
pub async fn clean_stops_lose_no_counts(store: &str) {
    let mut expected = BTreeMap::new();
    for round in 0..2 {
        let server = tokio::task::block_in_place(|| Server::start(&["--store", store]));
        let mut client = Client::connect(&server.url).await;
        let counts = work(&mut client, round * 10..round * 10 + 10).await;
        add(&mut expected, &counts);
        server.signal("TERM");
        assert!(tokio::task::block_in_place(|| server.wait()).success());
    }

    let server = tokio::task::block_in_place(|| Server::start(&["--store", store]));
    let mut client = Client::connect(&server.url).await;
    assert_eq!(counted(&mut client).await, expected);
    // A running server writes its counters too.
    let own = BTreeMap::from([("calls.GetUsage.OK".to_owned(), 1)]);
    add(&mut expected, &own);
    let begun = Instant::now();
    loop {
        let counted = counted(&mut client).await;
        if let Some(reads) = counted.get("calls.GetUsage.OK") {
            assert!(*reads >= 1);
            expected.insert("calls.GetUsage.OK".to_owned(), *reads);
            assert_eq!(counted, expected);
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{counted:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
