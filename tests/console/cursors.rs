//! Tokens of pages in addresses that are of another list or tenant, or of none.

use polynym_proto::v1;
use testkit::calls::{Client, email, user};

use crate::browser::{Answer, Browser, Site};

/// The names of the tenants, which are those of their users, too.
const TENANTS: [&str; 2] = ["alpha", "beta"];
/// More users and changes than a page has.
const COUNT: usize = 30;

/// A list: the address of its first page, and the parameter and the token of the next one.
struct List {
    path: String,
    next: Option<(String, String)>,
}

impl List {
    fn of(page: &Answer) -> Self {
        let path = page.path.split('?').next().unwrap().to_owned();
        let link = page.text.split("rel=\"next\" href=\"").nth(1);
        let query = link.and_then(|rest| rest.split('"').next()?.split_once('?'));
        let query = query.map(|(_, query)| query.replace("&#38;", "&").replace("&amp;", "&"));
        let last = query.as_deref().and_then(|query| query.rsplit('&').next()?.split_once('='));
        Self { next: last.map(|(name, token)| (name.to_owned(), token.to_owned())), path }
    }
}

/// Makes a tenant whose lists have several pages. Returns the ids of its users.
async fn fill(site: &Site, tenant: &str) -> Vec<String> {
    let mut client = Client::connect(&site.server.url).await;
    let mut ids = Vec::new();
    for n in 0..COUNT {
        let name = format!("{tenant} {n}");
        let address = email(&format!("joe+{tenant}{n}@example.com"));
        let request = v1::CreateUserRequest {
            tenant: tenant.to_owned(),
            user: Some(user(&name, vec![address])),
            ..Default::default()
        };
        let created = client.registry.create_user(request).await.unwrap().into_inner();
        ids.push(created.user.unwrap().user_id);
    }
    for n in 0..COUNT {
        let request = v1::UpdateUserRequest {
            tenant: tenant.to_owned(),
            user: Some(v1::User {
                user_id: ids[0].clone(),
                ..user(&format!("{tenant} {n}!"), vec![])
            }),
            update_mask: Some(prost_types::FieldMask { paths: vec!["display_name".to_owned()] }),
            ..Default::default()
        };
        client.registry.update_user(request).await.unwrap();
        let notice = v1::NoticeContent { subject: format!("{tenant} {n}"), ..Default::default() };
        let to = v1::recipient::Recipient::UserId(ids[0].clone());
        let request = v1::SendNoticeRequest {
            tenant: tenant.to_owned(),
            recipients: vec![v1::Recipient { recipient: Some(to) }],
            notice: Some(notice),
            ..Default::default()
        };
        client.inbox.send_notice(request).await.unwrap();
    }
    ids
}

/// All lists of a tenant and of the server.
async fn lists(browser: &mut Browser, tenant: &str, user: &str) -> Vec<List> {
    let home = format!("/console/t/{tenant}");
    let mut lists = Vec::new();
    for text in ["", "joe", "state = ACTIVE"] {
        let found = browser.post(&format!("{home}/search"), &[("q", text)]).await;
        lists.push(List::of(&found));
    }
    let ordered = browser.get(&format!("{}?order=display_name", lists[0].path)).await;
    lists.push(List { path: lists[0].path.clone(), ..List::of(&ordered) });
    let pairs = browser.post(&format!("{home}/duplicates"), &[("min_score", "30")]).await;
    lists.push(List::of(&pairs));
    for path in ["audit", "events", "bulk", "policies/history", "users/USER/history"] {
        let path = format!("{home}/{}", path.replace("USER", user));
        lists.push(List::of(&browser.get(&path).await));
    }
    for path in [&*format!("{home}/users/{user}/inbox"), "/console/tenants", "/console/callers"] {
        lists.push(List::of(&browser.get(path).await));
    }
    lists.push(List::of(&browser.get("/console/callers/sessions").await));
    lists
}

/// Whatever token an address has, its page is one for people, and of its own tenant.
#[tokio::test]
async fn tokens_of_other_lists_lead_to_no_foreign_row_and_no_fault() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let mut all = Vec::new();
    for tenant in TENANTS {
        let request_id = uuid::Uuid::new_v4().to_string();
        browser.post("/console/tenants", &[("name", tenant), ("request_id", &request_id)]).await;
        let ids = fill(&site, tenant).await;
        all.push(lists(&mut browser, tenant, &ids[0]).await);
    }
    let with_next = |lists: &[List]| lists.iter().filter(|list| list.next.is_some()).count();
    assert!(with_next(&all[0]) >= 8, "{}", with_next(&all[0]));
    let mut tokens: Vec<_> = all.iter().flatten().filter_map(|list| list.next.clone()).collect();
    for forged in ["x", "1.25=x", "1.25%3Dx", "99999999999999999999", "%00", "1.1%3D%FF%26"] {
        tokens.push(("after".to_owned(), forged.to_owned()));
    }
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for (own, foreign) in [(0, 1), (1, 0)] {
        for list in &all[own] {
            let names: Vec<_> = [Some("after"), list.next.as_ref().map(|(name, _)| &**name)].into();
            for (name, token) in &tokens {
                for name in names.iter().copied().flatten().chain([&**name]) {
                    let path = format!("{}?{name}={token}", list.path);
                    let page = browser.get(&path).await;
                    *statuses.entry(page.status).or_default() += 1;
                    let is_kind = [200, 404, 409, 422].contains(&page.status);
                    assert!(is_kind, "{}: {path}: {}", page.status, page.text);
                    page.assert_has(&["<h1", "</html>"]);
                    if list.path.contains("/t/") {
                        let rows = format!(">{} ", TENANTS[foreign]);
                        assert!(!page.text.contains(&rows), "{path}: {}", page.text);
                    }
                }
            }
        }
    }
    assert!(statuses[&200] > 100 && statuses.contains_key(&422), "{statuses:?}");
}
