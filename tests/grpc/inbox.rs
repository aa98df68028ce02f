//! Notices to users, and invalid requests of InboxService.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use polynym_proto::v1;
use tonic::Code;
use v1::attribute_value::Kind;

use super::{fresh_with_clock, user};
use crate::support::calls::handle;
use crate::support::scenarios::inbox::{
    InboxClient, inboxes_are_bounded, notices_are_sent_and_read, results, rules_send_notices, to,
    to_id,
};
use crate::support::status::{StatusDetails, status_details};

fn field(field: &str) -> StatusDetails {
    StatusDetails::new(Code::InvalidArgument, "FIELD_INVALID").field(field)
}

fn content(subject: &str) -> v1::NoticeContent {
    v1::NoticeContent { subject: subject.to_owned(), ..Default::default() }
}

fn text(text: String) -> v1::AttributeValue {
    v1::AttributeValue { kind: Some(Kind::StringValue(text)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_notices_are_refused() {
    let mut inbox = InboxClient::embedded().await;
    let joe = inbox.user("joe").await;
    let past = SystemTime::UNIX_EPOCH.into();
    let large = BTreeMap::from([("a".to_owned(), text("x".repeat(4_096)))]);
    let many = (0..21).map(|n| (format!("a{n}"), text(String::new()))).collect();
    let notices = [
        (None, field("notice")),
        (Some(content("")), field("notice.subject")),
        (Some(content(&"x".repeat(257))), field("notice.subject")),
        (
            Some(v1::NoticeContent { body: "x".repeat((16 << 10) + 1), ..content("x") }),
            field("notice.body"),
        ),
        (
            Some(v1::NoticeContent { body: "\u{1b}[2J".to_owned(), ..content("x") }),
            field("notice.body"),
        ),
        (
            Some(v1::NoticeContent { expire_time: Some(past), ..content("x") }),
            field("notice.expire_time"),
        ),
        (Some(v1::NoticeContent { attributes: large, ..content("x") }), field("notice.attributes")),
        (Some(v1::NoticeContent { attributes: many, ..content("x") }), field("notice.attributes")),
    ];
    for (notice, expected) in notices {
        let request =
            v1::SendNoticeRequest { recipients: vec![to_id(&joe)], notice, ..Default::default() };
        let refused = inbox.client.inbox.send_notice(request).await.unwrap_err();
        assert_eq!(status_details(refused), expected);
    }

    let recipients = [
        (Vec::new(), field("recipients")),
        (vec![v1::Recipient::default()], field("recipients[0]")),
        (
            vec![to(handle("joe")); 1_001],
            StatusDetails::new(Code::InvalidArgument, "BATCH_TOO_LARGE")
                .with("limit", "1000")
                .with("value", "1001"),
        ),
    ];
    for (recipients, expected) in recipients {
        let refused = inbox.send(recipients, "x", "").await.unwrap_err();
        assert_eq!(status_details(refused), expected);
    }
    let refused = inbox.send(vec![to_id(&joe)], "x", "no-uuid").await.unwrap_err();
    assert_eq!(status_details(refused).reason, "REQUEST_ID_INVALID");
    assert!(inbox.subjects(&joe).await.is_empty());

    // 1,000 recipients, one of whom exists.
    let mut recipients = vec![to(handle("nobody")); 999];
    recipients.push(to_id(&joe));
    let body = "x".repeat(16 << 10);
    let notice = Some(v1::NoticeContent { body: body.clone(), ..content("large") });
    let request = v1::SendNoticeRequest { recipients, notice, ..Default::default() };
    let sent = inbox.client.inbox.send_notice(request).await.unwrap().into_inner();
    assert_eq!(results(&sent)[999], Ok(joe.clone()));
    assert_eq!(inbox.list(&joe, false, 50).await[0].body, body);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_reads_and_marks_are_refused() {
    let mut inbox = InboxClient::embedded().await;
    let (joe, ann) = (inbox.user("joe").await, inbox.user("ann").await);
    for n in 0..3 {
        inbox.send(vec![to_id(&joe), to_id(&ann)], &format!("number {n}"), "").await.unwrap();
    }
    let list = |user: &str| v1::ListNoticesRequest {
        user_id: user.to_owned(),
        page_size: 1,
        ..Default::default()
    };
    let first = inbox.client.inbox.list_notices(list(&joe)).await.unwrap().into_inner();
    let token = first.next_page_token;
    let mut bytes = token.clone().into_bytes();
    bytes[3] ^= 1;
    let changed = String::from_utf8(bytes).unwrap();
    let tokens = [
        v1::ListNoticesRequest { page_token: changed, ..list(&joe) },
        v1::ListNoticesRequest { page_token: token.clone(), ..list(&ann) },
        v1::ListNoticesRequest { page_token: token, unread_only: true, ..list(&joe) },
        v1::ListNoticesRequest { page_token: "x".repeat(100_000), ..list(&joe) },
    ];
    for request in tokens {
        let refused = inbox.client.inbox.list_notices(request).await.unwrap_err();
        assert_eq!(status_details(refused).reason, "PAGE_TOKEN_INVALID");
    }
    let negative = v1::ListNoticesRequest { page_size: -1, ..list(&joe) };
    let refused = inbox.client.inbox.list_notices(negative).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    for user in ["5bcb4db0-05a3-b000-001e-019b8d627a80", ""] {
        let refused = inbox.client.inbox.list_notices(list(user)).await.unwrap_err();
        let expected = if user.is_empty() { "USER_ID_INVALID" } else { "USER_NOT_FOUND" };
        assert_eq!(status_details(refused).reason, expected);
    }

    let none = inbox.mark(&joe, &[]).await.unwrap_err();
    assert_eq!(status_details(none), field("notice_ids"));
    let wrong = inbox.mark(&joe, &[&first.notices[0].notice_id, "x"]).await.unwrap_err();
    assert_eq!(status_details(wrong), field("notice_ids[1]"));
    let ids: Vec<_> = (0..1_001).map(|_| &*first.notices[0].notice_id).collect();
    let many = inbox.mark(&joe, &ids).await.unwrap_err();
    assert_eq!(status_details(many).reason, "BATCH_TOO_LARGE");
    let wrong = inbox.delete(&joe, "x").await.unwrap_err();
    assert_eq!(status_details(wrong), field("notice_id"));
    assert_eq!((inbox.unread(&joe).await, inbox.unread(&ann).await), (3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_has_inboxes() {
    notices_are_sent_and_read(InboxClient::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_send_notices_on_the_embedded_store() {
    rules_send_notices(InboxClient::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inboxes_are_bounded_on_the_embedded_store() {
    inboxes_are_bounded(InboxClient::embedded().await).await;
}

#[tokio::test]
async fn a_retry_succeeds_after_the_notice_has_expired() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    let joe = client.create(user("Joe", vec![handle("joe")])).await.unwrap().user_id;
    let soon = SystemTime::now() + Duration::from_secs(30);
    let request = |id: &str, recipient: &str| v1::SendNoticeRequest {
        recipients: vec![to_id(recipient)],
        notice: Some(v1::NoticeContent { expire_time: Some(soon.into()), ..content("x") }),
        request_id: id.to_owned(),
        ..Default::default()
    };
    let (first, other) =
        ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002");
    let sent = client.inbox.send_notice(request(first, &joe)).await.unwrap().into_inner();
    clock.set_ahead(60_000);
    let again = client.inbox.send_notice(request(first, &joe)).await.unwrap().into_inner();
    assert_eq!(again, sent);
    // One that was not sent is refused, each time.
    for request in [request(other, &joe), request(other, &joe), request("", &joe)] {
        let refused = client.inbox.send_notice(request).await.unwrap_err();
        assert_eq!(status_details(refused), field("notice.expire_time"));
    }
    let eve = client.create(user("Eve", vec![handle("eve")])).await.unwrap().user_id;
    let reused = client.inbox.send_notice(request(first, &eve)).await.unwrap_err();
    assert_eq!(status_details(reused).reason, "REQUEST_ID_REUSED");
}
