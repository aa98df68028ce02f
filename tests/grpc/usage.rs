//! Counters of calls across restarts of servers.

use std::time::SystemTime;

use polynym_proto::v1;
use tonic::Code;

use crate::support::calls::Client;
use crate::support::scenarios::usage::{clean_stops_lose_no_counts, work};
use crate::support::server::Server;
use crate::support::status::{StatusDetails, status_details};

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_counts_calls() {
    let folder = tempfile::tempdir().unwrap();
    clean_stops_lose_no_counts(&format!("embedded:{}", folder.path().join("store").display()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = tokio::task::block_in_place(|| Server::start(&["--store", &store]));
    let mut client = Client::connect(&server.url).await;
    // The default tenant has no record before its first change.
    client.admin.get_usage(v1::GetUsageRequest::default()).await.unwrap();
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
async fn the_usage_command_draws_counters() {
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
