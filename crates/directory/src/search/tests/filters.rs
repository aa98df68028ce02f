//! The language of filters.

use super::{filter, list, message_of, text, user};
use crate::model::attribute::Value;
use crate::model::user::State;
use crate::timestamp::Timestamp;

/// Asserts that each filter matches the user, or that none does.
#[track_caller]
fn check(user: &crate::User, wanted: bool, filters: &[&str]) {
    for text in filters {
        assert_eq!(filter(text).matches(user), wanted, "{text}");
    }
}

fn joe() -> crate::User {
    user(
        &[
            ("team", text("search")),
            ("level", Value::Int(3)),
            ("ratio", Value::Double(0.5)),
            ("digits", text("3")),
            ("admin", Value::Bool(true)),
            ("joined", Value::Time(Timestamp::from_millis(1_700_000_000_000))),
            ("empty", text("")),
        ],
        &[],
    )
}

#[test]
fn conditions_match_values_of_their_class() {
    check(
        &joe(),
        true,
        &[
            "",
            "  ",
            "attributes.team = search",
            "attributes.team=\"search\"",
            "attributes.team:'search'",
            "attributes.team = se*",
            "attributes.team != ranking",
            "attributes.team > \"sea\" attributes.team < \"seb\"",
            "attributes.level = 3",
            "attributes.level = 3.0",
            "attributes.level >= 3 AND attributes.level <= 3",
            "attributes.level > -4e0",
            "attributes.ratio = .5",
            "attributes.digits = \"3\"",
            "attributes.admin = true",
            "attributes.joined > 2023-01-01T00:00:00Z",
            "attributes.joined < 2023-11-14T22:13:20.001+00:00",
            "attributes.empty = \"\"",
            "attributes.empty:*",
            "attributes.\"team\" = search",
            "display_name = \"Joe Smith\"",
            "display_name = Joe*",
            "display_name:*",
            "state = ACTIVE",
            "state != DELETED",
            "state:*",
            "create_time = 1970-01-01T00:00:01Z",
            "create_time < \"1970-01-01T00:00:01.001Z\"",
            "update_time > 1970-01-01T00:00:01Z",
        ],
    );
}

#[test]
fn conditions_match_no_other_values() {
    check(
        &joe(),
        false,
        &[
            "attributes.team = \"Search\"",
            "attributes.level = \"3\"",
            "attributes.digits = 3",
            "attributes.digits > 0",
            "attributes.level < \"a\"",
            "attributes.admin > 0",
            "attributes.nobody:*",
            "attributes.nobody != 3",
            "attributes.level != 3",
            "attributes.empty < \"\"",
            "display_name < Joe",
            "update_time < 1970-01-01T00:00:02Z",
        ],
    );
}

#[test]
fn or_binds_tighter_than_and() {
    let joe = user(&[("a", Value::Int(1)), ("b", Value::Int(2))], &[]);
    check(
        &joe,
        true,
        &[
            "attributes.a = 9 OR attributes.a = 1 AND attributes.b = 2",
            "attributes.a = 1 attributes.b = 9 OR attributes.b = 2",
            "NOT attributes.a = 9",
            "-attributes.a = 9 -attributes.b = 9",
            "NOT (attributes.a = 1 AND attributes.b = 9)",
            "(((attributes.a=1)))AND(attributes.b=2)",
            "NOT attributes.nobody != 1",
        ],
    );
    check(
        &joe,
        false,
        &[
            // As AIP-160 has it: a AND (b OR c).
            "attributes.a = 9 AND attributes.a = 9 OR attributes.a = 1",
            "NOT attributes.a = 1 OR attributes.b = 9",
            "-(attributes.a = 1)",
        ],
    );
}

#[test]
fn a_list_matches_if_any_item_does() {
    let joe = user(&[("tags", list(&["a", "c"])), ("none", list(&[]))], &[]);
    check(
        &joe,
        true,
        &[
            "attributes.tags = a",
            "attributes.tags:c",
            "attributes.tags > \"b\" AND attributes.tags < \"b\"",
            "attributes.tags != b",
            "NOT attributes.none:*",
        ],
    );
    check(
        &joe,
        false,
        &[
            "attributes.tags = b",
            "attributes.tags != a",
            "attributes.none:*",
            "attributes.none != b",
        ],
    );
}

#[test]
fn a_long_text_is_not_searched() {
    let (long, short) = ("x".repeat(257), "x".repeat(256));
    let joe = user(&[("long", text(&long)), ("both", list(&[&long, &short]))], &[]);
    check(&joe, true, &["attributes.both = x*", "NOT attributes.long:*"]);
    check(&joe, false, &["attributes.long = x*", "attributes.long:*"]);
}

#[test]
fn identities_match_by_their_keys() {
    let joe = user(&[], &["email:joe@example.com", "phone:+14155552300", "social:github/Ab1"]);
    check(
        &joe,
        true,
        &[
            "identities.email = Joe@EXAMPLE.com",
            "identities.email:\"joe@example.com\"",
            "identities.email = JOE@*",
            "identities.phone = \"+1 (415) 555-2300\"",
            "identities.phone = +1415*",
            "identities.social = github/Ab1",
            "identities.social:*",
            "identities.email != other@example.com",
            "NOT identities.handle:*",
        ],
    );
    check(
        &joe,
        false,
        &[
            "identities.handle = joe",
            "identities.handle != joe",
            "identities.email != joe*",
            "identities.social = github/ab1",
            "identities.url:*",
        ],
    );
}

#[test]
fn words_of_a_name_match_without_accents_and_case() {
    let mut joe = user(&[], &[]);
    joe.display_name = "José-María O’Neill (Weiß)".to_owned();
    check(
        &joe,
        true,
        &[
            "display_name:jose",
            "display_name:\"maria JOSE\"",
            "display_name:\"oneill mar*\"",
            "display_name:\"O'Neill\"",
            "display_name:\"*weiss\"",
            "display_name = \"*O'NEILL Weiss\"",
            "display_name = *Weiß",
            "display_name != \"*María\"",
            "display_name:\"*\"",
            "NOT display_name:mar",
        ],
    );
    check(
        &joe,
        false,
        &[
            "display_name:\"jose anna\"",
            "display_name:\"mar jose*\"",
            "display_name = jose",
            "display_name:\"*eiss\"",
            "display_name != \"*Weiß\"",
        ],
    );
}

#[test]
fn ends_of_identities_match() {
    let joe = user(&[], &["email:joe@mail.exämple.org", "phone:+14155552300", "handle:joe_x"]);
    check(
        &joe,
        true,
        &[
            "identities.email = \"*@mail.EXÄMPLE.org\"",
            "identities.email = *.org NOT identities.email = *@org",
            "identities.email:*.org",
            "identities.email = *E@mail.exämple.org",
            "identities.phone = \"*55-2300\"",
            "identities.handle = *_X",
            "identities.email != *@firma.example",
        ],
    );
    check(&joe, false, &["identities.email = *@exämple.org", "identities.url = *org"]);
}

#[test]
fn a_day_stands_for_its_times() {
    let mut joe = user(&[], &[]);
    // 2024-05-01T23:59:59.999Z
    joe.create_time = Timestamp::from_millis(1_714_607_999_999);
    check(
        &joe,
        true,
        &[
            "create_time = 2024-05-01",
            "create_time >= 2024-05-01",
            "create_time <= \"2024-05-01\"",
            "create_time > 2024-04-30",
            "create_time < 2024-05-02",
            "create_time != 2024-04-30",
            "update_time:1970-01-01",
        ],
    );
    check(
        &joe,
        false,
        &["create_time > 2024-05-01", "create_time < 2024-05-01", "create_time != 2024-05-01"],
    );
}

#[test]
fn states_are_matched_by_name() {
    let mut joe = user(&[], &[]);
    joe.state = State::Disabled;
    check(
        &joe,
        true,
        &["state = DISABLED", "state = disabled", "state:DISABLED", "-state = ACTIVE"],
    );
    check(&joe, false, &["state = ACTIVE", "state != DISABLED"]);
}

#[test]
fn names_and_texts_may_be_quoted() {
    let joe = user(
        &[
            ("price.in.$", Value::Int(1)),
            ("a \"b\" \\*", text("say \"hi\" * \\")),
            ("é-1", text("ü")),
        ],
        &[],
    );
    check(
        &joe,
        true,
        &[
            r#"attributes."price.in.$" = 1"#,
            r#"attributes."a \"b\" \\\*" = "say \"hi\" \* \\""#,
            r#"attributes.'a "b" \\\*' = 'say "hi"*'"#,
            "attributes.é-1 = ü",
        ],
    );
}

#[test]
fn an_error_names_its_position() {
    let message = message_of("attributes.team = ");
    assert_eq!(message, "expected a value at character 19, its end");
    for (text, at, words) in [
        ("team = 1", 1, "attributes.NAME"),
        ("state = ACTIVE AND team = 1", 20, "expected a field"),
        ("state = AWAY", 9, "ACTIVE, DISABLED, DELETED, MERGED"),
        ("state > ACTIVE", 7, "=, != and :"),
        ("identities.mail = x", 1, "email, handle, phone"),
        ("identities.phone = x", 20, ""),
        ("create_time > yesterday", 15, "2026-01-31"),
        ("attributes.a ~ 1", 14, ">="),
        ("attributes.a = *", 16, "presence"),
        ("attributes.a = a*b", 17, "last character"),
        ("attributes.a = *b", 16, "display_name and identities"),
        ("display_name = *b*", 16, "not both"),
        ("display_name = \"*b*\"", 19, "not both"),
        ("display_name = \"**\"", 18, "not both"),
        ("display_name < *b", 14, "goes with ="),
        ("display_name:\"\"", 14, "without a name"),
        ("display_name:★", 14, "a word"),
        ("display_name:\"a b c d e f g h i j k l m n o p q\"", 14, "16 words"),
        ("create_time > 2024-13-01", 15, "a day such as"),
        ("attributes.a = \"a*b\"", 18, "last character"),
        ("attributes.a < b*", 14, "goes with ="),
        ("attributes.a = \"b", 16, "closing"),
        ("attributes.a = \"\\n\"", 17, "\\\\"),
        ("attributes.a = 1)", 17, "AND, OR"),
        ("attributes. = 1", 12, "name of an attribute"),
        ("attributes.\"\" = 1", 12, "1 to 256 bytes"),
        ("attributes.a = 99999999999999999999", 16, "64 bits"),
        ("attributes.a = 1e999", 16, "64 bits"),
        ("state = ACTIVE and state = ACTIVE", 16, "AND"),
        ("é = 1", 1, "expected a field"),
        ("attributes.é = (", 16, "expected a value"),
    ] {
        let message = message_of(text);
        assert!(message.contains(words), "{text}: {message}");
        assert!(message.contains(&format!("at character {at}")), "{text}: {message}");
    }
    for text in ["(", "attributes.a", "(state = ACTIVE", "NOT", "state = ACTIVE AND"] {
        assert!(message_of(text).ends_with(", its end"), "{text}");
    }
}

#[test]
fn filters_are_bounded() {
    let nested = |depth: usize| format!("{}state:*{}", "(".repeat(depth), ")".repeat(depth));
    filter(&nested(32));
    assert!(message_of(&nested(33)).contains("32 levels"));
    assert!(message_of(&"(".repeat(4_000)).contains("32 levels"));
    assert!(message_of(&"(".repeat(10_000)).contains("4,096 bytes"));
    let terms = |count: usize| vec!["state:*"; count].join(" AND ");
    filter(&terms(100));
    assert!(message_of(&terms(101)).contains("100 conditions"));
    assert!(message_of(&vec!["state:*"; 500].join(" ")).contains("100 conditions"));
    assert!(message_of(&terms(10_000)).contains("4,096 bytes"));
    assert!(message_of(&"NOT ".repeat(1_000)).contains("expected a field"));
}
