//! Slow clients and open streams: neither blocks other clients.

use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::raw::{DATA, Raw};
use super::store::{TestStore, tests_on_store};
use super::{block_on, serves_others};
use crate::status::{StatusDetails, status_details};

async fn health(url: &str) -> HealthClient<Channel> {
    HealthClient::new(Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap())
}

tests_on_store! {
    incomplete_messages_take_no_permit
    a_fragmented_message_is_reassembled
    health_watches_take_no_permit
}

fn incomplete_messages_take_no_permit(store: &TestStore) {
    let server = store.serve(&["--max-calls", "2"]);
    let mut slow: Vec<_> = (0..3).map(|_| Raw::greeted(&server)).collect();
    for raw in &mut slow {
        for n in 0..50 {
            raw.open(2 * n + 1, &[], false);
            raw.send(DATA, 0, 2 * n + 1, &[0]);
        }
    }

    serves_others(&server);
    block_on(async {
        health(&server.url).await.check(HealthCheckRequest::default()).await.unwrap()
    });
}

fn a_fragmented_message_is_reassembled(store: &TestStore) {
    let server = store.serve(&[]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[], false);
    let message = [&[0, 0, 0, 0, 6, 0x12, 4, 0x12, 2][..], b"jo"].concat();
    for (n, byte) in message.iter().enumerate() {
        raw.send(DATA, 0, 1, &[]);
        raw.send(DATA, u8::from(n + 1 == message.len()), 1, &[*byte]);
    }
    raw.until(super::raw::HEADERS).expect("an answer");
}

fn health_watches_take_no_permit(store: &TestStore) {
    let server = store.serve(&["--max-calls", "2"]);
    block_on(async {
        let mut watching = Vec::new();
        for _ in 0..4 {
            let mut health = health(&server.url).await;
            for _ in 0..8 {
                let mut stream =
                    health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
                assert!(stream.message().await.unwrap().is_some());
                watching.push(stream);
            }
            let more =
                status_details(health.watch(HealthCheckRequest::default()).await.unwrap_err());
            assert_eq!(
                more,
                StatusDetails {
                    retry: true,
                    ..StatusDetails::new(tonic::Code::ResourceExhausted, "OVERLOADED")
                }
            );
            health.check(HealthCheckRequest::default()).await.unwrap();
        }
    });
    serves_others(&server);
}
