//! Searches that read more users than the limit of a page.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};

use super::{USERS, creation};
use crate::options::Options;
use crate::store::Embedded;
use polynym_directory::{
    Directory, Limits, MutationKind, Mutations, Now, Purpose, RequestContext, SearchRequest,
    Tenant, Timestamp, UserChange,
};

/// The most users that one page reads.
const READ_LIMIT: usize = 7;

/// Every tenth user matches, and no index helps: pages without a user have a token too.
#[tokio::test]
async fn a_page_ends_at_the_read_limit_and_the_next_one_continues() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
    for n in 0..USERS {
        let mut mutation = creation(n);
        if let MutationKind::User(_, UserChange::Create(draft)) = &mut mutation.kind {
            draft.display_name = format!("user {}", n % 10);
        }
        store.mutate(mutation).await.unwrap();
    }
    let directory =
        Directory::new(store.backend(), Generator::new(Mode::Variable), Limits::default());
    let now = Now::certain(Timestamp::now());
    let context = RequestContext {
        tenant: Tenant::DEFAULT,
        caller: "",
        method: "",
        request_id: "",
        purpose: Purpose::default(),
        now,
    };
    let filter = "NOT display_name != \"user 3\"";
    let (mut token, mut pages, mut empty, mut found) = (String::new(), 0, 0, 0);
    loop {
        let request = SearchRequest { filter, page_token: &token, ..SearchRequest::default() };
        let page = directory.search_within(READ_LIMIT, &context, request).await.unwrap();
        assert!(page.plan.read <= READ_LIMIT, "{:?}", page.plan);
        pages += 1;
        empty += usize::from(page.users.is_empty());
        found += page.users.len();
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found, USERS as usize / 10);
    assert!(
        pages >= USERS as usize / READ_LIMIT && empty > 0,
        "{pages} pages, {empty} without a user"
    );
}
