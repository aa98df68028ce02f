//! The bounds of imports: rows, files, sessions, roles, memory.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use super::{BOUNDARY, IMPORT, act, count, count_of, form, send, settled, upload};
use crate::browser::{HOME, Site};
use crate::tokens::GuardedSite;

#[tokio::test]
async fn rows_that_are_too_long_are_rejected_alone() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let long = "x".repeat(5 << 20);
    let text = format!("email,display_name\na@example.com,{long}\nb@example.com,Ben\n");
    let page = upload(&mut browser, "long.csv", text.as_bytes()).await;
    page.assert_has(&["a row has at most 4194304 bytes", "Rows with errors: 1 of 2"]);
    assert!(page.text.len() < 100_000, "{} bytes", page.text.len());
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (1, 1));

    let line = r#"{"identities":[{"identifier":{"email":"c@example.com"}}]}"#;
    let text = format!("{{\"displayName\":\"{long}\"}}\n{line}\nnonsense\n");
    let page = upload(&mut browser, "users.jsonl", text.as_bytes()).await;
    page.assert_has(&[
        "Lines with errors: 2 of 3",
        "at most 4 MiB are allowed",
        "is not JSON",
        "curl",
    ]);
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (1, 2));
    let rejects = browser.get(&format!("{}/rejects", page.path)).await;
    rejects.assert_has(&["\"reason\":\"LINE_INVALID\"", "\"original\":\"nonsense\""]);
}

#[tokio::test]
async fn many_columns_have_pages() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let header: Vec<_> = (0..99).map(|n| format!("{}{n}", "long name ".repeat(20))).collect();
    let row = vec!["y".repeat(2_000); 99].join(",");
    let text = format!("email,{}\na@example.com,{row}\n", header.join(","));
    let page = upload(&mut browser, "wide.csv", text.as_bytes()).await;
    page.assert_has(&["100 columns", "Next columns", "field_24"]);
    assert!(!page.text.contains("field_25") && page.text.len() < 100_000, "{}", page.text.len());
    let next = act(&mut browser, &page, "columns", &[("from", "25")]).await;
    next.assert_has(&["field_25", "field_49", "Previous columns"]);
}

#[tokio::test]
async fn a_session_has_twenty_files_and_each_form_uploads_one() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let id = browser.get(IMPORT).await.hidden_fields(IMPORT)[0].1.clone();
    for _ in 0..2 {
        send(&mut browser, &id, "one.csv", b"email\na@example.com\n").await;
    }
    let list = browser.get(IMPORT).await;
    assert_eq!(list.text.matches(">one.csv</a>").count(), 1, "{}", list.text);

    // Two forms at once, of two windows of one browser.
    let mut other = site.browser().await;
    other.steal(&browser);
    let one = send(&mut browser, "1", "two.csv", b"email\nb@example.com\n");
    let two = send(&mut other, "2", "three.csv", b"email\nc@example.com\n");
    let (one, two) = tokio::join!(one, two);
    assert_ne!(one.path, two.path);
    for n in 4..=20 {
        upload(&mut browser, &format!("{n}.csv"), b"email\nd@example.com\n").await;
    }
    browser.get(IMPORT).await.assert_has(&["Your session has 20 files"]);
    let content = [&b"email\n"[..], &vec![b'x'; 3 << 20]].concat();
    let further = send(&mut browser, "21", "further.csv", &content).await;
    further.assert_has(&["A session has at most 20 files: remove one first."]);
    assert_eq!(further.status, 422);
    browser.post(&format!("{}/remove", one.path), &[]).await;
    assert_eq!(browser.get(&one.path).await.status, 404);
    upload(&mut browser, "one.more.csv", b"email\ne@example.com\n")
        .await
        .assert_has(&["one.more.csv"]);

    let other_tenant = two.path.replace("/t/default/", "/t/other/");
    assert_eq!(browser.get(&other_tenant).await.status, 404);
    let mut stranger = site.browser().await;
    stranger.get("/console/").await;
    assert_eq!(stranger.get(&two.path).await.status, 404);
}

#[tokio::test]
async fn uploads_that_break_off_leave_nothing() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    browser.get(IMPORT).await;
    let others = open_files(&site);
    let cookie = browser.cookie("polynym_session").unwrap().to_owned();
    let host = site.url.trim_start_matches("http://").to_owned();
    let body = form("x", "half.csv", &vec![b'x'; 3 << 20]);
    for _ in 0..8 {
        let mut stream = TcpStream::connect(&host).unwrap();
        let head = format!(
            "POST {IMPORT} HTTP/1.1\r\nhost: {host}\r\ncookie: polynym_session={cookie}\r\n\
             content-type: multipart/form-data; boundary={BOUNDARY}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body[..2 << 20]).unwrap();
    }
    // A form with the same id is accepted once the server has noticed.
    while send(&mut browser, "x", "whole.csv", b"email\na@example.com\n").await.status != 200 {}
    while open_files(&site) > others + 1 {
        tokio::task::yield_now().await;
    }
    browser.post("/console/sign-out", &[]).await;
    while open_files(&site) > others {
        tokio::task::yield_now().await;
    }
}

/// The files without a name that a server has open.
fn open_files(site: &Site) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", site.server.id())).unwrap();
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().ends_with("(deleted)")).count()
}

#[tokio::test]
async fn a_stopped_import_goes_on_where_it_was() {
    const ROWS: u64 = 3_000;
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let rows = (0..ROWS).map(|n| format!("user{n}@example.org,User {n}\n"));
    let text = format!("email,display_name\n{}", rows.collect::<String>());
    let page = upload(&mut browser, "many.csv", text.as_bytes()).await;
    let dry = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!(count(&dry, "New users"), ROWS);
    let run = format!("{}/run", dry.path);
    browser.submit(&dry, &run, &[]).await;
    browser.post(&format!("{}/stop", dry.path), &[]).await;
    let stopped = browser.get(&dry.path).await;
    let stopped = settled(&mut browser, stopped).await;
    let first = count_of(&stopped, "imported", "New users");
    assert!(first <= ROWS);
    if !stopped.text.contains(">Import</button>") {
        // It was done before it could be stopped.
        return assert_eq!(first, ROWS);
    }
    let finished = act(&mut browser, &stopped, "run", &[]).await;
    finished.assert_has(&["<h2 id=\"imported\">Imported</h2>"]);
    let result = |name| count_of(&finished, "imported", name);
    // Lines may have been imported whose answers came too late.
    assert_eq!(result("New users") + result("Unchanged users"), ROWS);
    assert!(result("Unchanged users") >= first, "{first}");
}

/// Nothing is kept for each line, row or cell of a file.
#[tokio::test]
async fn files_of_line_feeds_and_separators_take_little_memory() {
    const BYTES: usize = 12 << 20;
    const MOST: u64 = 64;
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let mut before = site.peak_memory();
    // The first is a usual one.
    for (name, start, part, shown) in [
        ("usual", "email\n", "anna@example.com\n", "rows, the first in line 3, have an email"),
        ("blank", "", "\n", "the file is empty"),
        ("blank.jsonl", "", "\n", "the file is empty"),
        ("header", "email\n", "\n", "0 rows"),
        ("returns", "email\r\n", "\r\n", "0 rows"),
        ("quoted", "email\n\"", "x\n", "a row exceeds 6 MiB"),
        ("cells", "email\n", ",", "more than 100,000 cells"),
    ] {
        let content = format!("{start}{}", part.repeat(BYTES / part.len()));
        let page = upload(&mut browser, name, content.as_bytes()).await;
        page.assert_has(&[shown]);
        browser.post(&format!("{}/remove", page.path), &[]).await;
        let more = site.peak_memory() - before;
        println!("{name}: {more} MiB more");
        if name == "usual" {
            before += more;
        } else {
            assert!(more < MOST, "{name}: {more} MiB more");
        }
    }
}

#[tokio::test]
async fn only_admins_import() {
    let site = GuardedSite::start(&[("ana", "registrar", "*")]);
    let mut browser = site.browser("ana").await;
    let home = browser.get(&format!("{HOME}/")).await;
    assert!(!home.text.contains(">Import</a>"), "{}", home.text);
    assert_eq!(browser.get(IMPORT).await.status, 403);
    let sent = send(&mut browser, "1", "a.csv", b"email\na@example.com\n").await;
    sent.assert_has(&["needs the role admin"]);
    assert_eq!(browser.post(&format!("{IMPORT}/1/run"), &[]).await.status, 403);
}

#[tokio::test]
#[ignore = "it takes minutes"]
async fn long_a_large_file_takes_bounded_memory() {
    const ROWS: u64 = 200_000;
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let rows = (0..ROWS).map(|n| {
        let email =
            if n % 10 == 0 { "nobody@@example".to_owned() } else { format!("p{n}@example.org") };
        format!("{email},Person {n},{}\n", "text ".repeat(20))
    });
    let text = format!("email,display_name,attributes.note\n{}", rows.collect::<String>());
    let before = site.peak_memory();
    let page = upload(&mut browser, "large.csv", text.as_bytes()).await;
    page.assert_has(&["200000 rows", "Rows with errors: 20000 of 200000"]);
    let read = site.peak_memory();
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (180_000, 20_000));
    let checked = site.peak_memory();
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!(count_of(&page, "imported", "New users"), 180_000);
    println!(
        "MiB: {before} before, {read} read, {checked} checked, {} imported",
        site.peak_memory()
    );
    assert!(checked - before < 150, "{before} MiB, then {checked} MiB");
}
