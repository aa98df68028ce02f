//! Commands that need no server.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;

use clap::{CommandFactory, Parser};
use polynym::arguments::{Arguments, Command};

use super::{assert_fails, json, stderr, stdout};
use crate::scrape::free_address;
use crate::server::polynym;

const EXAMPLE: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

fn run(arguments: &[&str]) -> std::process::Output {
    polynym(arguments).output().unwrap()
}

fn check_help(path: &mut Vec<String>, command: &clap::Command) {
    let mut arguments: Vec<_> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    let output = run(&arguments);
    let help = stdout(&output);
    assert!(output.status.success() && help.contains("Example"), "{path:?}: {help}");

    let example = format!("\n  polynym {}", path.join(" "));
    assert!(help.contains(example.trim_end()), "{path:?}: {help}");
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
    {
        path.push(subcommand.get_name().to_owned());
        check_help(path, subcommand);
        path.pop();
    }
}

#[test]
fn the_help_of_every_command_has_an_example() {
    check_help(&mut Vec::new(), &Arguments::command());
}

#[test]
fn the_help_names_flag_variable_and_key() {
    let help = stdout(&run(&["serve", "--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("--max-calls <N>"), "{help}");
    assert!(help.contains("[default: 1024, env: POLYNYM_MAX_CALLS, key: max_calls]"), "{help}");
}

#[test]
fn configuration_defaults_equal_those_of_the_modules() {
    let command = Arguments::try_parse_from(["polynym", "serve"]).unwrap().command;
    let Command::Serve(flags) = command else { panic!("serve") };
    let serve = flags.load().unwrap();
    let options = polynym_transport::Options::default();
    assert_eq!((serve.call_timeout, serve.drain), (options.call_timeout, options.drain));
    assert_eq!(
        (serve.max_calls, serve.max_connections),
        (options.max_calls, options.max_connections)
    );
    assert_eq!(serve.connection_age, options.connection_age);
    assert_eq!(serve.connection_idle, options.connection_idle);

    let limits = polynym_directory::Limits::default();
    let configured =
        (serve.max_batch, serve.max_identities, serve.max_attributes, serve.max_user_size);
    assert_eq!(configured, (limits.batch, limits.identities, limits.attributes, limits.bytes));
    assert_eq!((serve.max_holds, serve.max_merged), (limits.holds, limits.merged));
    assert!(serve.cache <= polynym_embedded::Options::default().cache_bytes);
}

#[test]
fn new_ids_are_distinct_and_printed_one_per_line() {
    let output = stdout(&run(&["id", "new", "-n", "500"]));
    let ids: HashSet<locality_uuid::LocalityId> =
        output.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!((ids.len(), output.lines().count()), (500, 500));
    assert!(ids.iter().all(|id| id.version() == 0xb));
    assert_eq!(stdout(&run(&["id", "new"])).lines().count(), 1);
    assert_eq!(stdout(&run(&["id", "new", "-n", "0"])), "");
}

#[test]
fn sequential_ids_count_up() {
    let output = stdout(&run(&["id", "new", "-n", "3", "--sequential"]));
    let counters: Vec<_> =
        output.lines().map(|line| u32::from_str_radix(&line[..8], 16).unwrap()).collect();
    let steps: Vec<_> = counters.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    // A new window of ten minutes may begin between two ids, once.
    assert!(steps.contains(&1), "{counters:x?}");
}

#[test]
fn an_id_is_decoded() {
    let objects = json(&run(&["id", "inspect", "--json", EXAMPLE]));
    let expected = serde_json::json!({
        "id": EXAMPLE,
        "version": "b",
        "counter": 3_488_672_514u32,
        "sequential_counter": 0x20be_0ffcu32,
        "process_id": 12_618,
        "node": "d537a50",
        "time": "2012-10-15T18:58:18.450Z",
    });
    assert_eq!(objects, [expected]);

    let table = stdout(&run(&["id", "inspect", &EXAMPLE.to_uppercase()]));
    for part in [EXAMPLE, "3488672514", "12618", "d537a50", "2012-10-15T18:58:18.450Z"] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn an_id_of_another_version_shows_only_its_version() {
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let output = run(&["id", "inspect", "--json", id]);
    assert_eq!(json(&output), [serde_json::json!({ "id": id, "version": "4" })]);
}

#[test]
fn wrong_usage_exits_with_2() {
    assert_fails(&run(&["id", "inspect", "nonsense"]), 2, &["an id has 36 characters"]);
    assert_fails(&run(&["fly"]), 2, &["fly"]);
    assert_fails(&run(&[]), 2, &["Usage"]);
    assert_fails(&run(&["resolve"]), 2, &["IDENTIFIER"]);
    assert_fails(&run(&["resolve", "joe"]), 2, &["email:joe@example.com"]);
    assert_fails(&run(&["user", "create", "--attribute", "level:int=high"]), 2, &["whole number"]);
    assert_fails(&run(&["user", "update", EXAMPLE]), 2, &["--name"]);
    assert_fails(&run(&["resolve", "--timeout", "soon", "handle:joe"]), 2, &["flag --timeout"]);
}

#[test]
fn an_unreachable_server_exits_with_1() {
    let server = format!("http://{}", free_address());
    let output = run(&["resolve", "--server", &server, "handle:joe"]);
    assert_fails(&output, 1, &["cannot reach", &server, "polynym serve"]);
}

#[test]
fn all_configuration_errors_are_reported_with_their_origin() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"max_cals = 7\ndrain = \"soon\"\n").unwrap();
    let path = file.path().to_str().unwrap();
    let mut command = polynym(&[
        "serve",
        "--config",
        path,
        "--listen",
        "nowhere",
        "--store",
        "mongodb://u:s3cret-word@host",
    ]);
    let output = command.env("POLYNYM_CACHE", "lots").output().unwrap();
    let parts = [
        "5 errors",
        &format!("file {path} key max_cals: unknown key; did you mean max_calls?"),
        &format!("file {path} key drain: "),
        "flag --listen: ",
        "flag --store: the URI has no database",
        "environment POLYNYM_CACHE: ",
    ];
    assert_fails(&output, 2, &parts);
    assert!(!stderr(&output).contains("s3cret"), "a password is shown");
}

#[test]
fn a_public_address_needs_the_insecure_flag() {
    let output = run(&["serve", "--listen", "0.0.0.0:0", "--sample"]);
    assert_fails(&output, 2, &["flag --listen", "TLS and credentials are missing", "--insecure"]);
    assert_eq!(stdout(&output), "");
}

#[test]
fn an_address_in_use_is_reported_on_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--sample", "--listen", &address, "--log", "off"]);
    assert_fails(&output, 1, &["cannot listen on", &address]);
    assert_eq!((stderr(&output).lines().count(), stdout(&output).as_str()), (1, ""));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success());
        assert!(stdout(&output).contains("normalize"), "{shell}");
    }
    assert_fails(&run(&["completions", "cmd"]), 2, &["bash"]);
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let mut command = polynym(&["id", "new", "-n", "10000000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.len(), stderr(&output).as_str(), output.status.code()), (37, "", Some(0)));
}

#[test]
fn unwritable_help_is_a_failure() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [&["--help"][..], &["serve", "--help"], &["--version"]] {
        let output = polynym(arguments).stdout(full()).output().unwrap();
        assert_fails(&output, 1, &["cannot write"]);
    }
}

#[test]
fn the_openapi_document_has_the_paths_below_a_prefix() {
    let output = run(&["openapi", "--prefix", "/polynym"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/polynym");
    let resolve = &document["paths"]["/polynym.v1.DirectoryService/ResolveIdentity"]["post"];
    assert_eq!(resolve["operationId"], "ResolveIdentity");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["man", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    for (page, text) in [("polynym", "SUBCOMMANDS"), ("polynym-serve", "POLYNYM_LISTEN")] {
        let page = std::fs::read_to_string(folder.path().join(format!("{page}.1"))).unwrap();
        assert!(page.contains(text), "{page}");
    }
    assert!(!folder.path().join("polynym-man.1").exists());
}
