//! Tenants: the list, a new one, and deletion.

use crate::browser::Site;
use crate::tokens::GuardedSite;

const TENANTS: &str = "/console/tenants";

#[tokio::test]
async fn a_tenant_is_created_once() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let list = browser.get(TENANTS).await;
    list.assert_has(&["Create tenant", ">default</a>", "polynym tenant list"]);
    let created = browser.submit(&list, TENANTS, &[("name", "acme")]).await;
    created.assert_has(&["<h1>Policies of acme", "The tenant is created"]);
    assert!(created.path.starts_with("/console/t/acme/policies"), "{}", created.path);
    let twice = browser.submit(&list, TENANTS, &[("name", "acme")]).await;
    twice.assert_has(&["The tenant is created"]);

    let again = browser.get(TENANTS).await;
    let taken = browser.submit(&again, TENANTS, &[("name", "acme")]).await;
    taken.assert_has(&["A tenant of this name exists already", "value=\"acme\""]);
    assert_eq!(taken.status, 409);
    for wrong in ["Acme!", "", "<script>"] {
        let answer = browser.submit(&again, TENANTS, &[("name", wrong)]).await;
        assert_eq!(answer.status, 422, "{wrong}");
        assert!(!answer.text.contains("<script>\""), "{wrong}");
    }
}

#[tokio::test]
async fn tenants_are_listed_page_by_page_and_by_prefix() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let list = browser.get(TENANTS).await;
    for n in 10..40 {
        let request_id = format!("00000000-0000-4000-8000-0000000000{n}");
        let fields = [("name", &*format!("shop-{n}")), ("request_id", &request_id)];
        assert_eq!(browser.post(TENANTS, &fields).await.status, 200, "{}", list.path);
    }
    let first = browser.get("/console/tenants?prefix=shop-&t=shop-10").await;
    first.assert_has(&[">shop-10</a> <span class=\"mark\">current", ">shop-34</a>", "Next page"]);
    assert!(!first.text.contains(">default</a></th>") && !first.text.contains(">shop-35</a>"));
    first.assert_has(&["1 to 25<"]);
    let second = browser.get(&first.next_page()).await;
    second.assert_has(&[">shop-35</a>", ">shop-39</a>", "26 to 30 of 30<"]);
    let previous = second.attribute("rel=\"prev\" href", "/console/tenants");
    let back = browser.get(&previous.replace("&#38;", "&")).await;
    back.assert_has(&["<span class=\"mark\">current", ">shop-34</a>", "1 to 25<"]);
    assert!(!second.text.contains("Next page") && !second.text.contains(">shop-34</a>"));
    let none = browser.get("/console/tenants?prefix=zzz").await;
    none.assert_has(&["No tenant that you may see has a name that begins with this"]);
    let odd = browser.get("/console/tenants?t=%22%3E%3Cscript%3E").await;
    assert!(!odd.text.contains("t=\"><script>") && odd.status == 200);
}

#[tokio::test]
async fn a_tenant_is_deleted_by_its_typed_name() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let path = "/console/t/default/policies/delete";
    let preview = browser.get(path).await;
    preview.assert_has(&["The tenant has users", "It cannot be undone", "--force"]);
    let wrong = browser.submit(&preview, path, &[("name", "defualt"), ("force", "yes")]).await;
    wrong.assert_has(&["This is not the name of the tenant. Nothing was deleted", "defualt"]);
    assert_eq!(wrong.status, 422);
    let unforced = browser.submit(&wrong, path, &[("name", "default")]).await;
    assert_eq!(unforced.status, 409, "{}", unforced.text);
    assert!(!browser.get("/console/tenants").await.text.contains("being deleted"));

    let stale = browser.get(path).await;
    change_policies(&mut browser).await;
    let conflict = browser.submit(&stale, path, &[("name", "default"), ("force", "yes")]).await;
    conflict.assert_has(&[
        "This tenant was changed in another tab, or by somebody else",
        "Verified wins",
        "Delete it anyway",
    ]);
    assert_eq!(conflict.status, 409);
    let fields = [("name", "default"), ("force", "yes")];
    let deleted = browser.submit(&conflict, path, &fields).await;
    assert_eq!(deleted.path, "/console/tenants");
}

/// Changes a policy of the tenant `default`.
async fn change_policies(browser: &mut crate::browser::Browser) {
    let path = "/console/t/default/policies";
    let page = browser.get(path).await;
    let fields = crate::policies::fields(&page, &[("verified_wins", "on")]);
    let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let review = browser.post(path, &fields).await;
    let saved = browser.submit(&review, path, &[]).await;
    saved.assert_has(&["The policies are saved"]);
}

#[tokio::test]
async fn roles_see_what_they_may_do() {
    let site = GuardedSite::start(&[
        ("vera", "viewer", "default"),
        ("adam", "admin", "default"),
        ("rolf", "resolver", "*"),
    ]);
    let mut viewer = site.browser("vera").await;
    let list = viewer.get(TENANTS).await;
    list.assert_has(&[">default</a>"]);
    assert!(!list.text.contains("Create tenant") && !list.text.contains("/callers"));
    let policies = viewer.get("/console/t/default/policies").await;
    policies.assert_has(&["Restore window", "30 days", "Polynym's default list"]);
    assert!(!policies.text.contains("Review changes") && !policies.text.contains("Delete tenant"));
    for (path, fields) in [
        (TENANTS, &[("name", "acme")][..]),
        ("/console/t/default/policies", &[("verified_wins", "on"), ("reviewed", "yes")]),
        ("/console/t/default/policies/handles", &[("list", "own")]),
        ("/console/t/default/policies/attributes", &[("name", "level")]),
        ("/console/t/default/policies/delete", &[("name", "default"), ("force", "yes")]),
    ] {
        assert_eq!(viewer.post(path, fields).await.status, 403, "{path}");
    }
    for path in ["/console/callers", "/console/t/default/usage", "/console/health"] {
        assert_eq!(viewer.get(path).await.status, 403, "{path}");
    }

    let mut admin = site.browser("adam").await;
    admin.get("/console/health").await.assert_has(&["The store answers"]);
    assert_eq!(admin.get("/console/callers").await.status, 403);
    assert_eq!(admin.get("/console/t/other/policies").await.status, 403);
    let other = [("name", "other"), ("request_id", "00000000-0000-4000-8000-000000000001")];
    assert_eq!(admin.post(TENANTS, &other).await.status, 403);

    let mut resolver = site.browser("rolf").await;
    for path in [TENANTS, "/console/t/default/policies", "/console/t/default/events"] {
        assert_eq!(resolver.get(path).await.status, 403, "{path}");
    }
}
