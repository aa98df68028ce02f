//! Deliveries of events to receivers.

use std::time::Duration;

use polynym_proto::v1;
use polynym_proto::v1::replay_delivery_request::Begin;
use tonic::Code;

use super::{Fresh, fresh, fresh_with, store_in};
use crate::support::calls::Client;
use crate::support::receiver::{NEXT_SECRET, Receiver, SECRET};
use crate::support::scenarios::delivering::{
    ID, TO_THIS_MACHINE, a_pause_loses_nothing, an_event_holds_up_its_user_alone, attempts, create,
    create_user, creation, each_of_many_events_is_delivered, get, killed_servers_lose_no_event,
    pause, until, update,
};
use crate::support::scenarios::watching::rename;
use crate::support::server::Server;
use crate::support::status::status_details;

async fn delivering() -> (Fresh, Client) {
    fresh_with(&[TO_THIS_MACHINE]).await
}

async fn replay(client: &mut Client, begin: Begin) -> i32 {
    let request = v1::ReplayDeliveryRequest {
        delivery_id: ID.to_owned(),
        begin: Some(begin),
        ..Default::default()
    };
    client.admin.replay_delivery(request).await.unwrap().into_inner().users
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_not_taken_holds_up_its_user_alone() {
    let (_server, mut client) = delivering().await;
    an_event_holds_up_its_user_alone(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_delivery_loses_nothing() {
    let (_server, mut client) = delivering().await;
    a_pause_loses_nothing(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_at_once_keep_each_others_fields() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    create(&mut client, creation(&receiver)).await.unwrap();
    for n in 0..10 {
        let (mut one, mut other) = (client.clone(), client.clone());
        let (url, description) = (format!("{}&n={n}", receiver.url), format!("number {n}"));
        let named = v1::UpdateDeliveryRequest { url: url.clone(), ..Default::default() };
        let described =
            v1::UpdateDeliveryRequest { description: description.clone(), ..Default::default() };
        let (named, described) = tokio::join!(
            update(&mut one, named, &["url"]),
            update(&mut other, described, &["description"])
        );
        named.unwrap();
        described.unwrap();
        let both = get(&mut client).await;
        assert_eq!((both.url, both.description), (url, description));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_delivered() {
    let (_server, mut client) = delivering().await;
    each_of_many_events_is_delivered(&mut client, 2_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_each_event_is_delivered() {
    let (_server, mut client) = delivering().await;
    each_of_many_events_is_delivered(&mut client, 1_000_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(&folder);
    killed_servers_lose_no_event(|| Server::start(&["--store", &store, TO_THIS_MACHINE])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_the_form_that_the_delivery_has() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    let types = vec![v1::EventType::UserCreated.into()];
    let request = v1::CreateDeliveryRequest { types, ids_only: true, ..creation(&receiver) };
    let created = create(&mut client, request.clone()).await.unwrap();
    assert_eq!(create(&mut client, request).await.unwrap().create_time, created.create_time);
    assert_eq!((created.secret_count, created.state()), (1, v1::DeliveryState::Active));

    let ann = create_user(&mut client, "ann").await;
    rename(&mut client, &ann, "Anna").await.unwrap();
    let joe = create_user(&mut client, "joe").await;
    receiver.until("two events", |got| got.len() == 2).await;
    let got = receiver.got();
    let events = [(ann.clone(), 1), (joe.clone(), 1)];
    assert!(got.iter().all(|got| events.contains(&got.event())), "{got:?}");
    assert_eq!(got[0].body["type"], "dev.polynym.user_created");
    assert_eq!(got[0].body["data"].as_object().unwrap().len(), 5, "{}", got[0].body);
    assert!(!format!("{got:?}").contains("ann\""), "a value: {got:?}");

    // A new secret is told beside the old one.
    let secrets = vec![NEXT_SECRET.to_owned(), SECRET.to_owned()];
    let request = v1::UpdateDeliveryRequest { secrets, ..Default::default() };
    let paths = ["secrets", "types", "ids_only"];
    let updated = update(&mut client, request, &paths).await.unwrap();
    assert_eq!((updated.secret_count, updated.ids_only, updated.types.len()), (2, false, 0));
    tokio::time::sleep(Duration::from_secs(7)).await;
    rename(&mut client, &ann, "Anna Maria").await.unwrap();
    receiver.until("the third event", |got| got.len() == 3).await;
    let last = receiver.got().pop().unwrap();
    assert_eq!(last.secrets, [SECRET, NEXT_SECRET]);
    let after = &last.body["data"]["userUpdated"]["fields"][0]["after"];
    assert!(after.to_string().contains("Anna Maria"), "{}", last.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_cannot_be_reached_or_asks_for_time_is_waited_for() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    let address = receiver.url["http://".len()..].split('/').next().unwrap().to_owned();
    create(&mut client, creation(&receiver)).await.unwrap();
    drop(receiver);
    let users = [create_user(&mut client, "ann").await, create_user(&mut client, "joe").await];
    let stalled = until(&mut client, |delivery| !delivery.stall_reason.is_empty()).await;
    assert_eq!((&*stalled.stall_reason, stalled.held_users), ("UNREACHABLE", 0), "{stalled:?}");
    let tested = v1::TestDeliveryRequest { delivery_id: ID.to_owned(), ..Default::default() };
    let tested = client.admin.test_delivery(tested).await.unwrap().into_inner();
    assert_eq!((tested.taken, &*tested.result), (false, "UNREACHABLE"));

    let receiver = Receiver::at(&address).await;
    receiver.answer(|_| Some("503 Service Unavailable\r\nRetry-After: 3"));
    let asked = until(&mut client, |delivery| delivery.stall_reason == "503").await;
    assert_eq!(asked.held_users, 0, "{asked:?}");
    receiver.answer(|_| Some("200 OK"));
    for user in &users {
        let all = |got: &[crate::support::receiver::Got]| {
            got.iter().any(|got| got.is_taken && got.event() == (user.clone(), 1))
        };
        receiver.until("the events", all).await;
    }
    let done = until(&mut client, |delivery| delivery.delivered == 2).await;
    assert_eq!(done.stall_reason, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_sent_again_from_a_time_or_one_by_one() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    let ann = create_user(&mut client, "ann").await;
    rename(&mut client, &ann, "Anna").await.unwrap();
    create(&mut client, creation(&receiver)).await.unwrap();
    let joe = create_user(&mut client, "joe").await;
    receiver.until("the event since", |got| got.len() == 1).await;

    assert_eq!(replay(&mut client, Begin::EventId(format!("{ann}:2"))).await, 1);
    receiver.until("one event", |got| got.len() == 2).await;
    assert_eq!(receiver.taken(&ann), [2]);
    let from = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 };
    assert_eq!(replay(&mut client, Begin::From(from)).await, 2);
    receiver.until("all events", |got| got.len() == 5).await;
    assert_eq!((receiver.taken(&ann), receiver.taken(&joe)), (vec![2, 1, 2], vec![1, 1]));
    until(&mut client, |delivery| delivery.held_users == 0 && delivery.delivered == 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_gets_nothing_of_a_user_who_is_purged_meanwhile() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    create(&mut client, creation(&receiver)).await.unwrap();
    pause(&mut client, true).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let ann = create_user(&mut client, "ann").await;
    rename(&mut client, &ann, "Hidden").await.unwrap();
    // Both events of Ann are read before the first one is sent.
    let (begun, begins) = std::sync::mpsc::channel();
    let first = format!("{ann}:1");
    receiver.answer(move |got| {
        if got.id == first {
            begun.send(()).unwrap();
            std::thread::sleep(Duration::from_secs(5));
        }
        Some("200 OK")
    });
    pause(&mut client, false).await;
    tokio::task::block_in_place(|| begins.recv_timeout(Duration::from_secs(60))).unwrap();
    client.delete(&ann).await.unwrap();
    client.purge(&ann).await.unwrap();
    let joe = create_user(&mut client, "joe").await;
    until(&mut client, |delivery| delivery.delivered == 2 && delivery.held_users == 0).await;
    assert_eq!((receiver.taken(&ann), receiver.taken(&joe)), (vec![1], vec![1]));
    assert!(!format!("{:?}", receiver.got()).contains("Hidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_purged_user_is_sent() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| Some("500 Internal Server Error"));
    create(&mut client, creation(&receiver)).await.unwrap();
    let ann = create_user(&mut client, "ann").await;
    until(&mut client, |delivery| delivery.held_users == 1).await;
    pause(&mut client, true).await;
    let joe = create_user(&mut client, "joe").await;
    rename(&mut client, &joe, "Secret").await.unwrap();
    for user in [&ann, &joe] {
        client.delete(user).await.unwrap();
        client.purge(user).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = receiver.got().len();
    receiver.answer(|_| Some("200 OK"));
    pause(&mut client, false).await;
    let last = create_user(&mut client, "last").await;
    receiver
        .until("a later event", |got| got.iter().any(|got| got.event() == (last.clone(), 1)))
        .await;
    until(&mut client, |delivery| delivery.held_users == 0).await;
    let since = receiver.got().split_off(before);
    assert!(since.iter().all(|got| got.event().0 == last), "{since:?}");
    assert!(attempts(&mut client).await.dead_letters.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_checked() {
    let (_server, mut client) = delivering().await;
    let receiver = Receiver::start().await;
    let good = || creation(&receiver);
    for (field, request) in [
        ("delivery_id", v1::CreateDeliveryRequest { delivery_id: String::new(), ..good() }),
        ("delivery_id", v1::CreateDeliveryRequest { delivery_id: "a/b".into(), ..good() }),
        ("url", v1::CreateDeliveryRequest { url: "http://10.0.0.1/".into(), ..good() }),
        ("url", v1::CreateDeliveryRequest { url: "https://169.254.169.254/".into(), ..good() }),
        ("secrets", v1::CreateDeliveryRequest { secrets: Vec::new(), ..good() }),
        ("secrets", v1::CreateDeliveryRequest { secrets: vec![SECRET.into(); 3], ..good() }),
        ("secrets[0]", v1::CreateDeliveryRequest { secrets: vec!["a".into()], ..good() }),
        ("types", v1::CreateDeliveryRequest { types: vec![1], ..good() }),
        ("description", v1::CreateDeliveryRequest { description: "a\nb".into(), ..good() }),
    ] {
        let details = status_details(create(&mut client, request).await.unwrap_err());
        assert_eq!(
            (details.code, details.fields.join(",")),
            (Code::InvalidArgument, field.to_owned()),
            "{details:?}"
        );
    }
    let missing = update(&mut client, v1::UpdateDeliveryRequest::default(), &["paused"]).await;
    assert_eq!(status_details(missing.unwrap_err()).reason, "DELIVERY_NOT_FOUND");
    create(&mut client, good()).await.unwrap();
    let other = v1::CreateDeliveryRequest { ids_only: true, ..good() };
    let exists = status_details(create(&mut client, other).await.unwrap_err());
    assert_eq!(exists.reason, "DELIVERY_EXISTS");
    let unknown = update(&mut client, v1::UpdateDeliveryRequest::default(), &["tenant"]).await;
    assert_eq!(status_details(unknown.unwrap_err()).reason, "UPDATE_MASK_INVALID");
    for n in 1..100 {
        let delivery_id = format!("hook-{n}");
        create(&mut client, v1::CreateDeliveryRequest { delivery_id, ..good() }).await.unwrap();
    }
    let surplus = v1::CreateDeliveryRequest { delivery_id: "surplus".into(), ..good() };
    let refused = status_details(create(&mut client, surplus.clone()).await.unwrap_err());
    assert_eq!(refused.reason, "TOO_MANY_DELIVERIES");

    let tested = v1::TestDeliveryRequest { delivery_id: ID.to_owned(), ..Default::default() };
    let tested = client.admin.test_delivery(tested).await.unwrap().into_inner();
    assert_eq!((tested.taken, &*tested.result), (true, "200"));
    assert_eq!(receiver.got().pop().unwrap().body["type"], "dev.polynym.test");
    let delete = v1::DeleteDeliveryRequest { delivery_id: "hook-1".into(), ..Default::default() };
    for _ in 0..2 {
        client.admin.delete_delivery(delete.clone()).await.unwrap();
    }
    create(&mut client, surplus).await.unwrap();
    assert_eq!(get(&mut client).await.url, receiver.url);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_public_unless_the_operator_says_otherwise() {
    let (_server, mut client) = fresh().await;
    let receiver = Receiver::start().await;
    let refused = status_details(create(&mut client, creation(&receiver)).await.unwrap_err());
    assert_eq!((refused.code, refused.fields), (Code::InvalidArgument, vec!["url".to_owned()]));
    // The name of this machine is found out when a server connects.
    let url = "https://localhost:1/".to_owned();
    let request = v1::CreateDeliveryRequest { url, ..creation(&receiver) };
    create(&mut client, request).await.unwrap();
    let tested = v1::TestDeliveryRequest { delivery_id: ID.to_owned(), ..Default::default() };
    let tested = client.admin.test_delivery(tested).await.unwrap().into_inner();
    assert_eq!((tested.taken, &*tested.result), (false, "ADDRESS_REFUSED"));
}
