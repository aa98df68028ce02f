//! The figures of the console with 200,000 users, on an idle machine:
//! `cargo test --release --test console long_figures -- --ignored --nocapture`.
//! `POLYNYM_CONSOLE_USERS` sets the number of users.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::json;
use testkit::output;
use testkit::server::program;

use crate::browser::{Answer, Browser, HOME, Site};

const GIVEN: [&str; 20] = [
    "Anna", "Ben", "Chloé", "Dmitri", "Eva", "Femi", "Grace", "Hiroshi", "Ines", "Jörg", "Kavya",
    "Liam", "Mia", "Noah", "Olga", "Priya", "Quentin", "Rosa", "Søren", "Tariq",
];
const FAMILY: [&str; 20] = [
    "Adeyemi", "Bauer", "Costa", "Dubois", "Eriksen", "Fischer", "García", "Hansen", "Ivanova",
    "Jensen", "Khan", "Lopez", "Müller", "Nakamura", "Okafor", "Patel", "Rossi", "Smith", "Tanaka",
    "Weiß",
];
/// Whole texts, of which each beginning is a search while they are typed.
const TYPED: [&str; 9] = [
    "Anna Müller",
    "weiss jorg",
    "Chloé Costa 1999",
    "person77123@example.com",
    "@person4242",
    "+49 151 20001234",
    "state = ACTIVE AND attributes.team = \"blue\"",
    "attributes.number >= 150000",
    "Quentin Zzz",
];

/// The time of a request in milliseconds, and its answer.
async fn timed(browser: &mut Browser, path: &str) -> (f64, Answer) {
    let began = Instant::now();
    let answer = browser.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    (began.elapsed().as_secs_f64() * 1_000.0, answer)
}

/// The value below which this part of the values is.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}

/// Runs a command of the client against the server. Returns the last object that it prints.
fn command(url: &str, arguments: &[&str]) -> serde_json::Value {
    let mut command = Command::new(program());
    let output = command.args(arguments).args(["--json", "--server", url]).output().unwrap();
    output::json(&output).pop().unwrap()
}

/// Imports people of 400 names, with an email, a handle, a phone number and two attributes each.
fn import_people(site: &Site, users: usize) {
    let people = (0..users).map(|n| {
        let identifiers = [
            json!({"email": format!("person{n}@example.com")}),
            json!({"handle": format!("person{n}")}),
            json!({"phone": {"number": format!("+4915120{n:06}")}}),
        ];
        let team = ["blue", "red", "green"][n % 3];
        let person = json!({
            "displayName": format!("{} {} {n}", GIVEN[n % 20], FAMILY[n / 20 % 20]),
            "identities": identifiers.map(|identifier| json!({"identifier": identifier})),
            "attributes": {
                "team": {"stringValue": team},
                "number": {"intValue": n.to_string()},
            },
        });
        format!("{person}\n")
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.jsonl");
    fs::write(&file, people.collect::<String>()).unwrap();
    let began = Instant::now();
    command(&site.server.url, &["import", file.to_str().unwrap()]);
    println!("import: {:.0} users a second", users as f64 / began.elapsed().as_secs_f64());
}

/// Each beginning of each text, as the script of the page sends it.
async fn results_as_you_type(site: &Site) {
    let mut browser = site.browser().await;
    browser.get(&format!("{HOME}/")).await;
    browser.headers.push(("hx-request", "true".to_owned()));
    let mut times = Vec::new();
    let mut slowest = (0.0, "");
    for text in TYPED {
        let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
        for typed in ends.map(|end| &text[..end]) {
            let began = Instant::now();
            let answer = browser.post(&format!("{HOME}/search"), &[("q", typed)]).await;
            assert_eq!(answer.status, 200, "{typed}");
            let time = began.elapsed().as_secs_f64() * 1_000.0;
            times.push(time);
            if time > slowest.0 {
                slowest = (time, typed);
            }
        }
    }
    let (half, most) = (quantile(&mut times, 0.5), quantile(&mut times, 0.95));
    println!(
        "as you type: {} texts, p50 {half:.1} ms, p95 {most:.1} ms, slowest {:.1} ms ({:?})",
        times.len(),
        slowest.0,
        slowest.1
    );
    assert!(most < 100.0, "p95 {most} ms");
}

/// The first page of a list beside its thousandth.
async fn pages_of_a_list(site: &Site, pages: usize) {
    let mut browser = site.browser().await;
    for filter in ["", "attributes.number >= 1000", "Anna"] {
        let mut list = browser.post(&format!("{HOME}/search"), &[("q", filter)]).await;
        let first = list.path.clone();
        let count = if filter == "Anna" { pages / 4 } else { pages };
        for _ in 1..count {
            list = browser.get(&list.next_page()).await;
        }
        let last = list.path.clone();
        let (mut at_first, mut at_last) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            at_first.push(timed(&mut browser, &first).await.0);
            at_last.push(timed(&mut browser, &last).await.0);
        }
        let (one, thousand) = (quantile(&mut at_first, 0.5), quantile(&mut at_last, 0.5));
        println!("{filter:?}: page 1 {one:.2} ms, page {count} {thousand:.2} ms");
        assert!(thousand <= one * 1.2, "page 1 {one} ms, page {count} {thousand} ms");
    }
}

/// The pages that an admin opens, by name.
async fn pages(browser: &mut Browser) -> Vec<(&'static str, String)> {
    let list = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    let columns = format!("{}/columns", list.path);
    let all = ["email", "handle", "phone", "identities", "state", "create_time", "update_time"];
    let chosen: Vec<_> =
        all.map(|name| ("column", name)).into_iter().chain([("size", "50")]).collect();
    let list = browser.post(&columns, &chosen).await;
    let words = browser.post(&format!("{HOME}/search"), &[("q", "Jörg Weiß")]).await;
    let identifier = browser.post(&format!("{HOME}/search"), &[("q", "@person4242")]).await;
    let user = list.attribute("href", &format!("{HOME}/users/"));
    let other = words.attribute("href", &format!("{HOME}/users/"));
    let id = other.rsplit('/').next().unwrap();
    let tenant =
        ["", "policies", "policies/attributes", "usage", "events", "bulk", "import", "duplicates"];
    let fixed = tenant.map(|page| (page, format!("{HOME}/{page}")));
    let mut pages = vec![
        ("50 users, seven columns", list.path),
        ("users by words", words.path),
        ("an identifier", identifier.path),
        ("a user", user.clone()),
        ("a history", format!("{user}/history")),
        ("the preview of a merge", format!("{user}/merge/{id}")),
        ("tenants", "/console/tenants".to_owned()),
        ("health", "/console/health".to_owned()),
    ];
    pages.extend(fixed);
    pages
}

async fn bytes_and_times(site: &Site) {
    let mut browser = site.browser().await;
    for (name, path) in pages(&mut browser).await {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..50 {
            let (time, answer) = timed(&mut browser, &path).await;
            times.push(time);
            bytes = answer.response.body.len();
        }
        let (half, most) = (quantile(&mut times, 0.5), quantile(&mut times, 0.95));
        println!("{name:26} {bytes:7} bytes, p50 {half:6.2} ms, p95 {most:6.2} ms");
        assert!(bytes < 100_000 && most < 50.0, "{name}: {bytes} bytes, p95 {most} ms");
    }
}

/// Admins who open a page each five seconds, until they are dropped.
fn admins(site: &Site, count: u32) -> tokio::task::JoinSet<()> {
    let mut admins = tokio::task::JoinSet::new();
    for n in 0..count {
        let url = site.url.clone();
        admins.spawn(async move {
            let mut browser = Browser::connect(&url).await;
            let pages = pages(&mut browser).await;
            tokio::time::sleep(Duration::from_secs(5) * n / count).await;
            let mut ticks = tokio::time::interval(Duration::from_secs(5));
            for (_, path) in pages.iter().cycle().skip(n as usize) {
                ticks.tick().await;
                browser.get(path).await;
            }
        });
    }
    admins
}

/// Names a second with 64 callers, in turns without and with 50 admins.
async fn beside_resolves(site: &Site) {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        alone.push(resolves(site).await);
        let admins = admins(site, 50);
        tokio::time::sleep(Duration::from_secs(3)).await;
        beside.push(resolves(site).await);
        drop(admins);
    }
    let (alone, beside) = (quantile(&mut alone, 0.5), quantile(&mut beside, 0.5));
    println!("resolves at 64: {alone:.0}/s, beside 50 admins {beside:.0}/s");
    assert!(beside >= alone * 0.9);
}

async fn resolves(site: &Site) -> f64 {
    let url = site.server.url.clone();
    let arguments = ["bench", "resolve", "--users", "100000", "--concurrency", "64"];
    let run = move || command(&url, &[&arguments[..], &["--duration", "10"]].concat());
    let report = tokio::task::spawn_blocking(run).await.unwrap();
    report["calls_per_second"].as_f64().unwrap_or_else(|| panic!("{report}"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes, and an idle machine"]
async fn long_figures_with_many_users() {
    let users = env::var("POLYNYM_CONSOLE_USERS").map_or(200_000, |text| text.parse().unwrap());
    let site = Site::start(&[]);
    import_people(&site, users);
    results_as_you_type(&site).await;
    pages_of_a_list(&site, 1_000.min(users / 50)).await;
    bytes_and_times(&site).await;
    beside_resolves(&site).await;
    println!("the server had {} MiB at most", site.peak_memory());
}
