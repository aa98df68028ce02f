//! Notices to users over gRPC.

use polynym_mongodb::{InitOptions, init};
use polynym_proto::v1;
use tonic::{Code, Status};
use v1::notice_result::Result as Outcome;
use v1::recipient::Recipient as Of;

use crate::calls::{Client, email, handle, identity};
use crate::server::Server;
use crate::status::{StatusDetails, item, status_details};

/// A server, and what its store is in.
pub struct Place {
    server: Server,
    pub client: Client,
    _folder: tempfile::TempDir,
}

impl Place {
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
pub async fn notices_are_sent_and_read(mut place: Place) {
    let (joe, ann) = (place.user("joe").await, place.user("ann").await);
    let recipients = vec![
        to_id(&joe),
        to(email("Ann@Example.com")),
        to(handle("nobody")),
        to(email("not an email")),
        to(handle("@joe")),
    ];
    let sent = place.send(recipients, "first", "").await.unwrap();
    let expected = [
        Ok(joe.clone()),
        Ok(ann.clone()),
        Err("IDENTITY_NOT_FOUND".to_owned()),
        Err("IDENTIFIER_INVALID".to_owned()),
        Ok(joe.clone()),
    ];
    assert_eq!(results(&sent), expected);
    for n in 2..=5 {
        place.send(vec![to_id(&joe)], &format!("number {n}"), "").await.unwrap();
    }
    assert_eq!(
        place.subjects(&joe).await,
        ["number 5", "number 4", "number 3", "number 2", "first"]
    );
    assert_eq!(place.subjects(&ann).await, ["first"]);

    let all = place.list(&joe, false, 50).await;
    assert_eq!((&*all[4].notice_id, &*all[4].sender), (&*sent.notice_id, "anonymous"));
    assert_eq!(all[4].body, "The text of first");
    assert_eq!((place.unread(&joe).await, place.unread(&ann).await), (5, 1));
    place.mark(&joe, &[&all[0].notice_id, &all[4].notice_id]).await.unwrap();
    assert_eq!((place.unread(&joe).await, place.unread(&ann).await), (3, 1));
    assert!(place.list(&joe, false, 50).await[0].read);

    place.delete(&joe, &all[1].notice_id).await.unwrap();
    let again = place.delete(&joe, &all[1].notice_id).await.unwrap_err();
    assert_eq!(status_details(again), not_found("notice_id"));
    // One that is gone keeps all from being marked.
    let both = place.mark(&joe, &[&all[2].notice_id, &all[1].notice_id]).await.unwrap_err();
    assert_eq!(status_details(both), not_found("notice_ids[1]"));
    assert_eq!(place.unread(&joe).await, 2);
    assert_eq!(place.subjects(&joe).await, ["number 5", "number 3", "number 2", "first"]);

    let up_to_time = all[2].send_time;
    let request = v1::MarkReadRequest { user_id: joe.clone(), up_to_time, ..Default::default() };
    place.client.inbox.mark_read(request).await.unwrap();
    assert_eq!(place.unread(&joe).await, 0);
    requests_that_are_sent_again(&mut place, &joe, &ann).await;
    merged_users(&mut place, &joe, &ann).await;
}

/// A request that is sent again delivers its notice to those who do not have it.
async fn requests_that_are_sent_again(place: &mut Place, joe: &str, ann: &str) {
    const REQUEST: &str = "7d9f3a1c-5a0e-4a1b-9a53-0c8a5f1f2b10";
    let recipients = || vec![to(handle("joe")), to(handle("late")), to(handle("ann"))];
    let sent = place.send(recipients(), "once", REQUEST).await.unwrap();
    assert_eq!(results(&sent)[1], Err("IDENTITY_NOT_FOUND".to_owned()));
    place.delete(ann, &sent.notice_id).await.unwrap();
    let late = place.user("late").await;
    let again = place.send(recipients(), "once", REQUEST).await.unwrap();
    assert_eq!(again.notice_id, sent.notice_id);
    assert_eq!(results(&again), all(&[joe, &late, ann]));
    assert_eq!(place.subjects(&late).await, ["once"]);
    let count = async |place: &mut Place, user: &str| {
        place.subjects(user).await.iter().filter(|subject| *subject == "once").count()
    };
    assert_eq!((count(place, joe).await, count(place, ann).await), (1, 0));
    let other = place.send(recipients(), "another", REQUEST).await.unwrap_err();
    let reused = StatusDetails::new(Code::InvalidArgument, "REQUEST_ID_REUSED");
    assert_eq!(status_details(other).reason, reused.reason);
}

/// A merged user's notices are in the inbox of the one that it was merged into.
async fn merged_users(place: &mut Place, joe: &str, ann: &str) {
    place.send(vec![to_id(ann)], "before", "").await.unwrap();
    place.send(vec![to_id(joe)], "to joe", "").await.unwrap();
    place.client.merge(joe, ann).await.unwrap();
    let sent = place.send(vec![to_id(ann), to_id(joe)], "after", "").await.unwrap();
    assert_eq!(results(&sent), all(&[joe, joe]));
    let merged = place.subjects(joe).await;
    assert_eq!(merged[..3], ["after", "to joe", "before"]);
    assert_eq!(place.subjects(ann).await, merged);
    let unread = place.unread(ann).await;
    let all = place.list(joe, false, 50).await;
    place.mark(joe, &[&all[2].notice_id]).await.unwrap();
    assert_eq!(place.unread(joe).await, unread - 1);

    place.client.unmerge(joe, ann).await.unwrap();
    assert_eq!(place.subjects(ann).await, ["before", "first"]);
    assert!(!place.subjects(joe).await.contains(&"before".to_owned()));
    place.client.merge(joe, ann).await.unwrap();
    place.client.purge(joe).await.unwrap();
    let of_nobody = v1::ListNoticesRequest { user_id: joe.to_owned(), ..Default::default() };
    let gone = place.client.inbox.list_notices(of_nobody).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let sent = place.send(vec![to_id(joe), to_id(ann)], "late", "").await.unwrap();
    assert!(results(&sent).iter().all(|result| *result == Err("USER_NOT_FOUND".to_owned())));
}

/// The tenant's rules send notices where its policy says so.
pub async fn rules_send_notices(mut place: Place) {
    let (joe, ann) = (place.user("joe").await, place.user("ann").await);
    place.client.disable(&joe).await.unwrap();
    place.client.enable(&joe).await.unwrap();
    assert!(place.subjects(&joe).await.is_empty());
    let policies = v1::Policies { rule_notices: true, verified_wins: true, ..Default::default() };
    place.client.govern(policies).await.unwrap();

    place.client.disable(&joe).await.unwrap();
    place.client.enable(&joe).await.unwrap();
    place.client.delete(&joe).await.unwrap();
    place.client.undelete(&joe).await.unwrap();
    let link = v1::LinkIdentityRequest {
        user_id: ann.clone(),
        identifier: Some(email("joe@example.com")),
        verified: true,
        ..Default::default()
    };
    place.client.registry.link_identity(link).await.unwrap();
    let dry = v1::MergeUsersRequest {
        primary_user_id: ann.clone(),
        secondary_user_id: joe.clone(),
        validate_only: true,
        ..Default::default()
    };
    place.client.registry.merge_users(dry).await.unwrap();
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
    assert_eq!(rules(place.list(&joe, false, 50).await), expected);
    place.client.merge(&ann, &joe).await.unwrap();
    let all = ["user_merged", "identity_taken_over", "user_restored", "user_disabled"];
    assert_eq!(rules(place.list(&ann, false, 50).await), all);
}

/// An inbox keeps its latest notices, and none beyond its time.
pub async fn inboxes_are_bounded(mut place: Place) {
    let joe = place.user("joe").await;
    let policies = v1::Policies { inbox_limit: 60, ..Default::default() };
    place.client.govern(policies).await.unwrap();
    for n in 0..130 {
        place.send(vec![to_id(&joe)], &format!("number {n}"), "").await.unwrap();
    }
    let expected: Vec<_> = (70..130).rev().map(|n| format!("number {n}")).collect();
    assert_eq!(place.subjects(&joe).await, expected);
    assert_eq!(place.unread(&joe).await, 60);
    let nanos = 1_000_000;
    let inbox_retention = Some(prost_types::Duration { seconds: 0, nanos });
    let policies = v1::Policies { inbox_retention, ..Default::default() };
    place.client.govern(policies).await.unwrap();
    assert!(place.subjects(&joe).await.is_empty());
    assert_eq!(place.unread(&joe).await, 0);
    assert!(place.server.id() > 0);
}
