//! Pages in other languages: no word is left in English.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use testkit::calls::{Client, email, handle, text, user};

use crate::browser::{Answer, Browser, HOME, Site};
use crate::bulk::ended;
use crate::importing::{settled, upload};
use crate::tokens::GuardedSite;

/// The most pages of one form, such as those of users.
const MAX_ALIKE: usize = 3;
/// The elements whose content is no words.
const WHOLE: [&str; 7] = ["code", "kbd", "pre", "script", "style", "svg", "textarea"];

/// Data that are words by chance: names of columns.
const OWN_WORDS: [&str; 2] = ["email", "name"];
/// Those of files: names of columns, and cells.
const OWN_WORDS_OF_FILES: [&str; 6] = ["admin", "deleted", "handle", "phone", "state", "url"];

/// What a page in the language of tests has outside of brackets, and what it asks for.
fn left(page: &str) -> BTreeSet<String> {
    let mut html = page.to_owned();
    for name in WHOLE {
        while let Some(begin) = html.find(&format!("<{name}")) {
            let end = format!("</{name}>");
            let length = html[begin..].find(&end).map_or(html.len() - begin, |at| at + end.len());
            html.replace_range(begin..begin + length, "");
        }
    }
    let mut texts = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        for name in ["title", "aria-label", "data-label", "placeholder", "alt", "label"] {
            let value = tag.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest);
            texts.extend(value.and_then(|rest| rest.split('"').next()));
        }
        texts.push(text);
    }
    texts.into_iter().flat_map(unknown).collect()
}

/// The words of a text that the catalogue does not have, and its data that are words.
fn unknown(text: &str) -> Vec<String> {
    let mut asked: Vec<_> = text.split('⁇').skip(1).step_by(2).map(str::to_owned).collect();
    let data = text.split('⟪').skip(1).filter_map(|rest| rest.split('⟫').next());
    let words = data.filter(|data| is_message(data)).map(|data| format!("as data: {data}"));
    asked.extend(words);
    let mut bare = String::new();
    let (mut depth, mut is_asked) = (0, false);
    for c in text.chars() {
        match c {
            '⟦' | '⟪' => depth += 1,
            '⟧' | '⟫' => depth -= 1,
            '⁇' => is_asked = !is_asked,
            c if depth == 0 && !is_asked => bare.push(c),
            _ => {}
        }
    }
    if bare.chars().any(char::is_alphabetic) {
        asked.push(format!("outside of brackets: {}", text.trim()));
    }
    asked
}

/// Whether data are a message of the catalogue: their template does not say that they are words.
fn is_message(data: &str) -> bool {
    static MESSAGES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let lines = include_str!("../../crates/console/words/de.txt").lines();
        lines.filter(|line| !line.starts_with(' ')).collect()
    });
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let numbered = |part| if digits(part) { "{n}" } else { part };
    let pattern = data.split(' ').map(numbered).collect::<Vec<_>>().join(" ");
    pattern != "{n}" && MESSAGES.contains(&*pattern) && !OWN_WORDS.contains(&data)
}

/// An address without ids, to tell pages of one form.
fn form_of(path: &str) -> String {
    let is_id = |part: &&str| part.len() > 14 || part.chars().any(|c| c.is_ascii_digit());
    path.split(['/', '?', '&', '=']).map(|p| if is_id(&p) { "*" } else { p }).collect()
}

fn links(page: &Answer) -> Vec<String> {
    let parts = page.text.split("href=\"").skip(1);
    let links = parts.filter_map(|part| part.split('"').next());
    let own = links.filter(|link| {
        let is_file = ["export", "/assets/", "/stream", ".csv", "rejects", "#"];
        link.starts_with("/console/") && !is_file.iter().any(|name| link.contains(name))
    });
    own.map(|link| link.replace("&#38;", "&").replace("&amp;", "&")).collect()
}

/// Visits the pages that lead from one to the other. Returns what they lack, by path.
async fn visit(browser: &mut Browser, first: &[Answer]) -> BTreeMap<String, String> {
    let (mut lacking, mut seen) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    let mut queue = Vec::new();
    let mut look = |page: &Answer, queue: &mut Vec<String>| {
        for words in left(&page.text) {
            lacking.entry(words).or_insert_with(|| page.path.clone());
        }
        queue.extend(links(page));
    };
    first.iter().for_each(|page| look(page, &mut queue));
    while let Some(path) = queue.pop() {
        let count = seen.entry(form_of(&path)).or_default();
        *count += 1;
        if *count <= MAX_ALIKE {
            let page = browser.get(&path).await;
            look(&page, &mut queue);
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
    lacking
}

#[tokio::test]
async fn no_word_is_left() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    let mut one = user("Zoé", vec![handle("zoe"), email("zoe@example.com")]);
    one.attributes.insert("team".to_owned(), text("red"));
    let id = client.create(one).await.unwrap().user_id;
    let deleted = client.create(user("Gone", Vec::new())).await.unwrap().user_id;
    client.delete(&deleted).await.unwrap();
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "x-brackets");
    let own = format!("{HOME}/users/{id}");
    let mut pages = vec![browser.get("/console/").await, browser.get(&own).await];
    for text in ["", "zoe", "@zoe", "@nobody-has-it", "zo", "state = X", "+1 415 555 2671"] {
        pages.push(browser.post(&format!("{HOME}/search"), &[("q", text)]).await);
    }
    for (path, fields) in [
        ("name", vec![("name", "Zo"), ("reason", "test")]),
        ("link", vec![("kind", "email"), ("value", "x")]),
        ("attributes", vec![("name", "n"), ("type", "int"), ("text", "x")]),
        ("merge", vec![("other", "nobody")]),
        ("purge", vec![("confirmation", "x")]),
        ("disable", vec![("reason", "test")]),
        ("enable", vec![]),
        ("inbox/send", vec![("subject", "")]),
        ("delete", vec![]),
        ("undelete", vec![]),
    ] {
        let form = browser.get(&format!("{own}/{path}")).await;
        let hidden = [("etag", ""), ("request_id", &*uuid::Uuid::new_v4().to_string())]
            .map(|(name, value)| (name, value.to_owned()));
        let all = fields.into_iter().map(|(name, value)| (name, value.to_owned())).chain(hidden);
        let all: Vec<_> = all.collect();
        let all: Vec<_> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
        pages.push(browser.post(&format!("{own}/{path}"), &all).await);
        pages.push(form);
    }
    let hook = format!("{HOME}/deliveries/of/hook");
    let form = browser.get(&format!("{HOME}/deliveries/new")).await;
    let secret = ("secrets", testkit::receiver::SECRET);
    for url in ["https://10.1.1.1/", "https://crm.example.com/"] {
        let typed = [("id", "hook"), ("url", url), ("type", "user_created"), secret];
        pages.push(browser.submit(&form, &format!("{HOME}/deliveries/new"), &typed).await);
    }
    pages.push(browser.post(&format!("{hook}/pause"), &[]).await);
    pages.push(browser.post(&format!("{hook}/resume"), &[]).await);
    pages.push(browser.post(&format!("{hook}/replay"), &[("from", "2020-01-01")]).await);
    pages.push(browser.post(&format!("{hook}/test"), &[]).await);
    assert_translated(visit(&mut browser, &pages).await);
}

fn assert_translated(lacking: impl IntoIterator<Item = (String, String)>) {
    let lines = lacking.into_iter().map(|(words, path)| format!("{words}\n    {path}"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.is_empty(), "words without a translation:\n{}", lines.join("\n"));
}

/// What these pages lack, with their paths.
fn lacking(pages: &[Answer]) -> BTreeMap<String, String> {
    let of = |page| left(page).into_iter();
    let all = pages.iter().flat_map(|page| of(&page.text).map(|words| (words, page.path.clone())));
    all.collect()
}

/// Work that goes on, that was stopped and that is done; merges, and what undoing them leads to.
#[tokio::test]
async fn no_word_is_left_of_work() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "x-brackets");
    let mut pages = Vec::new();

    let rows: String = (0..20_000).map(|n| format!("P {n},p{n}@example.com\n")).collect();
    let file = format!("name,email\n{rows}");
    let read = upload(&mut browser, "people.csv", file.as_bytes()).await;
    for step in ["dry-run", "run"] {
        let before = browser.get(&read.path).await;
        let running = browser.submit(&before, &format!("{}/{step}", read.path), &[]).await;
        let later = browser.get(&running.path).await;
        let stopped = browser.post(&format!("{}/stop", read.path), &[]).await;
        pages.extend([settled(&mut browser, stopped).await, before, running, later]);
    }
    let broken = upload(&mut browser, "list.xlsx", b"PK\x03\x04").await;
    pages.extend([read, broken]);

    let new = format!("{HOME}/bulk/new");
    let form = browser.get(&new).await;
    for filter in ["state = X", "", "handle = \"x"] {
        let fields = [("filter", filter), ("action", "disable"), ("reason", "test")];
        let tried = browser.submit(&form, &new, &fields).await;
        if !filter.is_empty() {
            pages.push(tried);
            continue;
        }
        let path = tried.path.split('?').next().unwrap().to_owned();
        let tried = ended(&mut browser, &path).await;
        let applied = browser.submit(&tried, &format!("{path}/apply"), &[]).await;
        let own = applied.path.split('?').next().unwrap().to_owned();
        let done = ended(&mut browser, &own).await;
        let stopped = browser.post(&format!("{own}/stop"), &[]).await;
        let undone = format!("{HOME}/operations/{}/undo", own.rsplit('/').next().unwrap());
        let preview = browser.get(&undone).await;
        let undone = browser.submit(&preview, &undone, &[]).await;
        pages.extend([tried, applied, stopped, done, preview, undone]);
    }

    let mut ids = Vec::new();
    for name in ["zoe", "zoey"] {
        let own = vec![handle(name), email(&format!("zoe.lee+{name}@example.com"))];
        ids.push(client.create(user("Zoé Lee", own)).await.unwrap().user_id);
    }
    let [one, other] = [&ids[0], &ids[1]].map(|id| format!("{HOME}/users/{id}"));
    let merge = format!("{one}/merge/{}", ids[1]);
    let preview = browser.get(&merge).await;
    let merged = browser.submit(&preview, &merge, &[]).await;
    let unmerge = format!("{one}/unmerge/{}", ids[1]);
    let undo = browser.get(&unmerge).await;
    let undone = browser.submit(&undo, &unmerge, &[]).await;
    let again = browser.submit(&undo, &unmerge, &[]).await;
    let path = format!("{other}/name");
    let form = browser.get(&path).await;
    let renamed = browser.submit(&form, &path, &[("name", "Zoe Lee")]).await;
    let lists = browser.post(&format!("{HOME}/duplicates"), &[("min_score", "30")]).await;
    let wrong = browser.post(&format!("{HOME}/duplicates"), &[("min_score", "x")]).await;
    pages.extend([preview, merged, undo, undone, again, renamed, lists, wrong]);
    for path in ["", "/history", "/inbox"] {
        pages.push(browser.get(&format!("{one}{path}")).await);
    }
    for text in ["zoe.lee+zoe@example.com", "@zoe", "state = ACTIVE"] {
        pages.push(browser.post(&format!("{HOME}/search"), &[("q", text)]).await);
    }
    assert_translated(lacking(&pages));
}

/// Signing in, its errors, and pages that a role may not open.
#[tokio::test]
async fn no_word_is_left_of_signing_in() {
    let guarded = GuardedSite::start(&[("vera", "viewer", "default"), ("adam", "admin", "*")]);
    let mut browser = guarded.site.browser().await;
    browser.set_cookie("polynym_language", "x-brackets");
    let path = "/console/sign-in";
    let mut pages = vec![browser.get("/console/").await];
    pages.push(browser.post(path, &[("token", "pn_wrong")]).await);
    pages.push(browser.post(&format!("{HOME}/search"), &[("q", "zoe")]).await);
    let token = guarded.token("vera").to_owned();
    pages.push(
        browser.post(path, &[("token", &token), ("kept", "q=zoe"), ("next", "/console/")]).await,
    );
    for path in ["/console/callers", "/console/t/other/", "/console/t/default/import", "/console/x"]
    {
        pages.push(browser.get(path).await);
    }
    assert_translated(lacking(&pages));
}

#[tokio::test]
async fn the_language_is_that_of_the_browser_or_the_chosen_one() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    browser.get("/console/").await.assert_has(&["<html lang=\"en\"", "Who is this?"]);
    browser.headers.push(("accept-language", "de-AT,de;q=0.9,en;q=0.8".to_owned()));
    browser.get("/console/").await.assert_has(&["<html lang=\"de\"", "Wer ist das?"]);
    let chosen = [("language", "en"), ("next", "/console/")];
    browser.post("/console/preferences", &chosen).await.assert_has(&["Who is this?"]);
    let wrong = [("language", "xx"), ("next", "/console/")];
    browser.post("/console/preferences", &wrong).await.assert_has(&["Who is this?"]);
}

/// Rejected rows say what is wrong with them in the language.
#[tokio::test]
async fn no_word_is_left_of_rejected_rows() {
    let site = Site::start(&["--sample"]);
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "x-brackets");
    client.create(user("Zoé", vec![handle("zoe"), email("zoe@example.com")])).await.unwrap();
    let mut pages = Vec::new();
    for (name, text) in [
        (
            "emails.csv",
            "name,email\nA,a@@example.org\nB,b@\nC,c d@example.org\nD,zoe@example.com\n\
             E,@example.org\nF,f@example..org\n",
        ),
        ("handles.csv", "name,handle\nA,zoe\nB,b b\nC,admin\nD,d@@\nE,z0e\nF,\u{437}oe\n"),
        (
            "phones.csv",
            "name,phone\nA,+1 2\nB,12\nC,+999 123456789\nD,+43 1 5123456 abc\n\
             E,+14155552671123456\n",
        ),
        (
            "times.csv",
            "name,email,create_time\nA,ta@example.org,soon\nB,tb@example.org,2026-13-45\n\
             C,tc@example.org,2026-01-01T12:00\nD,td@example.org,01/02/26\n",
        ),
        ("states.csv", "name,email,state\nA,sa@example.org,gone\nB,sb@example.org,deleted\n"),
        ("urls.csv", "name,url\nA,not a url\nB,ftp://x\nC,https://\n"),
        ("cells.csv", "name,email\nA,a@example.org,more,than\nB\nC,\"c@example.org\n"),
        ("ids.csv", "user_id,name,email\nx,A,ia@example.org\n123,B,ib@example.org\n"),
        (
            "lines.jsonl",
            "{\nnonsense\n[]\n{\"displayName\":\"a\",\"displayName\":\"b\"}\n{\"userId\":\"x\"}\n\
             {\"identities\":[{\"identifier\":{\"email\":\"x\"}}]}\n\
             {\"identities\":[{\"identifier\":{\"email\":\"zoe@example.com\"}}]}\n",
        ),
    ] {
        let read = upload(&mut browser, name, text.as_bytes()).await;
        pages.push(browser.get(&read.path).await);
        let is_readable = true;
        assert_eq!(read.text.contains("/dry-run\""), is_readable, "{name}");
        if is_readable {
            let tried = browser.submit(&read, &format!("{}/dry-run", read.path), &[]).await;
            pages.push(settled(&mut browser, tried).await);
        }
        pages.push(read);
    }
    let is_own = |words: &str| {
        words.strip_prefix("as data: ").is_some_and(|word| OWN_WORDS_OF_FILES.contains(&word))
    };
    assert_translated(lacking(&pages).into_iter().filter(|(words, _)| !is_own(words)));
}

#[tokio::test]
async fn a_word_is_translated_as_its_element_needs_it() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "de");
    browser.get(&format!("{HOME}/bulk/new")).await.assert_has(&[">Zahl</option>"]);
}

#[tokio::test]
async fn data_are_not_translated() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let name = "Delete active <b>";
    let id = client.create(user(name, vec![handle("active")])).await.unwrap().user_id;
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "de");
    let page = browser.get(&format!("{HOME}/users/{id}")).await;
    page.assert_has(&["Delete active &#60;b&#62; <span class=\"state active\">aktiv</span>"]);
    page.assert_has(&[">active</th>"]);
    assert!(!page.text.contains(['\u{fdd0}', '\u{fdd1}', '\u{fdd2}', '\u{fdd3}']), "marks");
}

#[tokio::test]
async fn changes_name_fields_in_the_language_and_attributes_as_they_are() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut one = user("active", vec![handle("zoe")]);
    one.attributes.insert("hold".to_owned(), text("deleted"));
    let id = client.create(one).await.unwrap().user_id;
    let mut browser = site.browser().await;
    browser.set_cookie("polynym_language", "de");
    let page = browser.get(&format!("{HOME}/users/{id}/history")).await;
    page.assert_has(&[">Anzeigename</th>", ">Zustand</th>", ">Identität</th>", ">hold</th>"]);
    page.assert_has(&[">aktiv</td>", ">active</td>", ">deleted</td>"]);
}
