//! `polynym apply` and `polynym get`: tenants as files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json as value};
use tempfile::TempDir;

use crate::server::{Server, polynym};
use crate::support::doc_examples::{parse, shell};
use crate::{assert_fails, json, stderr, stdout};

const PAGE: &str = "docs/configuration-as-code.md";

/// A server with a store of its own.
fn start() -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    (Server::start(&["--create", "--store", &store]), folder)
}

/// Writes a file into a folder.
fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn apply(server: &Server, path: &Path, more: &[&str]) -> Output {
    server.run(&[&["apply", "-f", path.to_str().unwrap()][..], more].concat())
}

/// Applies a file, and returns the last line of the output.
fn applied(server: &Server, path: &Path) -> String {
    let output = apply(server, path, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().last().unwrap().to_owned()
}

/// Starts `apply`, and returns it when it has printed its first line and waits with the others: the
/// pipe is full.
fn paused(server: &Server, path: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = polynym(&["apply", "-f", path.to_str().unwrap()])
        .env("POLYNYM_SERVER", &server.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.contains("tenant t0"), "{first}");
    (child, lines)
}

/// A file whose differences are more than a pipe holds.
fn large_file() -> String {
    let handles: Vec<_> = (0..1_000).map(|n| format!("reserved-by-the-file-{n}")).collect();
    let handles = handles.join(", ");
    let tenant = |n| format!("  - name: t{n}\n    reserved_handles: [{handles}]\n");
    format!("tenants:\n{}", (0..4).map(tenant).collect::<String>())
}

/// The tenants of a server by name, as `polynym get` prints them.
fn tenants(server: &Server) -> BTreeMap<String, Value> {
    let file = json(&server.run(&["get", "-o", "json"])).pop().unwrap();
    let tenants = file["tenants"].as_array().unwrap().iter();
    tenants.map(|one| (one["name"].as_str().unwrap().to_owned(), one.clone())).collect()
}

const FILE: &str = "\
tenants:
  - name: acme
    policies: {verified_wins: true, inbox_limit: 5}
    holds: {email: 7d, handle: 0d}
    reserved_handles: [Root, admin]
    attribute_definitions:
      - {name: level, type: int}
  - name: default
    policies: {restore_window: 12h}
  - name: beta
";

#[test]
fn an_empty_store_and_a_used_one_come_to_the_same_state() {
    let ((empty, folder), (used, _used_folder)) = (start(), start());
    let path = write(folder.path(), "all.yaml", FILE);
    for command in [
        &["tenant", "set", "--tenant", "acme", "--create", "--undo-window", "1d"][..],
        &["tenant", "set", "--tenant", "acme", "--hold", "phone=3d", "--reserved-handles", "x1"],
        &["attribute", "define", "bio", "--tenant", "acme", "--type", "time", "--no-wait"],
        &["tenant", "set", "--rule-notices", "on"],
        &["user", "create", "--identity", "handle:ann"],
        &["tenant", "set", "--tenant", "own", "--create", "--verified-wins", "on"],
    ] {
        let output = used.run(command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    assert_eq!(applied(&empty, &path), "tenants: 3 created, 0 updated, 0 deleted, 0 unchanged");
    assert_eq!(applied(&used, &path), "tenants: 1 created, 2 updated, 0 deleted, 0 unchanged");

    let mut of_used = tenants(&used);
    let own = of_used.remove("own").unwrap();
    assert_eq!(own["policies"]["verified_wins"], true, "a tenant that the file does not name");
    assert_eq!(tenants(&empty), of_used);
    assert_eq!(of_used["acme"]["reserved_handles"], value!(["admin", "root"]));
    assert_eq!(of_used["acme"]["holds"]["handle"], "0d");
    let level = &of_used["acme"]["attribute_definitions"][0];
    assert_eq!((&level["name"], &level["type"]), (&value!("level"), &value!("int")));

    for server in [&empty, &used] {
        let before = stdout(&server.run(&["tenant", "history", "--tenant", "acme", "--json"]));
        let unchanged = "tenants: 0 created, 0 updated, 0 deleted, 3 unchanged";
        assert_eq!(applied(server, &path), unchanged);
        let after = stdout(&server.run(&["tenant", "history", "--tenant", "acme", "--json"]));
        assert_eq!(before, after, "the second run has changed something");
        assert!(before.contains("\"operationId\":\"apply-"), "{before}");
    }
}

#[test]
fn a_dry_run_shows_the_differences_and_has_a_status() {
    let (server, folder) = start();
    let path = write(folder.path(), "all.json", r#"{"tenants": [{"name": "acme"}]}"#);
    let dry = apply(&server, &path, &["--dry-run"]);
    assert_fails(&dry, 2, &[]);
    let text = "+ tenant acme\ntenants: 1 to create, 0 to update, 0 to delete, 0 unchanged\n";
    assert_eq!((stdout(&dry).as_str(), stderr(&dry).as_str()), (text, ""));
    assert!(tenants(&server).is_empty(), "a dry run has created a tenant");

    applied(&server, &path);
    let dry = apply(&server, &path, &["--dry-run"]);
    assert_eq!(dry.status.code(), Some(0), "{}", stdout(&dry));

    let set = ["tenant", "set", "--tenant", "acme", "--undo-window", "1h", "--hold", "url=1d"];
    assert!(server.run(&set).status.success());
    let dry = apply(&server, &path, &["--dry-run", "--json"]);
    assert_fails(&dry, 2, &[]);
    let lines: Vec<Value> =
        stdout(&dry).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let differences = value!([
        { "path": "holds.url", "before": "1d", "after": "0d" },
        { "path": "undo_window", "before": "1h", "after": "7d" },
    ]);
    let step = value!({ "tenant": "acme", "action": "update", "differences": differences });
    assert_eq!(lines[0], step);
    assert_eq!((&lines[1]["updated"], &lines[1]["dryRun"]), (&value!(1), &value!(true)));
    assert_eq!(tenants(&server)["acme"]["policies"]["undo_window"], "1h");
    let unreachable = polynym(&["apply", "--dry-run", "-f", path.to_str().unwrap()])
        .env("POLYNYM_SERVER", "http://127.0.0.1:9")
        .output()
        .unwrap();
    assert_fails(&unreachable, 1, &["cannot reach"]);
}

#[test]
fn all_faults_of_all_files_are_reported_and_nothing_is_changed() {
    let (server, folder) = start();
    let path = |name: &str| folder.path().join("files").join(name).display().to_string();
    fs::create_dir(folder.path().join("files")).unwrap();
    let good = "tenants:\n  - name: acme\n    policies:\n      undo_window: 9d\n";
    let bad = "tenants:\n  - name: acme\n    policies:\n      undo_wind: 1d\n      \
               inbox_limit: 10001\n      rule_notices: 7\n";
    for (name, text) in
        [("a.yaml", good), ("b.yml", bad), ("c.json", "{\"tenants\": [}"), (".d.yaml", "x: 1")]
    {
        fs::write(path(name), text).unwrap();
    }
    let output = apply(&server, &folder.path().join("files"), &[]);
    let (a, b) = (path("a.yaml"), path("b.yml"));
    let expected = [
        format!("error: {b}:2:11: tenant acme is described at {a}:2:11, too"),
        format!("error: {b}:4:7: undo_wind: unknown key; did you mean undo_window?"),
        format!("error: {b}:5:20: write a number from 1 to 10000"),
        format!("error: {b}:6:21: write true or false"),
        format!("error: {}:1:", path("c.json")),
        "nothing was changed".to_owned(),
    ];
    let parts: Vec<_> = expected.iter().map(String::as_str).collect();
    assert_fails(&output, 1, &parts);
    assert_eq!(stderr(&output).lines().count(), expected.len(), "{}", stderr(&output));

    let missing = apply(&server, &folder.path().join("none.yaml"), &[]);
    assert_fails(&missing, 1, &["none.yaml: No such file"]);
    let large = write(folder.path(), "large.yaml", &"#".repeat((8 << 20) + 1));
    assert_fails(&apply(&server, &large, &[]), 1, &["more than 8 MiB"]);
    let deep = write(folder.path(), "deep.yaml", &"[".repeat(100_000));
    assert_fails(&apply(&server, &deep, &[]), 1, &["deep.yaml:1:"]);
    assert!(tenants(&server).is_empty());

    // The name is not in normalisation form C, which the server checks.
    let text =
        format!("{good}  - name: beta\n    attribute_definitions: [{{name: \"e\u{301}\"}}]\n");
    let rejected = write(folder.path(), "rejected.yaml", &text);
    let position = format!("{}:6:5: ", rejected.display());
    assert_fails(&apply(&server, &rejected, &[]), 1, &[&position, "normalisation form C"]);
    assert!(tenants(&server).is_empty(), "the first tenant was created");
}

/// A change by somebody else between the comparison and the call is not overwritten unseen.
#[test]
fn a_change_meanwhile_is_compared_again() {
    let (server, folder) = start();
    let path = write(folder.path(), "all.yaml", &large_file());
    for tenant in ["t0", "t1"] {
        assert!(server.run(&["tenant", "set", "--tenant", tenant, "--create"]).status.success());
    }
    let (child, mut lines) = paused(&server, &path);
    for tenant in ["t0", "t2"] {
        let set = ["tenant", "set", "--tenant", tenant, "--create", "--verified-wins", "on"];
        assert!(server.run(&set).status.success());
    }
    let mut shown = String::new();
    lines.read_to_string(&mut shown).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = stderr(&output);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("t0 was changed meanwhile"), "{errors}");
    assert!(errors.contains("t2 was changed meanwhile"), "{errors}");
    assert!(!errors.contains("t1") && !errors.contains("t3"), "{errors}");
    assert_eq!(shown.matches("verified_wins: on -> off").count(), 2, "{shown}");
    let unchanged = "tenants: 0 created, 0 updated, 0 deleted, 4 unchanged";
    assert_eq!(applied(&server, &path), unchanged);
    assert!(tenants(&server).values().all(|one| one["policies"]["verified_wins"] == false));
}

#[test]
fn two_at_once_leave_each_tenant_as_one_of_them_describes_it() {
    let (server, folder) = start();
    let file = |undo: &str, limit: u32, hold: &str| {
        let tenant = |n| {
            format!(
                "  - name: t{n}\n    policies: {{undo_window: {undo}, inbox_limit: {limit}}}\n    \
                 holds: {{email: {hold}}}\n"
            )
        };
        format!("tenants:\n{}", (0..20).map(tenant).collect::<String>())
    };
    let one = write(folder.path(), "one.yaml", &file("1d", 1, "1d"));
    let two = write(folder.path(), "two.yaml", &file("2d", 2, "2d"));
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let runs = [&one, &two].map(|path| scope.spawn(|| apply(&server, path, &[])));
            for run in runs {
                let output = run.join().unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
            }
        });
        let states = tenants(&server);
        assert_eq!(states.len(), 20);
        for (name, state) in states {
            let values = [
                &state["policies"]["undo_window"],
                &state["policies"]["inbox_limit"],
                &state["holds"]["email"],
            ];
            let is_first = values == [&value!("1d"), &value!(1), &value!("1d")];
            let is_second = values == [&value!("2d"), &value!(2), &value!("2d")];
            assert!(is_first || is_second, "{name}: {state}");
        }
    }
}

#[test]
fn a_killed_run_is_finished_by_the_next() {
    const TENANTS: usize = 400;
    let (server, folder) = start();
    let tenant = |n| format!("  - name: t{n}\n    policies: {{undo_window: 3d, inbox_limit: 3}}\n");
    let text = format!("tenants:\n{}", (0..TENANTS).map(tenant).collect::<String>());
    let path = write(folder.path(), "all.yaml", &text);
    let mut child = polynym(&["apply", "-f", path.to_str().unwrap()])
        .env("POLYNYM_SERVER", &server.url)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while tenants(&server).len() < 5 {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let states = tenants(&server);
    assert!(states.len() < TENANTS, "the run had finished");
    for state in states.values() {
        let values = [&state["policies"]["undo_window"], &state["policies"]["inbox_limit"]];
        let is_new = values == [&value!("7d"), &value!(1000)];
        let is_done = values == [&value!("3d"), &value!(3)];
        assert!(is_new || is_done, "{state}");
    }
    let last = applied(&server, &path);
    let created: usize = last.split(' ').nth(1).unwrap().parse().unwrap();
    // The call that was sent last may have been answered later.
    assert!((1..=TENANTS - states.len()).contains(&created), "{last}");
    let all = tenants(&server);
    assert_eq!(all.len(), TENANTS);
    assert!(all.values().all(|state| state["policies"]["undo_window"] == "3d"));
}

#[test]
fn a_reader_that_leaves_stops_no_change() {
    let (server, folder) = start();
    let path = write(folder.path(), "tenants.yaml", &large_file());
    let (mut child, lines) = paused(&server, &path);
    drop(lines);
    assert!(child.wait().unwrap().success());
    let all = tenants(&server);
    assert!((0..4).all(|n| all.contains_key(&format!("t{n}"))), "{all:?}");
}

#[test]
fn tenants_are_deleted_only_by_name_and_without_users() {
    let (server, folder) = start();
    let path = write(folder.path(), "all.yaml", "tenants: [{name: acme}]\n");
    for name in ["old", "full", "acme"] {
        let set = ["tenant", "set", "--tenant", name, "--create", "--verified-wins", "on"];
        assert!(server.run(&set).status.success());
    }
    let user = ["user", "create", "--tenant", "full", "--identity", "handle:ann"];
    assert!(server.run(&user).status.success());

    for (name, rule) in [("default", "never deleted"), ("acme", "the files describe this tenant")] {
        assert_fails(&apply(&server, &path, &["--prune", name]), 1, &[rule]);
    }
    let full = apply(&server, &path, &["--prune", "old", "--prune", "full"]);
    assert_fails(&full, 1, &["TENANT_NOT_EMPTY"]);
    let states = tenants(&server);
    assert_eq!(states.len(), 3, "nothing is deleted");
    assert_eq!(states["acme"]["policies"]["verified_wins"], true, "nothing is changed");

    let dry = apply(&server, &path, &["--prune", "old", "--prune", "absent", "--dry-run"]);
    assert_fails(&dry, 2, &[]);
    let shown = stdout(&dry);
    assert!(shown.contains("- tenant old\n") && !shown.contains("absent"), "{shown}");
    assert!(shown.ends_with("0 to create, 1 to update, 1 to delete, 0 unchanged\n"), "{shown}");

    let mut child = polynym(&["apply", "-f", path.to_str().unwrap(), "--prune", "old"])
        .env("POLYNYM_SERVER", &server.url)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("old is being deleted, even if"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
    let left = tenants(&server);
    assert!(left.contains_key("full") && !left.contains_key("old"), "{left:?}");
    let again = apply(&server, &path, &["--prune", "old"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(stderr(&again).contains("old is being deleted already"), "{}", stderr(&again));
}

#[test]
fn printed_tenants_are_applied_without_a_difference() {
    let ((one, folder), (other, _folder)) = (start(), start());
    for command in [
        &["tenant", "set", "--tenant", "acme", "--create", "--undo-window", "1500s"][..],
        &["tenant", "set", "--tenant", "acme", "--hold", "email=7d", "--reserved-handles", ""],
        &["tenant", "set", "--tenant", "007", "--create", "--phone-takeover-after", "3d"],
        &["tenant", "set", "--tenant", "007", "--phone-regions", "no,DE"],
        &["attribute", "define", "a: \"b\" #ü", "--tenant", "007", "--evidence", "--find"],
        &["attribute", "define", "yes", "--tenant", "007", "--type", "list", "--no-index"],
        &["user", "create", "--identity", "handle:ann"],
    ] {
        let output = one.run(command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    for (format, name) in [("yaml", "all.yaml"), ("json", "all.json")] {
        let printed = stdout(&one.run(&["get", "-o", format]));
        let path = write(folder.path(), name, &printed);
        let dry = apply(&one, &path, &["--dry-run"]);
        assert_eq!(dry.status.code(), Some(0), "{}{}", stdout(&dry), stderr(&dry));
        applied(&other, &path);
        assert_eq!(stdout(&other.run(&["get", "-o", format])), printed);
    }
    let named = stdout(&one.run(&["get", "acme"]));
    assert!(named.contains("undo_window: 25m\n"), "{named}");
    assert!(named.contains("reserved_handles: []") && !named.contains("007"), "{named}");
    assert_fails(&one.run(&["get", "none"]), 1, &["there is no tenant none"]);
}

/// The commands of the page print what it shows.
#[test]
fn the_page_is_as_described() {
    let (server, folder) = start();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    write(folder.path(), "tenants.yaml", rest.split("```").next().unwrap());
    let examples = parse(PAGE, &page);
    assert!(examples.len() >= 6, "the page has few examples");
    for example in examples {
        let command = format!("cd '{}' && {}", folder.path().display(), example.command);
        let output = shell(&command, &server.url);
        let shown = stdout(&output);
        assert_eq!(shown, example.output, "{}: {}", example.position, stderr(&output));
        let is_pending = example.command.contains("--dry-run");
        assert_eq!(output.status.code(), Some(if is_pending { 2 } else { 0 }), "{command}");
    }
}

#[test]
fn the_schema_needs_no_server_and_has_all_policies() {
    let output = polynym(&["apply", "--schema"]).output().unwrap();
    let schema: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let tenant = &schema["properties"]["tenants"]["items"]["properties"];
    let limit = &tenant["policies"]["properties"]["inbox_limit"];
    assert_eq!((&limit["maximum"], &limit["default"]), (&value!(10_000), &value!(1_000)));
    let holds: Vec<_> = tenant["holds"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(holds, ["email", "handle", "phone", "social", "url"]);
    let none = polynym(&["apply"]).output().unwrap();
    assert_fails(&none, 2, &["--file"]);
}
