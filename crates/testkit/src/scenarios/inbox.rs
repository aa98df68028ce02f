//! Notices to users over gRPC.

use polynym_mongodb::{InitOptions, init};
use polynym_proto::v1;
use tonic::{Code, Status};
use v1::notice_result::Result as Outcome;
use v1::recipient::Recipient as Of;

use crate::calls::{Client, email, handle, identity};
use crate::server::Server;
use crate::status::{StatusDetails, item, status_details};

/// A client of a server on a store of its own.
pub struct InboxClient {
    server: Server,
    pub client: Client,
    _folder: tempfile::TempDir,
}

impl InboxClient {
    /// A server on an embedded store.
    pub async fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        Self::over(&store, folder).await
    }

    /// A server on a database of MongoDB.
    pub async fn mongo(uri: &str) -> Self {
        init(uri, &InitOptions::default(), &|_| {}).await.unwrap();
        Self::over(uri, tempfile::tempdir().unwrap()).await
    }

    async fn over(store: &str, folder: tempfile::TempDir) -> Self {
        let server = tokio::task::block_in_place(|| Server::start(&["--store", store]));
        let client = Client::connect(&server.url).await;
        Self { server, client, _folder: folder }
    }

    /// A user with this handle, and an email like it.
    pub async fn user(&mut self, name: &str) -> String {
        let email = email(&format!("{name}@example.com"));
        let identities = vec![identity(handle(name)), identity(email)];
        let user = v1::User { identities, ..Default::default() };
        self.client.create(user).await.unwrap().user_id
    }

    pub async fn send(
        &mut self,
        recipients: Vec<v1::Recipient>,
        subject: &str,
        request_id: &str,
    ) -> Result<v1::SendNoticeResponse, Status> {
        let notice = v1::NoticeContent {
            subject: subject.to_owned(),
            body: format!("The text of {subject}"),
            ..Default::default()
        };
        let request_id = request_id.to_owned();
        let notice = Some(notice);
        let request =
            v1::SendNoticeRequest { recipients, notice, request_id, ..Default::default() };
        Ok(self.client.inbox.send_notice(request).await?.into_inner())
    }

    /// The notices of a user, page by page.
    pub async fn list(&mut self, user: &str, unread_only: bool, page_size: i32) -> Vec<v1::Notice> {
        let mut request = v1::ListNoticesRequest {
            user_id: user.to_owned(),
            unread_only,
            page_size,
            ..Default::default()
        };
        let mut notices = Vec::new();
        loop {
            let page = self.client.inbox.list_notices(request.clone()).await.unwrap().into_inner();
            assert!(page.notices.len() <= page_size as usize);
            notices.extend(page.notices);
            if page.next_page_token.is_empty() {
                return notices;
            }
            request.page_token = page.next_page_token;
        }
    }

    pub async fn subjects(&mut self, user: &str) -> Vec<String> {
        self.list(user, false, 2).await.into_iter().map(|notice| notice.subject).collect()
    }

    pub async fn unread(&mut self, user: &str) -> i32 {
        let request = v1::CountUnreadRequest { user_id: user.to_owned(), ..Default::default() };
        let unread = self.client.inbox.count_unread(request).await.unwrap().into_inner().unread;
        assert_eq!(self.list(user, true, 7).await.len(), unread as usize);
        unread
    }

    pub async fn mark(&mut self, user: &str, ids: &[&str]) -> Result<(), Status> {
        let request = v1::MarkReadRequest {
            user_id: user.to_owned(),
            notice_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..Default::default()
        };
        self.client.inbox.mark_read(request).await.map(drop)
    }

    pub async fn delete(&mut self, user: &str, id: &str) -> Result<(), Status> {
        let (user_id, notice_id) = (user.to_owned(), id.to_owned());
        let request = v1::DeleteNoticeRequest { user_id, notice_id, ..Default::default() };
        self.client.inbox.delete_notice(request).await.map(drop)
    }
}

/// A recipient.
pub fn to_id(id: &str) -> v1::Recipient {
    v1::Recipient { recipient: Some(Of::UserId(id.to_owned())) }
}

/// A recipient.
pub fn to(identifier: v1::Identifier) -> v1::Recipient {
    v1::Recipient { recipient: Some(Of::Identifier(identifier)) }
}

/// The user of each result, or the reason of its error.
pub fn results(sent: &v1::SendNoticeResponse) -> Vec<Result<String, String>> {
    let result = |result: &v1::NoticeResult| match result.result.clone().unwrap() {
        Outcome::UserId(user) => Ok(user),
        Outcome::Error(error) => Err(item(error).1),
    };
    sent.results.iter().map(result).collect()
}

/// Results without errors.
fn all(users: &[&str]) -> Vec<Result<String, String>> {
    users.iter().map(|user| Ok((*user).to_owned())).collect()
}

fn not_found(field: &str) -> StatusDetails {
    StatusDetails::new(Code::NotFound, "NOTICE_NOT_FOUND").field(field)
}

/// Sends, lists, marks and deletes notices.
pub async fn notices_are_sent_and_read(mut inbox: InboxClient) {
    let (joe, ann) = (inbox.user("joe").await, inbox.user("ann").await);
    let recipients = vec![
        to_id(&joe),
        to(email("Ann@Example.com")),
        to(handle("nobody")),
        to(email("not an email")),
        to(handle("@joe")),
    ];
    let sent = inbox.send(recipients, "first", "").await.unwrap();
    let expected = [
        Ok(joe.clone()),
        Ok(ann.clone()),
        Err("IDENTITY_NOT_FOUND".to_owned()),
        Err("IDENTIFIER_INVALID".to_owned()),
        Ok(joe.clone()),
    ];
    assert_eq!(results(&sent), expected);
    for n in 2..=5 {
        inbox.send(vec![to_id(&joe)], &format!("number {n}"), "").await.unwrap();
    }
    assert_eq!(
        inbox.subjects(&joe).await,
        ["number 5", "number 4", "number 3", "number 2", "first"]
    );
    assert_eq!(inbox.subjects(&ann).await, ["first"]);

    let all = inbox.list(&joe, false, 50).await;
    assert_eq!((&*all[4].notice_id, &*all[4].sender), (&*sent.notice_id, "anonymous"));
    assert_eq!(all[4].body, "The text of first");
    assert_eq!((inbox.unread(&joe).await, inbox.unread(&ann).await), (5, 1));
    inbox.mark(&joe, &[&all[0].notice_id, &all[4].notice_id]).await.unwrap();
    assert_eq!((inbox.unread(&joe).await, inbox.unread(&ann).await), (3, 1));
    assert!(inbox.list(&joe, false, 50).await[0].read);

    inbox.delete(&joe, &all[1].notice_id).await.unwrap();
    let again = inbox.delete(&joe, &all[1].notice_id).await.unwrap_err();
    assert_eq!(status_details(again), not_found("notice_id"));
    // A deleted notice prevents all marks.
    let both = inbox.mark(&joe, &[&all[2].notice_id, &all[1].notice_id]).await.unwrap_err();
    assert_eq!(status_details(both), not_found("notice_ids[1]"));
    assert_eq!(inbox.unread(&joe).await, 2);
    assert_eq!(inbox.subjects(&joe).await, ["number 5", "number 3", "number 2", "first"]);

    let up_to_time = all[2].send_time;
    let request = v1::MarkReadRequest { user_id: joe.clone(), up_to_time, ..Default::default() };
    inbox.client.inbox.mark_read(request).await.unwrap();
    assert_eq!(inbox.unread(&joe).await, 0);
    repeated_requests(&mut inbox, &joe, &ann).await;
    merged_users(&mut inbox, &joe, &ann).await;
}

/// A repeated request delivers its notice to those who lack it.
async fn repeated_requests(inbox: &mut InboxClient, joe: &str, ann: &str) {
    const REQUEST: &str = "7d9f3a1c-5a0e-4a1b-9a53-0c8a5f1f2b10";
    let recipients = || vec![to(handle("joe")), to(handle("late")), to(handle("ann"))];
    let sent = inbox.send(recipients(), "once", REQUEST).await.unwrap();
    assert_eq!(results(&sent)[1], Err("IDENTITY_NOT_FOUND".to_owned()));
    inbox.delete(ann, &sent.notice_id).await.unwrap();
    let late = inbox.user("late").await;
    let again = inbox.send(recipients(), "once", REQUEST).await.unwrap();
    assert_eq!(again.notice_id, sent.notice_id);
    assert_eq!(results(&again), all(&[joe, &late, ann]));
    assert_eq!(inbox.subjects(&late).await, ["once"]);
    let count = async |inbox: &mut InboxClient, user: &str| {
        inbox.subjects(user).await.iter().filter(|subject| *subject == "once").count()
    };
    assert_eq!((count(inbox, joe).await, count(inbox, ann).await), (1, 0));
    let other = inbox.send(recipients(), "another", REQUEST).await.unwrap_err();
    let reused = StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED");
    assert_eq!(status_details(other).reason, reused.reason);
}

/// Notices of a merged user are in the inbox of the primary.
async fn merged_users(inbox: &mut InboxClient, joe: &str, ann: &str) {
    inbox.send(vec![to_id(ann)], "before", "").await.unwrap();
    inbox.send(vec![to_id(joe)], "to joe", "").await.unwrap();
    inbox.client.merge(joe, ann).await.unwrap();
    let sent = inbox.send(vec![to_id(ann), to_id(joe)], "after", "").await.unwrap();
    assert_eq!(results(&sent), all(&[joe, joe]));
    let merged = inbox.subjects(joe).await;
    assert_eq!(merged[..3], ["after", "to joe", "before"]);
    assert_eq!(inbox.subjects(ann).await, merged);
    let unread = inbox.unread(ann).await;
    let all = inbox.list(joe, false, 50).await;
    inbox.mark(joe, &[&all[2].notice_id]).await.unwrap();
    assert_eq!(inbox.unread(joe).await, unread - 1);

    inbox.client.unmerge(joe, ann).await.unwrap();
    assert_eq!(inbox.subjects(ann).await, ["before", "first"]);
    assert!(!inbox.subjects(joe).await.contains(&"before".to_owned()));
    inbox.client.merge(joe, ann).await.unwrap();
    inbox.client.purge(joe).await.unwrap();
    let of_nobody = v1::ListNoticesRequest { user_id: joe.to_owned(), ..Default::default() };
    let gone = inbox.client.inbox.list_notices(of_nobody).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let sent = inbox.send(vec![to_id(joe), to_id(ann)], "late", "").await.unwrap();
    assert!(results(&sent).iter().all(|result| *result == Err("USER_NOT_FOUND".to_owned())));
}

/// The rules of a tenant send notices if its policy allows it.
pub async fn rules_send_notices(mut inbox: InboxClient) {
    let (joe, ann) = (inbox.user("joe").await, inbox.user("ann").await);
    inbox.client.disable(&joe).await.unwrap();
    inbox.client.enable(&joe).await.unwrap();
    assert!(inbox.subjects(&joe).await.is_empty());
    let policies = v1::Policies { rule_notices: true, verified_wins: true, ..Default::default() };
    inbox.client.govern(policies).await.unwrap();

    inbox.client.disable(&joe).await.unwrap();
    inbox.client.enable(&joe).await.unwrap();
    inbox.client.delete(&joe).await.unwrap();
    inbox.client.undelete(&joe).await.unwrap();
    let link = v1::LinkIdentityRequest {
        user_id: ann.clone(),
        identifier: Some(email("joe@example.com")),
        verified: true,
        ..Default::default()
    };
    inbox.client.registry.link_identity(link).await.unwrap();
    let dry = v1::MergeUsersRequest {
        primary_user_id: ann.clone(),
        secondary_user_id: joe.clone(),
        validate_only: true,
        ..Default::default()
    };
    inbox.client.registry.merge_users(dry).await.unwrap();
    let rules = |notices: Vec<v1::Notice>| -> Vec<String> {
        let rule = |notice: v1::Notice| {
            assert_eq!(notice.sender, "polynym");
            match notice.attributes["rule"].kind.clone().unwrap() {
                v1::attribute_value::Kind::StringValue(rule) => rule,
                other => panic!("{other:?}"),
            }
        };
        notices.into_iter().map(rule).collect()
    };
    let expected = ["identity_taken_over", "user_restored", "user_disabled"];
    assert_eq!(rules(inbox.list(&joe, false, 50).await), expected);
    inbox.client.merge(&ann, &joe).await.unwrap();
    let all = ["user_merged", "identity_taken_over", "user_restored", "user_disabled"];
    assert_eq!(rules(inbox.list(&ann, false, 50).await), all);
}

/// An inbox keeps its latest notices within the retention.
pub async fn inboxes_are_bounded(mut inbox: InboxClient) {
    const REQUEST: &str = "7d9f3a1c-5a0e-4a1b-9a53-0c8a5f1f2b11";
    let joe = inbox.user("joe").await;
    let policies = v1::Policies { inbox_limit: 3, ..Default::default() };
    inbox.client.govern(policies).await.unwrap();
    // A repeated request does not bring back a notice that later ones have displaced.
    let first = inbox.send(vec![to_id(&joe)], "first", REQUEST).await.unwrap();
    for n in 1..=3 {
        inbox.send(vec![to_id(&joe)], &format!("later {n}"), "").await.unwrap();
    }
    let again = inbox.send(vec![to_id(&joe)], "first", REQUEST).await.unwrap();
    assert_eq!(results(&again), all(&[&joe]));
    assert_eq!(again.notice_id, first.notice_id);
    assert_eq!(inbox.subjects(&joe).await, ["later 3", "later 2", "later 1"]);

    let policies = v1::Policies { inbox_limit: 60, ..Default::default() };
    inbox.client.govern(policies).await.unwrap();
    for n in 0..130 {
        inbox.send(vec![to_id(&joe)], &format!("number {n}"), "").await.unwrap();
    }
    let expected: Vec<_> = (70..130).rev().map(|n| format!("number {n}")).collect();
    assert_eq!(inbox.subjects(&joe).await, expected);
    assert_eq!(inbox.unread(&joe).await, 60);
    let nanos = 1_000_000;
    let inbox_retention = Some(prost_types::Duration { seconds: 0, nanos });
    let policies = v1::Policies { inbox_retention, ..Default::default() };
    inbox.client.govern(policies).await.unwrap();
    assert!(inbox.subjects(&joe).await.is_empty());
    assert_eq!(inbox.unread(&joe).await, 0);
    assert!(inbox.server.id() > 0);
}
