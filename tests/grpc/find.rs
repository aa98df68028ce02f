//! FindUsers: what people type and paste, and whom it finds.

use tonic::Code;

use super::{email, fresh, handle, phone, social, user};
use crate::support::calls::Client;
use crate::support::status::status_details;
use polynym_proto::v1;
use v1::FindWay;

fn typed(text: &str) -> v1::FindUsersRequest {
    v1::FindUsersRequest { text: text.to_owned(), ..Default::default() }
}

async fn page(client: &mut Client, request: v1::FindUsersRequest) -> v1::FindUsersResponse {
    client.directory.find_users(request).await.unwrap().into_inner()
}

/// The names of the users whom a text finds, each with the way of its first reason.
async fn found(client: &mut Client, text: &str) -> Vec<(String, FindWay)> {
    let matches = page(client, typed(text)).await.matches;
    let first = |found: v1::FoundUser| {
        let way = found.reasons.first().map_or(FindWay::Unspecified, v1::FindReading::way);
        (found.user.unwrap().display_name, way)
    };
    matches.into_iter().map(first).collect()
}

/// The names of the users whom a text finds.
async fn names(client: &mut Client, text: &str) -> Vec<String> {
    found(client, text).await.into_iter().map(|(name, _)| name).collect()
}

async fn people(client: &mut Client) -> Vec<v1::User> {
    let mut people = Vec::new();
    for (name, identifiers) in [
        ("Ann Lee", vec![email("ann@example.com"), phone("030 1234567", "DE"), handle("annie")]),
        ("José Müller", vec![email("jose@example.at"), phone("01 5120000", "AT")]),
        ("Jon Mueller", vec![email("jon.m@example.com"), social("github", "583231")]),
        ("Anna Øster", vec![email("oester@example.dk")]),
        ("Marianne Smith", vec![handle("ann")]),
    ] {
        people.push(client.create(user(name, identifiers)).await.unwrap());
    }
    people
}

#[tokio::test]
async fn identifiers_are_found_as_people_paste_them() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    for (text, name) in [
        ("Ann Lee <Ann@example.com>", "Ann Lee"),
        ("mailto:ann@example.com", "Ann Lee"),
        ("\u{200b}ann@example.com.", "Ann Lee"),
        ("tel:+49-30-1234567", "Ann Lee"),
        ("+49 30 1234567 ext. 12", "Ann Lee"),
        ("+٤٩ ٣٠ ١٢٣٤٥٦٧", "Ann Lee"),
        ("annie", "Ann Lee"),
        ("@annie", "Ann Lee"),
        ("github:583231", "Jon Mueller"),
        ("github/583231", "Jon Mueller"),
    ] {
        let found = found(&mut client, text).await;
        assert_eq!(found.first(), Some(&(name.to_owned(), FindWay::Identifier)), "{text}");
    }
    let both = names(&mut client, "ann@example.com, jose@example.at; nobody@example.com").await;
    assert_eq!(both, ["Ann Lee", "José Müller"]);
}

#[tokio::test]
async fn numbers_without_a_country_are_tried_in_the_countries_of_the_tenant() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let anywhere = found(&mut client, "030 1234567").await;
    assert_eq!(anywhere, [("Ann Lee".to_owned(), FindWay::PhoneEnd)]);
    let policies = |regions: &[&str]| v1::Policies {
        phone_regions: regions.iter().map(ToString::to_string).collect(),
        ..Default::default()
    };
    client.govern(policies(&["DE", "AT"])).await.unwrap();
    for (text, name, region) in
        [("030 1234567", "Ann Lee", "DE"), ("01 5120000", "José Müller", "AT")]
    {
        let page = page(&mut client, typed(text)).await;
        assert_eq!(page.matches[0].user.as_ref().unwrap().display_name, name);
        assert_eq!(page.matches[0].reasons[0].region, region, "{text}");
    }
    // A country that has no such number is passed.
    let request = v1::FindUsersRequest { region: "US".to_owned(), ..typed("030 1234567") };
    assert_eq!(page(&mut client, request).await.matches[0].reasons[0].region, "DE");
    let many: Vec<_> = ["DE", "AT", "CH", "US", "GB", "FR", "IT", "ES", "DK"].into();
    for wrong in [&["XX"][..], &["de"], &["DE", "DE"], &many] {
        let refused = status_details(client.govern(policies(wrong)).await.unwrap_err());
        assert_eq!(refused.fields, ["policies.phone_regions"], "{wrong:?}");
    }
}

#[tokio::test]
async fn names_are_found_by_words_in_any_spelling() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    for (text, expected) in [
        ("müller jose", &["José Müller"][..]),
        ("muller", &["José Müller"]),
        ("Øster", &["Anna Øster"]),
        ("oester anna", &["Anna Øster"]),
        ("lee a", &["Ann Lee"]),
        ("smith", &["Marianne Smith"]),
        ("lee smith", &[]),
    ] {
        assert_eq!(names(&mut client, text).await, expected, "{text}");
    }
    for text in ["Mueller", "MÜLLER"] {
        let mut both = names(&mut client, text).await;
        both.sort();
        assert_eq!(both, ["Jon Mueller", "José Müller"], "{text}");
    }
    let starts = found(&mut client, "jon.m@ex").await;
    assert_eq!(starts, [("Jon Mueller".to_owned(), FindWay::EmailStart)]);
    // The address is wrong, the name beside it is not.
    for text in ["Ann Lee <an@example.com>", "\"Lee, Ann\" <ann.lee@example.org>"] {
        assert_eq!(
            found(&mut client, text).await,
            [("Ann Lee".to_owned(), FindWay::Name)],
            "{text}"
        );
    }
    for text in ["@example.at", "EXAMPLE.at"] {
        let of_domain = found(&mut client, text).await;
        assert_eq!(of_domain, [("José Müller".to_owned(), FindWay::EmailDomain)], "{text}");
    }
}

#[tokio::test]
async fn names_with_the_words_as_they_are_come_before_those_that_go_on() {
    let (_server, mut client) = fresh().await;
    for n in 0..8 {
        client.create(user(&format!("Joe Smithson {n}"), Vec::new())).await.unwrap();
        client.create(user(&format!("Muellerin {n}"), Vec::new())).await.unwrap();
    }
    for name in ["Joe Smith", "Joe Müller"] {
        client.create(user(name, Vec::new())).await.unwrap();
    }
    for (text, first, count) in
        [("joe smith", "Joe Smith", 9), ("smith joe", "Joe Smith", 1), ("mueller", "Joe Müller", 9)]
    {
        let mut request = v1::FindUsersRequest { page_size: 2, ..typed(text) };
        let mut found = Vec::new();
        loop {
            let page = page(&mut client, request.clone()).await;
            for found in &page.matches {
                let mut reasons = found.reasons.clone();
                reasons.dedup();
                assert_eq!(reasons, found.reasons, "{text}");
            }
            let names = page.matches.into_iter().map(|found| found.user.unwrap().display_name);
            found.extend(names);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
        assert_eq!((&*found[0], found.len()), (first, count), "{text}: {found:?}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count, "{text}");
    }
}

#[tokio::test]
async fn numbers_are_found_by_their_ends() {
    let (_server, mut client) = fresh().await;
    let people = people(&mut client).await;
    for text in ["4567", "…34-567", "1234567", "٤٥٦٧", "(030) 123 45 67"] {
        let found = found(&mut client, text).await;
        assert_eq!(found, [("Ann Lee".to_owned(), FindWay::PhoneEnd)], "{text}");
    }
    assert_eq!(names(&mut client, "567").await, [""; 0], "three digits are too few");
    let number = phone("+49 30 7654567", "");
    client.link(&people[2].user_id, number).await.unwrap();
    let mut both = names(&mut client, "4567").await;
    both.sort();
    assert_eq!(both, ["Ann Lee", "Jon Mueller"]);
}

#[tokio::test]
async fn a_user_is_found_once_with_all_reasons_the_likeliest_first() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let page = page(&mut client, typed("ann")).await;
    let names: Vec<_> =
        page.matches.iter().map(|found| &*found.user.as_ref().unwrap().display_name).collect();
    assert_eq!(names, ["Marianne Smith", "Ann Lee", "Anna Øster"]);
    let ways =
        |n: usize| -> Vec<_> { page.matches[n].reasons.iter().map(v1::FindReading::way).collect() };
    assert_eq!(ways(0), [FindWay::Identifier]);
    assert_eq!(ways(1), [FindWay::Name, FindWay::EmailStart]);
    assert_eq!(page.matches[0].reasons[0].value, "handle:ann");
    let tried: Vec<_> = page.tried.iter().map(v1::FindReading::way).collect();
    assert_eq!(tried, [FindWay::Identifier, FindWay::Name, FindWay::EmailStart]);
}

#[tokio::test]
async fn pages_have_each_user_once() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let mut request = v1::FindUsersRequest { page_size: 1, ..typed("ann") };
    let mut names = Vec::new();
    loop {
        let page = page(&mut client, request.clone()).await;
        assert!(page.matches.len() <= 1);
        names.extend(page.matches.into_iter().map(|found| found.user.unwrap().display_name));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
        let other = v1::FindUsersRequest { text: "lee".to_owned(), ..request.clone() };
        let refused = client.directory.find_users(other).await.unwrap_err();
        assert_eq!(status_details(refused).reason, "PAGE_TOKEN_INVALID");
    }
    assert_eq!(names, ["Marianne Smith", "Ann Lee", "Anna Øster"]);
}

#[tokio::test]
async fn a_token_is_refused_once_the_text_is_read_otherwise() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let first = page(&mut client, v1::FindUsersRequest { page_size: 1, ..typed("ann") }).await;
    let next = v1::FindUsersRequest { page_token: first.next_page_token, ..typed("ann") };
    page(&mut client, next.clone()).await;
    let nick =
        v1::AttributeDefinition { name: "nick".to_owned(), find: true, ..Default::default() };
    let policies = v1::Policies { attribute_definitions: vec![nick], ..Default::default() };
    client.govern(policies).await.unwrap();
    let refused = client.directory.find_users(next).await.unwrap_err();
    assert_eq!(status_details(refused).reason, "PAGE_TOKEN_INVALID");
}

#[tokio::test]
async fn pages_end_before_users_that_do_not_fit() {
    let (_server, mut client) = fresh().await;
    let mut created = Vec::new();
    for n in 0..14 {
        let name = if n < 9 { format!("Jörg {n}") } else { format!("Joerg {n}") };
        let mut large = client.create(user(&name, Vec::new())).await.unwrap();
        for part in 0..7 {
            let values = vec!["x".repeat(4_096); 14];
            let list = v1::attribute_value::Kind::ListValue(v1::StringList { values });
            let value = v1::AttributeValue { kind: Some(list) };
            let attributes = [(format!("a{part}"), value)].into();
            let (user_id, path) = (large.user_id, format!("attributes.a{part}"));
            let part = v1::User { user_id, attributes, ..Default::default() };
            large = client.update(part, &[&path]).await.unwrap();
        }
        created.push(large.user_id);
    }
    let (mut request, mut found) =
        (v1::FindUsersRequest { page_size: 50, ..typed("Jörg") }, vec![]);
    loop {
        let page = page(&mut client, request.clone()).await;
        found.extend(page.matches.into_iter().map(|found| found.user.unwrap().user_id));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    found.sort_unstable();
    created.sort_unstable();
    assert_eq!(found, created);
}

#[tokio::test]
async fn a_wrong_letter_is_forgiven_if_nobody_is_found_otherwise() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let similar = page(&mut client, typed("Marianne Smyth")).await;
    assert_eq!(similar.suggestions, ["smith"]);
    assert_eq!(similar.matches[0].user.as_ref().unwrap().display_name, "Marianne Smith");
    assert_eq!(similar.matches[0].reasons[0].way(), FindWay::SimilarName);
    for (text, name) in [("mairanne", "Marianne Smith"), ("smth", "Marianne Smith")] {
        assert_eq!(names(&mut client, text).await, [name], "{text}");
    }
    let nobody = page(&mut client, typed("zzzzzz")).await;
    assert!(nobody.matches.is_empty() && nobody.suggestions.is_empty());
    assert!(!nobody.tried.is_empty());
}

#[tokio::test]
async fn attributes_that_the_tenant_marks_find_users() {
    let (_server, mut client) = fresh().await;
    let mut ann = user("Ann", vec![handle("ann")]);
    let number = v1::attribute_value::Kind::IntValue(77_001);
    ann.attributes.insert("account".to_owned(), v1::AttributeValue { kind: Some(number) });
    let numbers = ["K-42", "550e8400-e29b-41d4-a716-446655440000"].map(str::to_owned).into();
    let numbers = v1::attribute_value::Kind::ListValue(v1::StringList { values: numbers });
    ann.attributes.insert("customer".to_owned(), v1::AttributeValue { kind: Some(numbers) });
    client.create(ann).await.unwrap();
    assert!(names(&mut client, "K-42").await.is_empty());
    let definition = |name: &str| v1::AttributeDefinition {
        name: name.to_owned(),
        find: true,
        ..Default::default()
    };
    let attribute_definitions = vec![definition("customer"), definition("account")];
    let policies = v1::Policies { attribute_definitions, ..Default::default() };
    client.govern(policies).await.unwrap();
    for refused in [
        v1::AttributeDefinition { indexed: Some(false), ..definition("customer") },
        v1::AttributeDefinition { r#type: v1::AttributeType::Bool.into(), ..definition("account") },
    ] {
        let policies = v1::Policies { attribute_definitions: vec![refused], ..Default::default() };
        let refused = status_details(client.govern(policies).await.unwrap_err());
        assert_eq!(refused.fields, ["policies.attribute_definitions"]);
    }
    for text in ["K-42", "k-42", " 77001 ", "550e8400-e29b-41d4-a716-446655440000"] {
        let found = found(&mut client, text).await;
        assert_eq!(found, [("Ann".to_owned(), FindWay::Attribute)], "{text}");
    }
    // Two characters are no start, and numbers have none.
    for text in ["K-", "7700", "-42", "K-4 2"] {
        assert!(names(&mut client, text).await.is_empty(), "{text}");
    }
    for text in ["k-4", "550E8400"] {
        let page = page(&mut client, typed(text)).await;
        let reasons = &page.matches[0].reasons;
        assert_eq!((page.matches.len(), reasons.len()), (1, 1), "{text}");
        assert_eq!(reasons[0].way(), FindWay::AttributeStart);
        assert_eq!((&*reasons[0].attribute, &*reasons[0].value), ("customer", text));
    }
    let other = v1::attribute_value::Kind::StringValue("K-421".to_owned());
    let mut ben = user("Ben", vec![handle("ben")]);
    ben.attributes.insert("customer".to_owned(), v1::AttributeValue { kind: Some(other) });
    client.create(ben).await.unwrap();
    let both = names(&mut client, "K-42").await;
    assert_eq!(both, ["Ann", "Ben"], "the whole value comes before its start");
}

#[tokio::test]
async fn owners_who_are_gone_are_named_as_such() {
    let (_server, mut client) = fresh().await;
    let people = people(&mut client).await;
    let id = |n: usize| people[n].user_id.clone();
    client.disable(&id(1)).await.unwrap();
    client.delete(&id(2)).await.unwrap();
    client.unlink(&id(4), handle("ann")).await.unwrap();
    client.merge(&id(0), &id(3)).await.unwrap();

    let one = async |client: &mut Client, text: &str| {
        let mut matches = page(client, typed(text)).await.matches;
        assert_eq!(matches.len(), 1, "{text}");
        matches.remove(0)
    };
    let disabled = one(&mut client, "jose@example.at").await;
    assert_eq!(disabled.user.unwrap().state(), v1::State::Disabled);
    let deleted = one(&mut client, "github:583231").await;
    assert_eq!(deleted.user.unwrap().state(), v1::State::Deleted);
    assert_eq!(deleted.reasons[0].way(), FindWay::Identifier);
    let held = one(&mut client, "@ann").await;
    assert_eq!(held.reasons[0].way(), FindWay::HeldIdentifier);
    assert_eq!(held.user.unwrap().user_id, id(4));
    let merged = one(&mut client, &id(3)).await;
    assert_eq!((merged.merged_from, merged.user.unwrap().user_id), (id(3), id(0)));
    assert_eq!(merged.reasons[0].way(), FindWay::UserId);
}

#[tokio::test]
async fn malformed_requests_are_refused_without_their_text() {
    let (_server, mut client) = fresh().await;
    let long = format!("canary{}", "x".repeat(4_096));
    for (request, field) in [
        (typed(" "), "text"),
        (typed(&long), "text"),
        (v1::FindUsersRequest { region: "canary".to_owned(), ..typed("a") }, "region"),
        (v1::FindUsersRequest { page_size: -1, ..typed("a") }, "page_size"),
    ] {
        let refused = client.directory.find_users(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(!refused.message().contains("canary"), "{refused}");
        assert_eq!(status_details(refused).fields, [field]);
    }
}

/// Pieces of what people paste, and of what nobody should.
const PIECES: [&str; 24] = [
    "ann",
    "@",
    ".",
    ",",
    ";",
    " ",
    "\n",
    "<",
    ">",
    "\"",
    "://",
    "mailto:",
    "tel:",
    "+49",
    "030",
    "1234567",
    "/",
    "x.com",
    "ü",
    "山田",
    "\u{202e}",
    "\u{0}",
    "\u{1f600}",
    "*\\\"",
];

#[tokio::test]
async fn any_text_is_answered_within_its_bound() {
    let (_server, mut client) = fresh().await;
    people(&mut client).await;
    let phone_regions = ["DE", "AT", "US"].map(str::to_owned).into();
    client.govern(v1::Policies { phone_regions, ..Default::default() }).await.unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for n in 0..400 {
        let pieces = if n % 40 == 0 { 4_096 } else { random.usize(1..40) };
        let mut text: String = (0..pieces).map(|_| PIECES[random.usize(..PIECES.len())]).collect();
        text.truncate(text.floor_char_boundary(4_096));
        if text.trim().is_empty() {
            continue;
        }
        let answer = client.directory.find_users(typed(&text)).await;
        let page = answer.unwrap_or_else(|refused| panic!("{text:?}: {refused}")).into_inner();
        assert!(page.tried.len() <= 8 + 2 + 8 + 4, "{text:?}: {:?}", page.tried);
    }
}
