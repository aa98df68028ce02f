//! Deliveries of events to receivers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use polynym_proto::v1;
use prost_types::FieldMask;
use tokio::time::Instant;
use tonic::Status;

use crate::calls::{Client, handle, user};
use crate::receiver::{Got, Receiver, SECRET};
use crate::scenarios::bulk::create_users;
use crate::scenarios::watching::rename;
use crate::server::Server;

/// The argument by which a server delivers to receivers on this machine.
pub const TO_THIS_MACHINE: &str = "--delivery-allow=127.0.0.0/8";
/// The id of the delivery of scenarios.
pub const ID: &str = "hook";
/// The time in which a server notices a change, and more.
const CHANGE_TIME: Duration = Duration::from_secs(7);
/// The time limit on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The request for a delivery to a receiver.
pub fn creation(receiver: &Receiver) -> v1::CreateDeliveryRequest {
    v1::CreateDeliveryRequest {
        delivery_id: ID.to_owned(),
        url: receiver.url.clone(),
        secrets: vec![SECRET.to_owned()],
        ..Default::default()
    }
}

/// Creates a delivery.
pub async fn create(
    client: &mut Client,
    request: v1::CreateDeliveryRequest,
) -> Result<v1::Delivery, Status> {
    let created = client.admin.create_delivery(request).await?.into_inner();
    Ok(created.delivery.unwrap())
}

/// Changes the fields of this mask.
pub async fn update(
    client: &mut Client,
    request: v1::UpdateDeliveryRequest,
    paths: &[&str],
) -> Result<v1::Delivery, Status> {
    let update_mask = Some(FieldMask { paths: paths.iter().map(ToString::to_string).collect() });
    let delivery_id = ID.to_owned();
    let request = v1::UpdateDeliveryRequest { delivery_id, update_mask, ..request };
    Ok(client.admin.update_delivery(request).await?.into_inner().delivery.unwrap())
}

/// Pauses the delivery, or lets it go on.
pub async fn pause(client: &mut Client, paused: bool) -> v1::Delivery {
    let request = v1::UpdateDeliveryRequest { paused, ..Default::default() };
    update(client, request, &["paused"]).await.unwrap()
}

/// The delivery.
pub async fn get(client: &mut Client) -> v1::Delivery {
    let listed = client.admin.list_deliveries(v1::ListDeliveriesRequest::default()).await.unwrap();
    let mut found = listed.into_inner().deliveries.into_iter();
    found.find(|delivery| delivery.delivery_id == ID).unwrap()
}

/// Waits until the delivery is in a state.
pub async fn until(client: &mut Client, condition: impl Fn(&v1::Delivery) -> bool) -> v1::Delivery {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let delivery = get(client).await;
        if condition(&delivery) {
            return delivery;
        }
        assert!(Instant::now() < deadline, "{delivery:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The attempts of the delivery.
pub async fn attempts(client: &mut Client) -> v1::ListDeliveryAttemptsResponse {
    let delivery_id = ID.to_owned();
    let request = v1::ListDeliveryAttemptsRequest { delivery_id, ..Default::default() };
    client.admin.list_delivery_attempts(request).await.unwrap().into_inner()
}

/// Creates a user with this handle. Returns its id.
pub async fn create_user(client: &mut Client, name: &str) -> String {
    client.create(user(name, vec![handle(name)])).await.unwrap().user_id
}

/// Whether a receiver has taken this event.
fn has_taken(got: &[Got], user: &str, number: u64) -> bool {
    got.iter().any(|got| got.is_taken && got.event() == (user.to_owned(), number))
}

/// One event that the receiver does not take holds up its user alone, and is sent again in order.
pub async fn an_event_holds_up_its_user_alone(client: &mut Client) {
    let receiver = Receiver::start().await;
    create(client, creation(&receiver)).await.unwrap();
    receiver.answer(|got| {
        let is_bad =
            got.body["data"]["userUpdated"].is_object() && got.body.to_string().contains("Poison");
        Some(if is_bad { "500 Internal Server Error" } else { "200 OK" })
    });
    let (ann, joe) = (create_user(client, "ann").await, create_user(client, "joe").await);
    rename(client, &ann, "Poison").await.unwrap();
    rename(client, &ann, "Ann").await.unwrap();
    for n in 0..5 {
        rename(client, &joe, &format!("Joe {n}")).await.unwrap();
    }
    receiver.until("the events of Joe", |got| has_taken(got, &joe, 6)).await;
    assert_eq!((receiver.taken(&joe), receiver.taken(&ann)), ((1..=6).collect(), vec![1]));
    let held = until(client, |delivery| delivery.held_users == 1).await;
    assert!(held.failed_attempts >= 1 && held.stall_reason.is_empty(), "{held:?}");
    let listed = attempts(client).await;
    assert_eq!(listed.held_users[0].event_id, format!("{ann}:2"));
    assert!(listed.attempts.iter().any(|attempt| attempt.result == "500"), "{listed:?}");

    receiver.answer(|_| Some("200 OK"));
    receiver.until("the events of Ann", |got| has_taken(got, &ann, 3)).await;
    assert_eq!(receiver.taken(&ann), [1, 2, 3]);
    let done = until(client, |delivery| delivery.held_users == 0 && delivery.delivered == 9).await;
    assert_eq!((done.dead_letters, done.state()), (0, v1::DeliveryState::Active));
}

/// Paused deliveries lose nothing: one that somebody pauses, and one whose receiver is gone.
pub async fn a_pause_loses_nothing(client: &mut Client) {
    let receiver = Receiver::start().await;
    create(client, creation(&receiver)).await.unwrap();
    let ann = create_user(client, "ann").await;
    receiver.until("the first event", |got| has_taken(got, &ann, 1)).await;
    until(client, |delivery| delivery.delivered == 1).await;
    let paused = pause(client, true).await;
    assert_eq!((paused.state(), &*paused.pause_reason), (v1::DeliveryState::Paused, "PAUSED"));
    tokio::time::sleep(CHANGE_TIME).await;
    rename(client, &ann, "Anna").await.unwrap();
    rename(client, &ann, "Ann").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(receiver.taken(&ann), [1]);
    pause(client, false).await;
    receiver.until("the other events", |got| has_taken(got, &ann, 3)).await;

    receiver.answer(|_| Some("410 Gone"));
    rename(client, &ann, "Anne").await.unwrap();
    let gone = until(client, |delivery| delivery.state() == v1::DeliveryState::Paused).await;
    assert_eq!((&*gone.pause_reason, &*gone.paused_by), ("RECEIVER_GONE", ""));
    receiver.answer(|_| Some("200 OK"));
    pause(client, false).await;
    receiver.until("the last event", |got| has_taken(got, &ann, 4)).await;
    assert_eq!(receiver.taken(&ann), [1, 2, 3, 4]);
}

/// Delivers an event of each of this many users. Prints how fast.
pub async fn each_of_many_events_is_delivered(client: &mut Client, count: usize) {
    let receiver = Receiver::start().await;
    create(client, creation(&receiver)).await.unwrap();
    pause(client, true).await;
    create_users(client, count).await;
    pause(client, false).await;
    let began = Instant::now();
    while (get(client).await.delivered as usize) < count {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = began.elapsed();
    println!("{count} events in {took:?}: {:.0} a second", count as f64 / took.as_secs_f64());
    let got = receiver.got();
    let events: BTreeSet<_> = got.iter().map(|got| &got.id).collect();
    assert_eq!((events.len(), get(client).await.failed_attempts), (count, 0));
}

/// A server that takes over goes on where a killed one was: no event is lost, and those of a user
/// are in order.
pub async fn killed_servers_lose_no_event(start: impl Fn() -> Server) {
    let mut server = start();
    let receiver = Receiver::start().await;
    let mut client = Client::connect(&server.url).await;
    create(&mut client, creation(&receiver)).await.unwrap();
    let mut users = Vec::new();
    for n in 0..10 {
        users.push(create_user(&mut client, &format!("user{n}")).await);
    }
    for round in 0..2 {
        for user in &users {
            rename(&mut client, user, &format!("Name {round}")).await.unwrap();
        }
        server.signal("KILL");
        server.wait();
        server = start();
        client = Client::connect(&server.url).await;
    }
    for user in &users {
        receiver.until("all events", |got| has_taken(got, user, 3)).await;
    }
    for user in &users {
        let mut firsts = BTreeMap::new();
        for (place, number) in receiver.taken(user).into_iter().enumerate() {
            firsts.entry(number).or_insert(place);
        }
        let order: Vec<_> = firsts.values().collect();
        assert!(firsts.len() == 3 && order.is_sorted(), "{:?}", receiver.taken(user));
    }
}
