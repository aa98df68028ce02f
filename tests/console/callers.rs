//! Tokens that admins make, extend and revoke on pages, and the sessions that they end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use testkit::server::{polynym, program};
use tokio::time::sleep;
use uuid::Uuid;

use crate::browser::{Answer, Browser};
use crate::tokens::GuardedSite;

const NEW: &str = "/console/callers/new";
const EXTEND: &str = "/console/callers/extend";
const REVOKE: &str = "/console/callers/revoke";
/// People, who must stay in a file.
const PEOPLE: &str = "# The people.\n[oidc]\nissuer = \"https://sso.example\"\nclient_id = \"a\"\n\
    [[oidc.grant]]\ngroup = \"desk\"   # of support\nrole = \"viewer\"\ntenants = [\"*\"]\n";

/// Makes a token by the form.
async fn make(browser: &mut Browser, fields: &[(&str, &str)]) -> Answer {
    let form = browser.get(NEW).await;
    browser.submit(&form, NEW, fields).await
}

/// The token on a page.
fn token(page: &Answer) -> String {
    page.attribute("id=\"token\" value", "pn_")
}

/// The id of a token.
fn id(token: &str) -> &str {
    token.split('_').nth(1).unwrap()
}

async fn sign_in(site: &GuardedSite, token: &str) -> Browser {
    let mut browser = site.site.browser().await;
    let signed_in = browser.post("/console/sign-in", &[("token", token), ("next", "")]).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    browser
}

#[tokio::test]
async fn an_admin_makes_a_token_which_is_shown_once() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let command = |_: &Path| {
        let mut command = polynym(&["serve", "--log", "info"]);
        command.stderr(log.reopen().unwrap());
        command
    };
    let site = GuardedSite::start_by(&[("adam", "admin", "*")], PEOPLE, command, &[]);
    let mut adam = site.browser("adam").await;
    adam.get("/console/callers").await.assert_has(&["New token", ">Revoke<", ">Extend<"]);
    let form = adam.get(NEW).await;
    let fields = [("name", "vera"), ("role", "viewer"), ("tenants", "default, eu-*")];
    let fields = [&fields[..], &[("valid", "30d"), ("calls", "50")]].concat();
    let made = adam.submit(&form, NEW, &fields).await;
    assert_eq!((made.status, &*made.path), (200, NEW));
    assert_eq!(made.response.header("cache-control"), "no-store");
    let secret = token(&made);
    sign_in(&site, &secret).await.get("/console/").await.assert_has(&["Role: viewer"]);

    // The same form once more, as by a reload.
    let again = adam.submit(&form, NEW, &fields).await;
    again.assert_has(&["This form was sent before"]);
    assert!(again.status == 409 && !again.text.contains("pn_"), "{}", again.text);
    let file = fs::read_to_string(site.file()).unwrap();
    assert_eq!(file.matches("name = \"vera\"").count(), 1);
    assert!(file.contains("rate = { calls = 50 }") && file.contains(PEOPLE), "{file}");

    let log = fs::read_to_string(log.path()).unwrap();
    assert!(log.contains("created a token") && log.contains("adam"), "{log}");
    let proof = secret.splitn(3, '_').nth(2).unwrap();
    assert!(log.contains(id(&secret)) && !log.contains(proof) && !file.contains(proof), "{log}");
}

#[tokio::test]
async fn a_token_is_extended_and_revoked_with_its_sessions() {
    let site = GuardedSite::start(&[("adam", "admin", "*"), ("vera", "viewer", "*")]);
    let mut adam = site.browser("adam").await;
    let (mut first, vera) = (site.browser("vera").await, site.token("vera"));
    let further = adam.get(&format!("{NEW}?name=vera")).await;
    further.assert_has(&["<option value=\"viewer\" selected>"]);
    let fields = [("name", "vera"), ("role", "viewer"), ("tenants", "*"), ("valid", "7d")];
    let second = token(&adam.submit(&further, NEW, &fields).await);
    let mut other = sign_in(&site, &second).await;

    let chosen = format!("name=vera&token={}", id(vera));
    let form = adam.get(&format!("{EXTEND}?{chosen}")).await;
    form.assert_has(&["The token stays the same.", "expires"]);
    let extended = [("valid", "never"), ("reason", "ticket 12")];
    let listed = adam.submit(&form, EXTEND, &extended).await;
    listed.assert_has(&["The expiry is changed."]);
    let file = fs::read_to_string(site.file()).unwrap();
    assert_eq!(file.matches("expires = ").count(), 2, "{file}");

    let form = adam.get(&format!("{REVOKE}?{chosen}")).await;
    assert!(!form.text.contains("signs you out"), "{}", form.text);
    for _ in 0..2 {
        let listed = adam.submit(&form, REVOKE, &[("reason", "")]).await;
        listed.assert_has(&["The credentials are revoked"]);
        assert!(!listed.text.contains(id(vera)), "{}", listed.text);
    }
    first.get("/console/").await.assert_has(&["<h1>Sign in</h1>"]);
    other.get("/console/").await.assert_has(&["Role: viewer"]);
    // The loop that reads the file does not bring it back.
    sleep(Duration::from_secs(5)).await;
    let refused = first.post("/console/sign-in", &[("token", vera)]).await;
    assert_eq!(refused.status, 401);
    assert_eq!(adam.get(&format!("{REVOKE}?{chosen}")).await.status, 422);
    other.get("/console/").await.assert_has(&["Role: viewer"]);
}

#[tokio::test]
async fn revoking_the_own_token_says_so_and_signs_out() {
    let site = GuardedSite::start(&[("adam", "admin", "*"), ("vera", "viewer", "*")]);
    let mut adam = site.browser("adam").await;
    let form = adam.get(&format!("{REVOKE}?name=adam")).await;
    form.assert_has(&["revoking it signs you out", "No other token of an admin of all tenants"]);
    adam.submit(&form, REVOKE, &[]).await.assert_has(&["<h1>Sign in</h1>"]);
}

#[tokio::test]
async fn nobody_else_changes_credentials() {
    let callers = [
        ("adam", "admin", "*"),
        ("vera", "viewer", "*"),
        ("rita", "registrar", "*"),
        ("lena", "admin", "default,eu-*"),
    ];
    let site = GuardedSite::start(&callers);
    let before = fs::read(site.file()).unwrap();
    let request_id = Uuid::new_v4().to_string();
    let fields = [("name", "vera"), ("role", "viewer"), ("tenants", "*"), ("valid", "1d")];
    let fields = [&fields[..], &[("request_id", &*request_id)]].concat();
    for name in ["vera", "rita", "lena"] {
        let mut browser = site.browser(name).await;
        for page in [NEW, EXTEND, REVOKE, "/console/callers/sessions"] {
            let shown = browser.get(&format!("{page}?name=vera")).await;
            assert_eq!(shown.status, 403, "{name}: {page}");
        }
        for page in [NEW, EXTEND, REVOKE, "/console/callers/sessions/end"] {
            assert_eq!(browser.post(page, &fields).await.status, 403, "{name}: {page}");
        }
    }
    let mut adam = site.browser("adam").await;
    adam.headers = vec![("sec-fetch-site", "cross-site".to_owned())];
    for page in [NEW, EXTEND, REVOKE, "/console/callers/sessions/end"] {
        assert_eq!(adam.post(page, &fields).await.status, 403, "{page}");
    }
    assert_eq!(fs::read(site.file()).unwrap(), before);
}

#[tokio::test]
async fn wrong_fields_are_named_and_the_form_is_kept() {
    let site = GuardedSite::start(&[("adam", "admin", "*"), ("vera", "viewer", "eu-*")]);
    let mut adam = site.browser("adam").await;
    let before = fs::read(site.file()).unwrap();
    let good = [("name", "eve"), ("role", "viewer"), ("tenants", "*"), ("valid", "1d")];
    for (field, value, message) in [
        ("name", "Eve", "a-z, 0-9"),
        ("name", "vera", "vera has other credentials, with the role viewer for eu-*"),
        ("tenants", "a*b", "Tenants: "),
        ("tenants", " ", "Tenants: "),
        ("valid", "yesterday", "Valid for: "),
        ("calls", "0", "Calls per second: "),
        ("role", "root", "the role must be"),
    ] {
        let fields = good.iter().filter(|(name, _)| *name != field).copied();
        let fields: Vec<_> = fields.chain([(field, value)]).collect();
        let wrong = make(&mut adam, &fields).await;
        wrong.assert_has(&[message, "<h1>New token</h1>"]);
        assert_eq!(wrong.status, 422, "{field}");
    }
    let form = adam.get(&format!("{EXTEND}?name=vera")).await;
    assert_eq!(adam.submit(&form, EXTEND, &[("valid", "x")]).await.status, 422);
    assert_eq!(fs::read(site.file()).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_said_to_be_fixed() {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let command = |folder: &Path| {
        let polynym = program();
        let server = [polynym.to_str().unwrap(), "serve", "--log", "error"];
        if !is_root {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o500)).unwrap();
            let mut command = Command::new(server[0]);
            command.args(&server[1..]);
            return command;
        }
        // As a mounted secret: root may write everything else.
        let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", mount, folder.to_str().unwrap()]).args(server);
        command
    };
    let site = GuardedSite::start_by(&[("adam", "admin", "*")], "", command, &[]);
    let mut adam = site.browser("adam").await;
    let listed = adam.get("/console/callers").await;
    listed.assert_has(&["The credentials file cannot be changed", "polynym token"]);
    assert!(!listed.text.contains("New token") && !listed.text.contains(">Revoke"));
    let fields = [("name", "eve"), ("role", "viewer"), ("tenants", "*"), ("valid", "1d")];
    let refused = adam.post(NEW, &fields).await;
    refused.assert_has(&["The credentials file cannot be changed"]);
    assert_eq!(refused.status, 409);
    adam.get("/console/callers/sessions").await.assert_has(&["<span class=\"mark\">you</span>"]);
    let folder = site.file().parent().unwrap().to_owned();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn a_page_and_commands_lose_no_change_of_each_other() {
    let site = GuardedSite::start_with_text(&[("adam", "admin", "*")], PEOPLE, &[]);
    let mut adam = site.browser("adam").await;
    let file = site.file().to_str().unwrap().to_owned();
    let commands = thread::spawn(move || {
        for n in 0..8 {
            let name = format!("command-{n}");
            let options = ["--role", "viewer", "--credentials", &file];
            let arguments = [&["token", "create", &name][..], &options].concat();
            assert!(polynym(&arguments).output().unwrap().status.success());
        }
    });
    for n in 0..8 {
        let name = format!("page-{n}");
        let fields = [("name", &*name), ("role", "viewer"), ("tenants", "*"), ("valid", "1d")];
        token(&make(&mut adam, &fields).await);
    }
    commands.join().unwrap();
    let text = fs::read_to_string(site.file()).unwrap();
    for n in 0..8 {
        for by in ["command", "page"] {
            assert!(text.contains(&format!("name = \"{by}-{n}\"")), "{by}-{n}: {text}");
        }
    }
    assert!(text.contains(PEOPLE), "{text}");
    assert_eq!(fs::metadata(site.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let site = GuardedSite::start(&[("adam", "admin", "*"), ("vera", "viewer", "*")]);
    let mut adam = site.browser("adam").await;
    let mut others = Vec::new();
    for _ in 0..26 {
        others.push(site.browser("vera").await);
    }
    let listed = adam.get("/console/callers/sessions").await;
    listed.assert_has(&["<th scope=\"row\">vera</th>", "viewer", "127.0.0.1", "Last seen"]);
    let cookie = others[25].cookie("polynym_session").unwrap();
    assert!(!listed.text.contains(cookie), "{}", listed.text);
    assert_eq!(listed.text.matches("End session").count(), 25);
    let rest = adam.get(&listed.next_page()).await;
    rest.assert_has(&["adam <span class=\"mark\">you</span>"]);
    let newest = listed.attribute("name=\"session\" value", "");
    for _ in 0..2 {
        let ended = adam.post("/console/callers/sessions/end", &[("session", &newest)]).await;
        ended.assert_has(&["The session has ended."]);
    }
    others[25].get("/console/").await.assert_has(&["<h1>Sign in</h1>"]);
    others[24].get("/console/").await.assert_has(&["Role: viewer"]);
    let wrong = adam.post("/console/callers/sessions/end", &[("session", "1")]).await;
    assert_eq!(wrong.status, 422);
}
