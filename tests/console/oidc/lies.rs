//! What a provider says, and does not count.

use serde_json::{Value, json};

use super::OidcSite;
use super::keys::Key;
use super::provider::{Behaviour, Signature};
use crate::browser::HOME;

const UNTRUSTED: &str = "Example SSO answered something that does not count.";

/// Fails unless somebody whom the provider names so is not signed in, and is told why.
async fn refused(site: &OidcSite, lie: impl FnOnce(&mut Behaviour), status: u16, text: &str) {
    site.provider.change(lie);
    let mut browser = site.browser().await;
    let page = site.sign_in(&mut browser, &format!("{HOME}/audit")).await;
    page.assert_has(&["<h1>You are not signed in</h1>", text, ">Back to signing in</a>"]);
    assert_eq!(page.status, status, "{}", page.text);
    page.assert_has(&["/console/sign-in?next=%2Fconsole%2Ft%2Fdefault%2Faudit"]);
    assert_eq!(browser.cookie("polynym_session"), None);
    browser.get(&format!("{HOME}/audit")).await.assert_has(&["<h1>Sign in</h1>"]);
}

#[tokio::test]
async fn claims_that_are_wrong_sign_nobody_in() {
    let site = OidcSite::start().await;
    let truth = json!({
        "iss": null, "nonce": null, "exp": null, "aud": null, "azp": null, "sub": "248289761001",
        "email": "ann@example.org", "email_verified": true, "groups": ["support"],
    });
    let cases: [(Value, u16, &str); 15] = [
        (json!({ "iss": "https://sso.example" }), 502, UNTRUSTED),
        (json!({ "nonce": "another" }), 502, UNTRUSTED),
        (json!({ "exp": 1_500_000_000 }), 502, UNTRUSTED),
        (json!({ "exp": "soon" }), 502, UNTRUSTED),
        (json!({ "aud": "another" }), 502, UNTRUSTED),
        (json!({ "aud": ["another", "polynym"] }), 502, UNTRUSTED),
        (json!({ "azp": "another" }), 502, UNTRUSTED),
        (json!({ "email": "ann lee@example.org" }), 403, "has no name for you"),
        (json!({ "email": "ann\u{202e}@example.org" }), 403, "has no name for you"),
        (json!({ "email": "a".repeat(200) }), 403, "has no name for you"),
        (json!({ "email": null }), 403, "has no name for you"),
        (json!({ "email_verified": false }), 403, "has not verified your email address"),
        (json!({ "email_verified": null }), 403, "has not verified your email address"),
        (json!({ "groups": ["staff", "*", "support "] }), 403, "none of your groups"),
        (json!({ "groups": null }), 403, "none of your groups"),
    ];
    for (claims, status, text) in cases {
        println!("{claims}");
        site.provider.set(truth.clone());
        refused(&site, |behaviour| lie(behaviour, &claims), status, text).await;
    }
    site.provider.set(truth);
    let mut browser = site.browser().await;
    site.sign_in(&mut browser, &format!("{HOME}/")).await.assert_has(&["Role: viewer"]);
}

/// Puts claims in the place of the true ones.
fn lie(behaviour: &mut Behaviour, claims: &Value) {
    let all = behaviour.claims.as_object_mut().unwrap();
    all.extend(claims.as_object().unwrap().clone());
    all.retain(|_, value| !value.is_null());
}

#[tokio::test]
async fn a_token_counts_by_a_signature_of_the_provider_alone() {
    for key in [Key::rsa("first"), Key::p256("first")] {
        let site = OidcSite::start_with(key, "").await;
        for signature in
            [Signature::None, Signature::PublicKey, Signature::ClientSecret, Signature::OtherKey]
        {
            println!("{signature:?}");
            refused(&site, |behaviour| behaviour.signature = signature, 502, UNTRUSTED).await;
        }
        let without = |behaviour: &mut Behaviour| {
            behaviour.signature = Signature::Honest;
            behaviour.has_no_token = true;
        };
        refused(&site, without, 502, UNTRUSTED).await;
    }
}

#[tokio::test]
async fn keys_that_are_new_are_read() {
    let site = OidcSite::start().await;
    let mut browser = site.browser().await;
    let home = format!("{HOME}/");
    site.sign_in(&mut browser, &home).await.assert_has(&["Role: viewer"]);
    assert_eq!(site.provider.count("/keys"), 1);
    // A provider that names unknown keys all the time is not read all the time.
    site.provider.change(|behaviour| behaviour.signature = Signature::OtherKey);
    for _ in 0..5 {
        let mut other = site.browser().await;
        assert_eq!(site.sign_in(&mut other, &home).await.status, 502);
    }
    assert!(site.provider.count("/keys") <= 2, "{}", site.provider.count("/keys"));
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    site.provider.change(|behaviour| {
        behaviour.signature = Signature::Honest;
        behaviour.keys = vec![Key::p256("third"), Key::rsa("second")];
    });
    let mut other = site.browser().await;
    site.sign_in(&mut other, &home).await.assert_has(&["Role: viewer"]);
    browser.get(&home).await.assert_has(&["Role: viewer"]);
}
