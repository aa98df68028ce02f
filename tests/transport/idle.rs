//! Idle connections and streams: the server closes them.

use std::time::{Duration, Instant};

use polynym_proto::v1;
use tonic::Code;
use tonic::transport::Channel;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use crate::calls::{Client, handle, identity};
use crate::http2::raw::{GOAWAY, HEADERS, Raw};
use crate::http2::{TIMEOUT, block_on, serves_others};
use crate::status::{StatusDetails, status_details};
use crate::test_store;

const PING: u8 = 6;
const ACK: u8 = 1;
const RENORMALIZE: &str = "/polynym.v1.AdminService/Renormalize";

#[test]
fn a_connection_with_only_pings_is_closed() {
    let store = test_store();
    let server = store.serve(&["--connection-idle", "500ms"]);
    let mut raw = Raw::greeted(&server);
    let mut kinds = Vec::new();

    while let Some(frame) = raw.next() {
        if (frame.kind, frame.flags) == (PING, 0) {
            raw.send(PING, ACK, 0, &frame.payload);
        }
        kinds.push(frame.kind);
    }

    assert!(kinds.contains(&GOAWAY), "{kinds:?}");
    serves_others(&server);
}

#[test]
fn an_idle_stream_ends() {
    let store = test_store();
    let server = store.serve(&["--call-timeout", "1s"]);
    block_on(async {
        let channel = Channel::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let request = ServerReflectionRequest { host: String::new(), message_request };
        let start = Instant::now();
        loop {
            let (sender, requests) = tokio::sync::mpsc::channel(1);
            sender.send(request.clone()).await.unwrap();
            let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
            let mut client = ServerReflectionClient::new(channel.clone());
            let mut answers = client.server_reflection_info(requests).await.unwrap().into_inner();
            let first = answers.message().await.unwrap();
            // On a busy machine the stream may be idle before its first answer.
            if first.is_some() {
                let end = tokio::time::timeout(TIMEOUT, answers.message()).await;
                assert!(matches!(end, Ok(Ok(None))), "{end:?}");
                return drop(sender);
            }
            assert!(start.elapsed() < TIMEOUT, "no stream has an answer");
        }
    });
}

#[test]
fn an_unread_renormalize_call_releases_its_tenant() {
    let store = test_store();
    let server = store.serve(&["--call-timeout", "5s"]);
    // More users than one message of the stream reports.
    block_on(async {
        let mut client = Client::connect(&server.url).await;
        for n in 0..150 {
            let identities = vec![identity(handle(&format!("user{n}")))];
            client.create(v1::User { identities, ..Default::default() }).await.unwrap();
        }
    });
    let running =
        StatusDetails { retry: false, ..StatusDetails::new(Code::Aborted, "RENORMALIZE_RUNNING") };
    let (start, mut refused) = (Instant::now(), 0);
    // On a busy machine the stream may be closed before the first call.
    while refused == 0 {
        let mut unread = Raw::with_window(&server, 0);
        unread.ask(1, RENORMALIZE, &v1::RenormalizeRequest::default());
        unread.until(HEADERS).expect("the stream begins");
        block_on(async {
            let mut client = Client::connect(&server.url).await;
            let request = v1::RenormalizeRequest::default();
            while let Err(status) = client.admin.renormalize(request.clone()).await {
                assert_eq!(status_details(status), running);
                refused += 1;
                assert!(start.elapsed() < TIMEOUT, "the stream is not closed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
}
