//! The inboxes of golden stores.

use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym_directory::{
    Delivery, InboxChange, InboxLimits, Inboxes, Mutation, MutationKind, Mutations, Notice,
    NoticeContent, Policies, PolicyUpdate, Tenant, TenantChange, Value,
};

use super::{HOLD_TIME, text, time};
use crate::users::id;

/// Makes a tenant with policies for inboxes.
pub async fn set_inbox_policies(store: &impl Mutations) {
    let update = PolicyUpdate {
        inbox_retention: Some(HOLD_TIME),
        inbox_limit: Some(500),
        rule_notices: Some(true),
        ..PolicyUpdate::default()
    };
    let (tenant, change) = (Tenant::parse("globex").unwrap(), TenantChange::Set(update));
    let set = Mutation::new(tenant, time(500), MutationKind::Tenant(change));
    store.mutate(set).await.unwrap();
}

/// Fills inboxes of users of `fill`.
pub async fn fill_inboxes(inboxes: &impl Inboxes) {
    let limits = InboxLimits::from_policies(&Policies::default());
    for n in 0..53 {
        let notice = notice(n, NoticeContent { subject: n.to_string(), ..Default::default() });
        deliver(inboxes, notice, vec![id(1)], limits).await;
    }
    let content = NoticeContent {
        sender: "billing".to_owned(),
        subject: "Terms".to_owned(),
        body: "They have changed.".to_owned(),
        attributes: [("string".to_owned(), text("text")), ("int".to_owned(), Value::Int(-5))]
            .into(),
    };
    let expiring = Notice { expire_time: Some(time(9_999)), ..notice(53, content) };
    deliver(inboxes, expiring, vec![id(2), id(3), id(7)], limits).await;
    let [read, deleted] = [10, 52].map(|n| notice(n, NoticeContent::default()).id);
    inboxes.change_inbox(id(1), InboxChange::Read(vec![read])).await.unwrap();
    inboxes.change_inbox(id(1), InboxChange::Delete(deleted)).await.unwrap();
    inboxes.change_inbox(id(2), InboxChange::ReadUpTo(time(9_999))).await.unwrap();
}

/// Sends a notice whose content users of `fill` share, and deletes it for one of them.
pub async fn fill_shared_contents(inboxes: &impl Inboxes) {
    let content = NoticeContent { body: "x".repeat(300), ..Default::default() };
    let notice = notice(54, content);
    let (shared, users) = (notice.id, vec![id(1), id(2), id(3)]);
    deliver(inboxes, notice, users, InboxLimits::from_policies(&Policies::default())).await;
    inboxes.change_inbox(id(2), InboxChange::Delete(shared)).await.unwrap();
}

/// All entries of the inboxes that [`fill_inboxes`] fills, without positions.
pub async fn entries(inboxes: &impl Inboxes) -> Vec<(bool, Option<Notice>)> {
    let mut entries = Vec::new();
    for user in [1, 2, 3, 7] {
        let inbox = inboxes.inbox(id(user), None, 1_000, true).await.unwrap();
        entries.extend(inbox.into_iter().map(|entry| (entry.read, entry.notice)));
    }
    entries
}

fn notice(n: usize, content: NoticeContent) -> Notice {
    Notice { id: id(1_000 + n), send_time: time(600 + n), expire_time: None, content }
}

async fn deliver(
    inboxes: &dyn Inboxes,
    notice: Notice,
    users: Vec<LocalityId>,
    limits: InboxLimits,
) {
    let expected = vec![true; users.len()];
    let delivery = Arc::new(Delivery { notice, users, limits, clock_uncertain: false });
    assert_eq!(inboxes.deliver(delivery).await.unwrap(), expected);
}
