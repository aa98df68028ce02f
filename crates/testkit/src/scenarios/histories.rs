//! Histories of users over gRPC.

use polynym_proto::v1;
use polynym_proto::v1::list_history_request::User;
use tonic::Status;

use crate::calls::{Client, email, handle, text, user};

/// A request for the history of a user.
pub fn of(user_id: &str) -> v1::ListHistoryRequest {
    v1::ListHistoryRequest { user: Some(User::UserId(user_id.to_owned())), ..Default::default() }
}

/// One page of a history.
pub async fn page(
    client: &mut Client,
    request: &v1::ListHistoryRequest,
) -> Result<v1::ListHistoryResponse, Status> {
    Ok(client.directory.list_history(request.clone()).await?.into_inner())
}

/// The events on all pages.
pub async fn events(client: &mut Client, mut request: v1::ListHistoryRequest) -> Vec<v1::Event> {
    let mut events = Vec::new();
    loop {
        let page = page(client, &request).await.unwrap();
        assert!(request.page_size == 0 || page.events.len() <= request.page_size as usize);
        events.extend(page.events);
        if page.next_page_token.is_empty() {
            return events;
        }
        request.page_token = page.next_page_token;
    }
}

/// The changes of an event.
pub fn changes(event: &v1::Event) -> &v1::ChangeSet {
    event.change_set().unwrap()
}

/// Creates a user that temporarily had the fields and identities of another: by a merge and
/// unmerge, and by moves.
async fn share_identities(client: &mut Client, other: &v1::User, name: &str) -> v1::User {
    let ann =
        client.create(user("", vec![handle("ann"), handle(&format!("{name}-ann"))])).await.unwrap();
    client.merge(&ann.user_id, &other.user_id).await.unwrap();
    // Enough events for some to leave the end of the history.
    for n in 0..6 {
        let method = if n % 2 == 0 { "a letter" } else { "" };
        client.verify(&ann.user_id, handle(name), n % 2 == 0, method).await.unwrap();
    }
    client.unmerge(&ann.user_id, &other.user_id).await.unwrap();
    let to_ann = (&*other.user_id, &*ann.user_id);
    let back = (&*ann.user_id, &*other.user_id);
    client.move_identity(to_ann, handle(name)).await.unwrap();
    client.move_identity(back, handle(name)).await.unwrap();
    client.move_identity(back, handle(&format!("{name}-ann"))).await.unwrap();
    client.get(&ann.user_id).await.unwrap()
}

/// Sends a notice to a user.
pub async fn send_notice(client: &mut Client, user_id: &str, subject: &str) {
    let recipient = Some(v1::recipient::Recipient::UserId(user_id.to_owned()));
    let request = v1::SendNoticeRequest {
        recipients: vec![v1::Recipient { recipient }],
        notice: Some(v1::NoticeContent { subject: subject.to_owned(), ..Default::default() }),
        ..Default::default()
    };
    client.inbox.send_notice(request).await.unwrap();
}

/// Creates a user with `name` in all fields and identities, changes it in many ways, and purges it.
/// Returns another user that had its identities for a while.
pub async fn create_and_purge(client: &mut Client, name: &str) -> v1::User {
    client.hold_nothing().await;
    let mail = |n: usize| email(&format!("{name}{n}@example.com"));
    let mut user = user(name, vec![mail(0), handle(name)]);
    user.attributes.insert("note".to_owned(), text(name));
    let user = client.create(user).await.unwrap();
    let ann = share_identities(client, &user, name).await;
    for n in 0..20 {
        client.link(&user.user_id, mail(n + 1)).await.unwrap();
        client.unlink(&user.user_id, mail(n)).await.unwrap();
    }
    client.replace(&user.user_id, handle(name), handle(&format!("{name}-2"))).await.unwrap();
    let other = client.create(v1::User::default()).await.unwrap();
    // More than a page of an inbox.
    for n in 0..60 {
        send_notice(client, &user.user_id, &format!("{name} {n}")).await;
    }
    // Another user has the handle later.
    client.link(&other.user_id, handle(name)).await.unwrap();
    client.unlink(&other.user_id, handle(name)).await.unwrap();
    client.purge(&other.user_id).await.unwrap();
    client.purge(&user.user_id).await.unwrap();

    assert_eq!(client.get(&ann.user_id).await.unwrap(), ann);
    let history = events(client, of(&ann.user_id)).await;
    let redacted = history.iter().filter(|event| changes(event).redacted).count();
    let sequences: Vec<_> = history.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=sequences.len() as i64).rev().collect::<Vec<_>>());
    // All but her own handle was of the other user.
    assert!(redacted + 1 >= history.len(), "{history:#?}");
    let created = &changes(history.last().unwrap()).identities;
    assert_eq!(
        created.iter().map(|one| &one.after.as_ref().unwrap().display).collect::<Vec<_>>(),
        ["ann"]
    );
    ann
}
