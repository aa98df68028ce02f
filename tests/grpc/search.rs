//! Searches over gRPC.

use polynym_proto::v1;
use prost_types::FieldMask;
use tonic::{Code, Status};

use super::{fresh, user};
use crate::support::calls::{Client, email, handle};
use crate::support::scenarios::bulk::create_users;
use crate::support::status::{StatusDetails, status_details};

fn filtered(filter: &str) -> v1::SearchUsersRequest {
    v1::SearchUsersRequest { filter: filter.to_owned(), ..Default::default() }
}

async fn search(
    client: &mut Client,
    request: v1::SearchUsersRequest,
) -> Result<v1::SearchUsersResponse, Status> {
    Ok(client.directory.search_users(request).await?.into_inner())
}

/// The names of the users on all pages.
async fn names(client: &mut Client, mut request: v1::SearchUsersRequest) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = search(client, request.clone()).await.unwrap();
        assert!(request.page_size == 0 || page.users.len() <= request.page_size as usize);
        names.extend(page.users.into_iter().map(|user| user.display_name));
        if page.next_page_token.is_empty() {
            return names;
        }
        request.page_token = page.next_page_token;
    }
}

fn member(name: &str, team: &str, level: i64) -> v1::User {
    use v1::attribute_value::Kind;
    let value = |kind| v1::AttributeValue { kind: Some(kind) };
    let mut member = user(name, vec![handle(name)]);
    member.attributes.insert("team".to_owned(), value(Kind::StringValue(team.to_owned())));
    member.attributes.insert("level".to_owned(), value(Kind::IntValue(level)));
    member
}

async fn team(client: &mut Client) {
    for (name, team, level) in
        [("dora", "a", 1), ("carl", "b", 4), ("ben", "a", 3), ("ann", "a", 2), ("eve", "b", 3)]
    {
        client.create(member(name, team, level)).await.unwrap();
    }
}

#[tokio::test]
async fn users_are_found_by_a_filter() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    let sorted = async |client: &mut Client, filter: &str| {
        let mut found = names(client, filtered(filter)).await;
        found.sort();
        found
    };
    assert_eq!(sorted(&mut client, "").await, ["ann", "ben", "carl", "dora", "eve"]);
    assert_eq!(sorted(&mut client, "attributes.team = a").await, ["ann", "ben", "dora"]);
    let both = "attributes.team = a attributes.level > 1";
    assert_eq!(sorted(&mut client, both).await, ["ann", "ben"]);
    assert_eq!(sorted(&mut client, "identities.handle = ANN").await, ["ann"]);
    assert_eq!(sorted(&mut client, "attributes.nobody:*").await, [""; 0]);
    assert_eq!(names(&mut client, filtered("display_name > \"b\"")).await[..2], ["ben", "carl"]);
}

#[tokio::test]
async fn words_of_names_and_ends_of_addresses_are_found() {
    let (_server, mut client) = fresh().await;
    for (name, address) in [
        ("María Müller", "m@firma.example"),
        ("MARIA Weiß", "m@a.firma.example"),
        ("Mario", "x@y.z"),
    ] {
        client.create(user(name, vec![email(address)])).await.unwrap();
    }
    let mut count = async |filter: &str| names(&mut client, filtered(filter)).await.len();
    assert_eq!(count("display_name: \"maria\"").await, 2);
    assert_eq!(count("display_name: \"mari*\"").await, 3);
    assert_eq!(count("display_name: \"*Müller\"").await, 1);
    assert_eq!(count("display_name: \"weiss maria\"").await, 1);
    assert_eq!(count("identities.email = \"*@firma.example\"").await, 1);
    assert_eq!(count("identities.email = \"*firma.example\"").await, 2);
    assert_eq!(count("state = active create_time >= 2024-05-01").await, 3);
}

#[tokio::test]
async fn a_search_without_a_match_says_why() {
    let (_server, mut client) = fresh().await;
    let mut ann = member("ann", "a", 1);
    ann.display_name = "Ann Müller".to_owned();
    client.create(ann).await.unwrap();
    client.create(user("Marianne", vec![])).await.unwrap();
    let hint = async |client: &mut Client, filter: &str| {
        let found = search(client, filtered(filter)).await.unwrap();
        assert!(found.users.is_empty(), "{filter}");
        found.hint
    };
    for (filter, wanted) in [
        ("attributes.Team = a", "no user has attributes.Team; there is attributes.team"),
        ("attributes.Stadt = a", "there are attributes.level, attributes.team"),
        ("attributes.level = \"1\"", "has numbers, and is compared with a text"),
        (
            "attributes.team > 3",
            "has texts, and is compared with a number: write the value in quotes",
        ),
        ("attributes.team = b", "no user has attributes.team = \"b\""),
        ("display_name = \"ann muller\"", "display_name:\"ann muller\" finds its words"),
        ("display_name:mari", "display_name:\"mari*\" finds words that begin with it"),
        ("display_name:ann display_name:\"mari*\"", "each condition has matches"),
        ("NOT state:*", ""),
    ] {
        let hint = hint(&mut client, filter).await;
        assert!(hint.contains(wanted) && hint.is_empty() == wanted.is_empty(), "{filter}: {hint}");
    }
    let found = search(&mut client, filtered("attributes.team = a")).await.unwrap();
    assert_eq!((found.users.len(), found.hint.as_str()), (1, ""));
}

#[tokio::test]
async fn pages_follow_the_requested_order() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    for page_size in [1, 2, 5, 1_000_000] {
        let by = |order_by: &str| v1::SearchUsersRequest {
            order_by: order_by.to_owned(),
            page_size,
            ..filtered("NOT attributes.level = 2")
        };
        let found = names(&mut client, by("display_name")).await;
        assert_eq!(found, ["ben", "carl", "dora", "eve"]);
        let found = names(&mut client, by("attributes.level")).await;
        assert_eq!((&*found[0], &*found[3]), ("dora", "carl"));
    }
}

#[tokio::test]
async fn a_plan_describes_the_search() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    let request = v1::SearchUsersRequest {
        explain: true,
        ..filtered("attributes.team = a attributes.level >= 3")
    };
    let plan = search(&mut client, request).await.unwrap().plan.unwrap();
    assert_eq!(plan.lead, "attributes.team = \"a\"");
    assert_eq!((plan.order.as_str(), plan.users_read, plan.users_matched), ("id", 3, 1));
    assert_eq!(plan.probes.iter().map(|probe| probe.entries).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(search(&mut client, filtered("")).await.unwrap().plan, None);
}

#[tokio::test]
async fn a_read_mask_names_the_fields() {
    let (_server, mut client) = fresh().await;
    client.create(user("Joe", vec![email("joe@example.com")])).await.unwrap();
    let masked = |paths: &[&str]| v1::SearchUsersRequest {
        read_mask: Some(FieldMask { paths: paths.iter().map(ToString::to_string).collect() }),
        ..filtered("")
    };
    let page = search(&mut client, masked(&["display_name"])).await.unwrap();
    let named = v1::User { display_name: "Joe".to_owned(), ..Default::default() };
    assert_eq!(page.users, [named]);
    let refused = search(&mut client, masked(&["display_name", "x"])).await.unwrap_err();
    assert_eq!(status_details(refused).fields, ["read_mask.paths[1]"]);
}

#[tokio::test]
async fn deleted_users_are_found_until_they_are_purged() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![])).await.unwrap();
    let request = v1::DeleteUserRequest { user_id: joe.user_id.clone(), ..Default::default() };
    client.registry.delete_user(request).await.unwrap();
    assert_eq!(names(&mut client, filtered("state = DELETED")).await, ["Joe"]);
    assert_eq!(names(&mut client, filtered("state = ACTIVE")).await, [""; 0]);
    let request = v1::PurgeUserRequest { user_id: joe.user_id, ..Default::default() };
    client.admin.purge_user(request).await.unwrap();
    assert_eq!(names(&mut client, filtered("")).await, [""; 0]);
}

#[tokio::test]
async fn bad_searches_name_the_field() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    let paged = v1::SearchUsersRequest { page_size: 1, ..filtered("") };
    let token = search(&mut client, paged).await.unwrap().next_page_token;
    let other = if token.starts_with('A') { 'B' } else { 'A' };
    let changed = format!("{other}{}", &token[1..]);
    let with_token = |page_token: &str, filter: &str, tenant: &str| v1::SearchUsersRequest {
        page_token: page_token.to_owned(),
        tenant: tenant.to_owned(),
        ..filtered(filter)
    };
    let filters = [
        "(".repeat(10_000),
        "(".repeat(4_000),
        vec!["state:*"; 10_000].join(" AND "),
        vec!["state:*"; 500].join(" "),
        "attributes.team =".to_owned(),
        "nobody = 1".to_owned(),
        "state = AWAY \u{0}\n".to_owned(),
    ];
    let wrong_filters = filters.iter().map(|filter| (filtered(filter), "FILTER_INVALID", "filter"));
    let others = [
        (with_token("nonsense", "", ""), "PAGE_TOKEN_INVALID", "page_token"),
        (with_token(&changed, "", ""), "PAGE_TOKEN_INVALID", "page_token"),
        (with_token(&token, "state:*", ""), "PAGE_TOKEN_INVALID", "page_token"),
        (with_token(&token, "", "acme"), "PAGE_TOKEN_INVALID", "page_token"),
        (v1::SearchUsersRequest { page_size: -1, ..filtered("") }, "FIELD_INVALID", "page_size"),
        (
            v1::SearchUsersRequest { order_by: "state desc".to_owned(), ..filtered("") },
            "FIELD_INVALID",
            "order_by",
        ),
    ];
    client
        .admin
        .update_tenant(v1::UpdateTenantRequest { tenant: "acme".to_owned(), ..Default::default() })
        .await
        .unwrap();
    for (request, reason, field) in wrong_filters.chain(others) {
        let shown = format!("{:.80?}", request.filter);
        let details = status_details(search(&mut client, request).await.unwrap_err());
        assert_eq!(details.fields, [field], "{shown}");
        let wanted = StatusDetails::new(Code::InvalidArgument, reason);
        assert_eq!((details.code, &details.reason), (wanted.code, &wanted.reason), "{shown}");
    }
}

#[tokio::test]
async fn the_users_of_all_pages_are_counted() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    for (filter, expected) in
        [("", 5), ("attributes.team = a", 3), ("attributes.team = a attributes.level > 1", 2)]
    {
        let mut request = v1::SearchUsersRequest { page_size: 1, ..filtered(filter) };
        assert_eq!(search(&mut client, request.clone()).await.unwrap().user_count, None);
        request.count = true;
        loop {
            let page = search(&mut client, request.clone()).await.unwrap();
            let count = v1::UserCount { users: expected, has_more: false };
            assert_eq!(page.user_count, Some(count), "{filter}");
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn counts_have_bounds() {
    let (_server, mut client) = fresh().await;
    create_users(&mut client, 520).await;
    for (filter, page_size, users, has_more) in [
        ("", 1, 520, false),
        ("create_time >= 2020-01-01 create_time < 2120-01-01", 1, 520, false),
        ("state = ACTIVE", 1, 500, true),
        ("state = ACTIVE", 510, 510, true),
        ("state = ACTIVE", 600, 520, false),
        ("state = DELETED", 1, 0, false),
    ] {
        let request = v1::SearchUsersRequest { page_size, count: true, ..filtered(filter) };
        let count = search(&mut client, request).await.unwrap().user_count;
        assert_eq!(count, Some(v1::UserCount { users, has_more }), "{filter} {page_size}");
    }
}

#[tokio::test]
async fn infinite_numbers_are_refused() {
    let (_server, mut client) = fresh().await;
    let ratio = |number| {
        let kind = Some(v1::attribute_value::Kind::DoubleValue(number));
        let mut joe = user("Joe", vec![]);
        joe.attributes.insert("ratio".to_owned(), v1::AttributeValue { kind });
        joe
    };
    for number in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let details = status_details(client.create(ratio(number)).await.unwrap_err());
        assert_eq!(details.code, Code::InvalidArgument, "{number}");
        assert_eq!(details.fields, ["user.attributes.ratio"], "{number}");
    }
    client.create(ratio(-0.0)).await.unwrap();
    assert_eq!(names(&mut client, filtered("attributes.ratio = 0")).await, ["Joe"]);
}

/// Users come with the same fields, on the same pages, whether or not their attributes are read.
#[tokio::test]
async fn a_read_mask_changes_nothing_else() {
    let (_server, mut client) = fresh().await;
    team(&mut client).await;
    let paths = ["user_id", "display_name", "identities", "update_time", "etag"];
    let mask = FieldMask { paths: paths.map(str::to_owned).into() };
    for filter in [
        "",
        "attributes.team = a",
        "attributes.team = a attributes.level > 1",
        "attributes.level >= 2",
        "display_name >= b attributes.team:*",
        "display_name >= b",
        "identities.handle = ann",
        "identities.handle = \"e*\"",
        "create_time >= 2020-01-01T00:00:00Z",
    ] {
        let mut request = v1::SearchUsersRequest { page_size: 1, ..filtered(filter) };
        let mut users = 0;
        loop {
            let whole = search(&mut client, request.clone()).await.unwrap();
            let masked =
                v1::SearchUsersRequest { read_mask: Some(mask.clone()), ..request.clone() };
            let mut masked = search(&mut client, masked).await.unwrap();
            for (own, whole) in masked.users.iter_mut().zip(&whole.users) {
                assert!(own.attributes.is_empty() && own.create_time.is_none(), "{filter}");
                own.attributes.clone_from(&whole.attributes);
                (own.tenant, own.state) = (whole.tenant.clone(), whole.state);
                own.create_time = whole.create_time;
            }
            assert_eq!(masked.users, whole.users, "{filter}");
            users += whole.users.len();
            assert_eq!(masked.next_page_token.is_empty(), whole.next_page_token.is_empty());
            // The one page leads on like the other.
            request.page_token = masked.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
        assert!(users > 0, "{filter}");
    }
}
