//! The commands that pages show do what the pages do.

use std::process::Command;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Version};
use http_body_util::Full;

use crate::browser::{Answer, Browser, HOME, Site, path};
use testkit::http::HttpClient;
use testkit::output::stdout;
use testkit::server::program;

/// The commands of a page: of the command line, and of curl.
fn commands(page: &Answer) -> Vec<[String; 2]> {
    let parts = page.text.split("<summary>The same by command</summary>").skip(1);
    let codes = |part: &str| -> Vec<String> {
        let codes = part.split("<code>").skip(1).take(3);
        codes.map(|code| unescaped(code.split("</code>").next().unwrap())).collect()
    };
    let found = parts.map(codes).map(|codes| [codes[0].clone(), codes[1].clone()]);
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty(), "no commands at {}:\n{}", page.path, page.text);
    found
}

fn unescaped(html: &str) -> String {
    [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")]
        .iter()
        .fold(html.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Runs a script of a shell, in which `polynym` is the program, and `curl` prints its body and
/// address.
fn run(site: &Site, script: &str) -> String {
    let functions = "polynym() { \"$PROGRAM\" \"$@\"; }\n\
                     curl() { printf '%s\\n%s' \"$6\" \"$7\"; }";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{functions}\n{script}")])
        .env("PROGRAM", program())
        .env("POLYNYM_SERVER", &site.server.url)
        .env("POLYNYM_HTTP", "")
        .env("POLYNYM_TIMEOUT", "60s")
        .env("TOKEN", "none");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    stdout(&output)
}

async fn send(site: &Site, curl: &str) {
    let printed = run(site, curl);
    let (body, path) = printed.split_once('\n').unwrap();
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(Full::from(Bytes::from(body.to_owned()))).unwrap();
    let mut client = HttpClient::connect(&site.url, Version::HTTP_11).await;
    let response = client.send(request).await;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, 200, "{curl}\n{text}");
}

/// Runs the command of a page, then its call by curl.
pub async fn run_both(site: &Site, page: &Answer) {
    for [cli, curl] in commands(page) {
        run(site, &cli);
        send(site, &curl).await;
    }
}

#[tokio::test]
async fn the_commands_of_forms_work() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    for page in ["", "/link", "/name", "/purge", "/inbox", "/inbox/send"] {
        let page = browser.get(&format!("{joe}{page}")).await;
        run_both(&site, &page).await;
    }
    run_both(&site, &browser.get(&format!("{HOME}/users/new")).await).await;
    let team = browser.post(&format!("{joe}/attribute"), &[("attribute", "team")]).await;
    run_both(&site, &team).await;
    for (action, undo) in [("disable", "enable"), ("delete", "undelete")] {
        let page = browser.get(&format!("{joe}/{action}")).await;
        run(&site, &commands(&page)[0][0]);
        let page = browser.get(&format!("{joe}/{undo}")).await;
        send(&site, &commands(&page)[0][1]).await;
    }
    browser.get(&joe).await.assert_has(&["joe@example.com", "Inbox (2 unread)"]);
}

/// Links an identity to the user at a path.
async fn link(browser: &mut Browser, user: &str) {
    let path = format!("{user}/link");
    let form = browser.get(&path).await;
    let fields = [("kind", "email"), ("value", "joe@two.example")];
    browser.submit(&form, &path, &fields).await.assert_has(&["The identity was linked."]);
}

#[tokio::test]
async fn the_commands_of_an_identity_work() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    run(&site, "polynym identity link handle:grace handle:other");
    link(&mut browser, &joe).await;
    let open = [("identity", "email:joe@two.example")];
    let page = browser.post(&format!("{joe}/identity"), &open).await;
    let [verify, primary, replace, moving, unlink] = &commands(&page)[..] else {
        panic!("other commands at {}:\n{}", page.path, page.text);
    };
    for [cli, curl] in [verify, primary] {
        run(&site, cli);
        send(&site, curl).await;
    }
    run(&site, &moving[0]);
    run(&site, &unlink[0]);
    link(&mut browser, &joe).await;
    send(&site, &unlink[1]).await;
    link(&mut browser, &joe).await;
    run(&site, &replace[0]);
    browser.get(&joe).await.assert_has(&["new@example.com"]);
}
