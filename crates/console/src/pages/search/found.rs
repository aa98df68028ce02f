//! The users whom a text finds, with the reasons, and whether an identifier can be linked.

use polynym_client::Client;
use polynym_presentation::find;
use v1::{CheckIdentityRequest, FindReading, FindUsersRequest, FindUsersResponse, FindWay};

use super::{List, Results};
use crate::prelude::*;
use crate::views::listed::Listed;
use crate::views::reading::Typed;

/// The maximum number of empty pages to skip.
const MAX_EMPTY_PAGES: usize = 4;
/// The users of one call, and the calls for a list of identifiers: each has one owner at most.
const LARGEST_PAGE: i32 = 50;
const MAX_LIST_CALLS: usize = 3;
/// The ways of reading a text that are told.
const MAX_TRIED: usize = 12;

/// The owner of an identifier, and whether it can be linked.
pub struct IdentityResult {
    pub owner: Option<UserView>,
    /// Whether it can be linked.
    pub is_free: bool,
    /// The reason why it cannot be linked.
    pub reason: String,
    /// The end of the hold for its owner.
    pub held_until: Option<Time>,
}

/// The call that finds users by a text.
pub fn request(text: &str, region: &str) -> FindUsersRequest {
    FindUsersRequest { text: text.to_owned(), region: region.to_owned(), ..Default::default() }
}

/// The users whom a text finds.
pub async fn users(
    client: &Client,
    request: FindUsersRequest,
    list: List,
) -> Result<Results, Failure> {
    let page = call(client, request, &list).await?;
    Ok(results(page, &list))
}

/// The users whom a list of identifiers finds, on one page, and those identifiers that nobody has.
pub async fn listed(
    client: &Client,
    request: FindUsersRequest,
    list: List,
) -> Result<Results, Failure> {
    let (text, region) = (request.text.clone(), request.region.clone());
    let list = List { size: LARGEST_PAGE, ..list };
    let mut page = call(client, request.clone(), &list).await?;
    for _ in 1..MAX_LIST_CALLS {
        if page.next_page_token.is_empty() {
            break;
        }
        let after = page.next_page_token.clone();
        let next = List { after, columns: list.columns.clone(), ..list };
        let more = call(client, request.clone(), &next).await?;
        page.matches.extend(more.matches);
        page.unreadable_user_ids.extend(more.unreadable_user_ids);
        page.next_page_token = more.next_page_token;
    }
    let listed = Listed::of(&text, &region, &page);
    let mut results = results(page, &list);
    if listed.is_some() {
        // What was read is said with the list.
        results.tried.clear();
    }
    Ok(Results { listed, ..results })
}

/// The users whom an identifier finds and, on the first page, its owner as the first of them.
pub async fn identified(
    client: &Client,
    request: FindUsersRequest,
    typed: &Typed,
    list: List,
) -> Result<Results, Failure> {
    if !list.after.is_empty() {
        return users(client, request, list).await;
    }
    let identifier = Some(typed.message.clone());
    let check = CheckIdentityRequest { identifier, ..Default::default() };
    let directory = client.directory();
    let (page, checked) =
        tokio::join!(call(client, request, &list), directory.check_identity(check));
    let (mut page, checked) = (page?, checked?);
    let is_owner = |reading: &FindReading| {
        let ways = [FindWay::Identifier, FindWay::HeldIdentifier];
        ways.contains(&reading.way()) && reading.value == typed.canonical
    };
    let owner = page.matches.iter().position(|found| found.reasons.iter().any(is_owner));
    if let Some(at) = owner {
        let found = page.matches.remove(at);
        page.matches.insert(0, found);
    }
    let has_owner = owner.is_some();
    let owner = page.matches.first().filter(|_| has_owner).and_then(|found| found.user.clone());
    let identity = IdentityResult {
        owner: owner.as_ref().map(UserView::of),
        is_free: checked.available,
        reason: checked.reason,
        held_until: Time::of(checked.held_until.as_ref()),
    };
    let mut results = results(page, &list);
    results.hint.clear();
    Ok(Results { identity: Some(identity), has_owner, ..results })
}

/// The next page with users. Skips a few empty ones.
async fn call(
    client: &Client,
    request: FindUsersRequest,
    list: &List,
) -> Result<FindUsersResponse, Failure> {
    let mut read_mask = list.columns.read_mask();
    read_mask.paths.extend(["state", "delete_time"].map(str::to_owned));
    let mut request = FindUsersRequest {
        page_size: list.size,
        page_token: list.after.clone(),
        read_mask: Some(read_mask),
        ..request
    };
    let directory = client.directory();
    let mut page = directory.find_users(request.clone()).await?;
    for _ in 0..MAX_EMPTY_PAGES {
        if !page.matches.is_empty() || page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
        let FindUsersResponse { tried, mut unreadable_user_ids, .. } = page;
        page = directory.find_users(request.clone()).await?;
        unreadable_user_ids.append(&mut page.unreadable_user_ids);
        page = FindUsersResponse { tried, unreadable_user_ids, ..page };
    }
    Ok(page)
}

fn results(page: FindUsersResponse, list: &List) -> Results {
    let is_attribute = |reading: &FindReading| {
        [FindWay::Attribute, FindWay::AttributeStart].contains(&reading.way())
    };
    let is_similar = page.tried.iter().any(|reading| reading.way() == FindWay::SimilarName);
    let rows = page.matches.iter().filter_map(|found| {
        let mut row = list.columns.row(found.user.as_ref()?);
        row.reasons = find::reasons(found);
        Some(row)
    });
    let hint = match page.next_page_token.is_empty() {
        true => "No user found.",
        false => "No user found yet: see the next page.",
    };
    Results {
        rows: rows.collect(),
        hint: hint.to_owned(),
        tried: page.tried.iter().map(find::reading).take(MAX_TRIED).collect(),
        finds_by_attribute: page.tried.iter().any(is_attribute),
        // Users of similar names come on one page.
        is_cut: is_similar && page.matches.len() >= list.size as usize,
        suggestions: page.suggestions,
        unreadable: page.unreadable_user_ids.len(),
        next: page.next_page_token,
        ..Results::default()
    }
}
