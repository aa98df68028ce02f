//! Values as people paste them, from contact cards, messengers, browsers and mail programs.

use tonic::Code;

use super::{email, fresh, phone, url, user};
use crate::support::calls::identity;
use polynym_proto::v1;

const NUMBERS: [&str; 6] = [
    "tel:+33-6-12-34-56-78",
    "(+33) 6 12 34 56 78",
    "\u{202a}+33 6 12 34 56 78\u{202c}",
    "\u{2068}+33 6 12 34 56 78\u{2069}",
    "\u{200e}+33 6 12 34 56 78",
    "\u{2066}tel:+33612345678\u{2069}",
];

#[tokio::test]
async fn pasted_numbers_and_addresses_find_their_user() {
    let (_server, mut client) = fresh().await;
    let names = vec![phone(NUMBERS[0], ""), url("linkedin.com/in/Ann-Lee/details/skills")];
    let ann = client.create(user("Ann", names)).await.unwrap();
    let [number, address] = &ann.identities[..] else { panic!("{ann:?}") };
    assert_eq!(number.identifier, Some(phone("+33612345678", "")));
    assert_eq!(address.identifier, Some(url("https://www.linkedin.com/in/ann-lee")));
    assert_eq!(address.display, "linkedin.com/in/Ann-Lee/details/skills");
    for pasted in NUMBERS {
        assert_eq!(client.resolve(phone(pasted, "")).await.unwrap().user, Some(ann.clone()));
        assert_eq!(client.resolve(phone(pasted, "DE")).await.unwrap().user, Some(ann.clone()));
    }
    for pasted in ["www.linkedin.com/in/ann-lee/", "https://uk.linkedin.com/in/Ann-Lee/en"] {
        assert_eq!(client.resolve(url(pasted)).await.unwrap().user, Some(ann.clone()), "{pasted}");
    }
}

#[tokio::test]
async fn refusals_say_what_to_write() {
    let (_server, mut client) = fresh().await;
    for (identifier, advice) in [
        (email("Ann Lee <canary@example.com>"), "write only what is between < and >"),
        (email("\"Lee, Ann\" <canary@example.com>"), "write only what is between < and >"),
        (email("mailto:canary@example.com"), "leave out mailto: in front of the address"),
        (url("https://x.com/canary/status/1"), "give the address of the person's profile"),
    ] {
        let refused = client.create(user("Ann", vec![identifier])).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let message = refused.message();
        assert!(message.contains(advice) && !message.contains("canary"), "{message}");
    }
}

#[tokio::test]
async fn names_lose_what_programs_put_around_them() {
    let (_server, mut client) = fresh().await;
    let ann = client.create(user("\u{2068}Ann Lee\u{2069}", vec![email("a@b.c")])).await.unwrap();
    assert_eq!(ann.display_name, "Ann Lee");
    let long = v1::User { display_name: "\u{202b}Ann Öster\u{ad}reich\u{202c}".into(), ..ann };
    let ann = client.update(long, &["display_name"]).await.unwrap();
    assert_eq!(ann.display_name, "Ann Österreich");

    for (name, part) in [
        ("canary \u{202e}Lee", "U+202E (right-to-left override) at character 8"),
        ("canary\tLee", "U+0009 (tabulation) at character 7"),
        ("\u{2068}canary\u{200b}\u{2069}", "U+200B (zero width space) at character 8"),
    ] {
        let refused = client.create(user(name, vec![email("b@b.c")])).await.unwrap_err();
        let message = refused.message();
        assert!(message.ends_with(part) && !message.contains("canary"), "{message}");
    }
    let account = v1::Identity {
        display: "\u{2068}Ann\u{2069}".to_owned(),
        ..identity(super::social("github", "42"))
    };
    let named = v1::User { identities: vec![account], ..user("Bob", vec![]) };
    let bob = client.create(named).await.unwrap();
    assert_eq!(bob.identities[0].display, "Ann");
}
