//! Counters of calls: what callers did is what they show, on both stores, over servers that come
//! and go.

mod contract;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use polynym::proto::v1;
use polynym::store::mongo::{InitOptions, init};
use tonic::Code;

use crate::calls::{Client, email, handle, identity};
use crate::server::Server;
use crate::servers;
use crate::status::{StatusDetails, status_details};

/// The counters of the last day, by metric.
async fn counted(client: &mut Client) -> BTreeMap<String, i64> {
    client.usage(v1::GetUsageRequest::default()).await.unwrap()
}

/// Makes calls of which four look-ups find nobody. Returns them by metric.
async fn work(client: &mut Client, names: std::ops::Range<usize>) -> BTreeMap<String, i64> {
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

/// Runs servers on a store one after the other, and the last two at once. What the servers that
/// ended cleanly have counted is what was called.
async fn servers_count_what_they_do(store: &str) {
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
    // A server that runs writes as well.
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
        assert!(begun.elapsed() < Duration::from_secs(40), "{counted:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_has_what_servers_counted() {
    let folder = tempfile::tempdir().unwrap();
    servers_count_what_they_do(&format!("embedded:{}", folder.path().join("store").display()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mongodb_has_what_servers_counted() {
    let uri = servers::one_member().await.uri("usage", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    servers_count_what_they_do(&uri).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &store]));
    let mut client = Client::connect(&server.url).await;
    client.create(v1::User::default()).await.unwrap();
    let seconds = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let invalid = |field| StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field(field);
    let day = 86_400;
    let minutes = v1::UsageResolution::Minute.into();
    let cases = [
        (
            v1::GetUsageRequest { from: seconds(now), to: seconds(now), ..Default::default() },
            invalid("to"),
        ),
        (v1::GetUsageRequest { from: seconds(now + day), ..Default::default() }, invalid("to")),
        (v1::GetUsageRequest { resolution: 9, ..Default::default() }, invalid("resolution")),
        (
            v1::GetUsageRequest {
                metrics: vec!["calls.*".to_owned(), "logins.GetUser.OK".to_owned()],
                ..Default::default()
            },
            invalid("metrics[1]"),
        ),
        (
            v1::GetUsageRequest { callers: vec![String::new(); 101], ..Default::default() },
            invalid("callers"),
        ),
    ];
    for (request, expected) in cases {
        let refused = client.admin.get_usage(request).await.unwrap_err();
        assert_eq!(status_details(refused), expected);
    }

    let old = v1::GetUsageRequest {
        from: seconds(now - 15 * day),
        resolution: minutes,
        ..Default::default()
    };
    let refused = client.admin.get_usage(old.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert_eq!(status_details(refused).reason, "USAGE_EXPIRED");
    // In hours it is there, and the end may lie in the future.
    let hours = v1::UsageResolution::Hour.into();
    let coarse = v1::GetUsageRequest { resolution: hours, to: seconds(now + day), ..old };
    let answer = client.admin.get_usage(coarse).await.unwrap().into_inner();
    assert_eq!(answer.resolution(), v1::UsageResolution::Hour);
    assert_eq!(answer.from.unwrap().seconds, (now - 15 * day) / 3_600 * 3_600);

    let elsewhere = v1::GetUsageRequest { tenant: "acme".to_owned(), ..Default::default() };
    let refused = client.admin.get_usage(elsewhere).await.unwrap_err();
    assert_eq!(status_details(refused), StatusDetails::new(Code::NotFound, "TENANT_NOT_FOUND"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_draws_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &store]));
    work(&mut Client::connect(&server.url).await, 0..5).await;
    server.signal("TERM");
    assert!(tokio::task::block_in_place(|| server.wait()).success());

    let server = tokio::task::block_in_place(|| Server::start(&["--store", &store]));
    let shown = |arguments: &[&str]| {
        let output = tokio::task::block_in_place(|| server.run(arguments));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let drawn = shown(&["usage", "--metric", "resolves.*"]);
    let words = |name: &str| -> Vec<&str> {
        let line = drawn.lines().find(|line| line.contains(name)).unwrap();
        line.split(['│', '┆']).map(str::trim).filter(|word| !word.is_empty()).collect()
    };
    let found = words("resolves.handle.found");
    assert_eq!(found[..3], ["resolves.handle.found", "all", "7"]);
    assert!(found[3].contains('█'), "{drawn}");
    assert!(drawn.contains("(UTC), by hour") && !drawn.contains("calls."), "{drawn}");

    let csv = shown(&["usage", "--csv", "--metric", "calls.CreateUser.OK", "--since", "1h"]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("time,metric,caller,count", 2));
    assert!(lines[1].ends_with(":00Z,calls.CreateUser.OK,anonymous,5"), "{csv}");
    let json = shown(&["usage", "--json", "--caller", "nobody"]);
    assert!(json.contains("USAGE_RESOLUTION_HOUR") && !json.contains("series"), "{json}");
}
