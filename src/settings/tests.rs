//! The settings of the server: their values, and their errors.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use polynym_cli::config::{Bench, Client, Flags, Output, SettingErrors, Settings, share_file_with};

use super::*;

fn load<C: Settings>(flags: &[&str], environment: &[(&str, &str)]) -> Result<C, SettingErrors> {
    let command = Flags::<C>::augment_args(Command::new("test").no_binary_name(true));
    let flags =
        Flags::<C>::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap();
    let find = |name: &str| {
        environment.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    };
    flags.load_from(&find)
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn errors<C: Settings + fmt::Debug>(
    flags: &[&str],
    environment: &[(&str, &str)],
) -> Vec<(String, String)> {
    load::<C>(flags, environment)
        .unwrap_err()
        .0
        .into_iter()
        .map(|error| (error.origin, error.message))
        .collect()
}

#[test]
fn absent_values_have_defaults() {
    let serve: Serve = load(&[], &[]).unwrap();
    assert_eq!(serve.access.listen, ["127.0.0.1:7171".parse().unwrap()]);
    assert_eq!(serve.location.store, StoreChoice::Embedded("./polynym-data".into()));
    assert_eq!((serve.group_commit, serve.coalesce, serve.sample), (true, true, false));
    // A quarter of this machine's limit, if it has one.
    assert!((1 << 20..=1 << 30).contains(&serve.cache), "{}", serve.cache);
    let bench: Bench = load(&[], &[]).unwrap();
    assert_eq!((bench.connections, bench.client.server.as_str()), (4, "http://127.0.0.1:7171"));
}

#[test]
fn a_server_for_tests_has_other_defaults_and_no_store_to_choose() {
    let serve: Serve = load(&["--ephemeral"], &[]).unwrap();
    assert_eq!(serve.access.listen, ["127.0.0.1:0".parse().unwrap()]);
    assert_eq!(serve.access.admin_listen, None);
    assert_eq!(serve.location.store, StoreChoice::Temporary);
    assert_eq!((serve.tenants, serve.telemetry.log.as_str()), (Tenants::Open, "warn"));

    let given = ["--ephemeral", "--listen", "127.0.0.1:7000", "--tenants", "closed"];
    let serve: Serve = load(&given, &[("POLYNYM_LOG", "debug")]).unwrap();
    assert_eq!(serve.access.listen, ["127.0.0.1:7000".parse().unwrap()]);
    assert_eq!((serve.tenants, serve.telemetry.log.as_str()), (Tenants::Closed, "debug"));

    let found = errors::<Serve>(&["--ephemeral"], &[("POLYNYM_STORE", "embedded:data")]);
    assert_eq!(found[0].0, "environment POLYNYM_STORE");
    assert!(found[0].1.contains("omit --store"), "{found:?}");
}

#[test]
fn a_uri_comes_from_a_setting_or_a_file() {
    let file = file("mongodb://joe:s3cret@a/db\n");
    let path = file.path().to_str().unwrap();
    let flags = ["--sample", "--mongodb-uri-file", path];
    let serve: Serve = load(&flags, &[]).unwrap();
    assert_eq!(serve.location.store.uri().unwrap().as_str(), "mongodb://joe:s3cret@a/db");
    assert_eq!(serve.location.mongodb_uri_file.as_deref(), Some(file.path()));
    assert!(!format!("{serve:?}").contains("s3cret"));

    let found = errors::<Serve>(&flags, &[("POLYNYM_STORE", "embedded:data")]);
    assert_eq!(found[0].0, "flag --mongodb-uri-file");
    assert!(found[0].1.contains("remove one of the two"), "{found:?}");
    let found = errors::<Serve>(&["--ephemeral", "--mongodb-uri-file", path], &[]);
    assert!(found[0].1.contains("omit --mongodb-uri-file"), "{found:?}");
    let found = errors::<Serve>(&["--mongodb-uri-file", "none"], &[]);
    assert!(found[0].1.starts_with("none: "), "{found:?}");
}

#[test]
fn a_server_with_a_supervisor_is_drained_later() {
    let delay = |flags: &[&str], variables: &[&str]| {
        let environment: Vec<_> = variables.iter().map(|name| (*name, "somewhere")).collect();
        load::<Serve>(flags, &environment).unwrap().drain_delay
    };
    assert_eq!(delay(&[], &["NOTIFY_SOCKETS"]), Duration::ZERO);
    for supervisor in ["NOTIFY_SOCKET", "KUBERNETES_SERVICE_HOST"] {
        assert_eq!(delay(&[], &[supervisor]), Duration::from_secs(5));
        assert_eq!(delay(&["--drain-delay", "0"], &[supervisor]), Duration::ZERO);
        assert_eq!(delay(&["--ephemeral"], &[supervisor]), Duration::ZERO);
    }
    assert_eq!(load::<Serve>(&[], &[("NOTIFY_SOCKET", "")]).unwrap().drain_delay, Duration::ZERO);
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = file(
        "max_calls = 1\nmax-batch = 1\ncache = \"1MiB\"\nsample = true\nserver = \"http://elsewhere\"\n",
    );
    let path = file.path().to_str().unwrap();
    let environment =
        [("POLYNYM_CONFIG", path), ("POLYNYM_MAX_CALLS", "2"), ("POLYNYM_MAX_BATCH", "2")];
    let serve: Serve = load(&["--max-calls", "3", "--sample=false"], &environment).unwrap();
    assert_eq!(
        (serve.max_calls, serve.max_batch, serve.cache, serve.sample),
        (3, 2, 1 << 20, false)
    );
}

#[test]
fn an_empty_variable_is_absent() {
    let serve: Serve = load(&[], &[("POLYNYM_MAX_CALLS", "")]).unwrap();
    assert_eq!(serve.max_calls, 1_024);
}

#[test]
fn all_errors_are_reported_with_their_origin() {
    let file = file("drain = [1]\nmax_cals = 5\nlog_format = \"xml\"\n");
    let path = file.path().to_str().unwrap();
    let environment = [("POLYNYM_CACHE", "lots"), ("POLYNYM_STORE", "mongodb://joe:secret@host")];
    let found = errors::<Serve>(
        &["--config", path, "--listen", "nowhere", "--max-batch", "0"],
        &environment,
    );
    let expected = [
        (format!("file {path} key drain"), "a string, a number"),
        (format!("file {path} key max_cals"), "did you mean max_calls?"),
        ("flag --listen".to_owned(), "HOST:PORT"),
        ("environment POLYNYM_STORE".to_owned(), "has no database"),
        ("environment POLYNYM_CACHE".to_owned(), "256MiB"),
        ("flag --max-batch".to_owned(), "from 1 to"),
        (format!("file {path} key log_format"), "text or json"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((origin, part), (found_origin, message)) in expected.iter().zip(&found) {
        assert_eq!(origin, found_origin);
        assert!(message.contains(part), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn an_unreadable_file_is_one_of_several_errors() {
    let found = errors::<Serve>(&["--config", "/nowhere/polynym.toml", "--threads", "0"], &[]);
    let origins: Vec<_> = found.iter().map(|(origin, _)| origin.as_str()).collect();
    assert_eq!(origins, ["file /nowhere/polynym.toml", "flag --threads"]);
    let broken = file("listen = \n");
    let found = errors::<Serve>(&["--config", broken.path().to_str().unwrap()], &[]);
    assert!(found[0].1.contains("line 1"), "{found:?}");
}

#[test]
fn a_key_may_have_hyphens_but_not_occur_twice() {
    let file = file("max-calls = 1\nmax_calls = 2\n");
    let found = errors::<Serve>(&["--config", file.path().to_str().unwrap()], &[]);
    assert!(found[0].1.contains("also given"), "{found:?}");
}

#[test]
fn other_machines_are_accepted_only_on_request() {
    for address in ["0.0.0.0:7171", "[::]:0", "192.0.2.1:80"] {
        let found = errors::<Serve>(&["--listen", address], &[]);
        assert_eq!(found[0].0, "flag --listen");
        assert!(
            found[0].1.contains("TLS and credentials are missing")
                && found[0].1.contains("--insecure"),
            "{found:?}"
        );
        assert!(load::<Serve>(&["--listen", address, "--insecure"], &[]).is_ok());
    }
    for address in ["127.0.0.9:0", "[::1]:7171", "[::ffff:127.0.0.1]:7171", "localhost:0"] {
        assert!(load::<Serve>(&["--listen", address], &[]).is_ok(), "{address}");
    }
}

#[test]
fn other_machines_are_accepted_with_encryption_and_credentials() {
    let (tls, credentials) =
        (&["--tls-cert", "c", "--tls-key", "k"][..], &["--credentials", "f"][..]);
    let outside = &["--listen", "0.0.0.0:7171"][..];
    let proxy = &["--behind-proxy"][..];
    for valid in [&[outside, tls, credentials][..], &[outside, credentials, proxy]] {
        assert!(load::<Serve>(&valid.concat(), &[]).is_ok(), "{valid:?}");
    }
    for (wrong, part) in [
        (&[outside, tls][..], "credentials are missing"),
        (&[outside, credentials], "TLS is missing"),
        (&[outside, proxy], "add --credentials"),
        (&[&["--tls-cert", "c"]], "add --tls-key"),
        (&[tls, &["--tls-client-auth", "required"]], "add --tls-client-ca"),
        (&[&["--tls-key", "k"]], "add --tls-cert"),
    ] {
        let found = errors::<Serve>(&wrong.concat(), &[]);
        assert!(found.len() == 1 && found[0].1.contains(part), "{wrong:?}: {found:?}");
    }
}

#[test]
fn a_sample_without_a_store_is_temporary() {
    assert_eq!(load::<Serve>(&["--sample"], &[]).unwrap().location.store, StoreChoice::Temporary);
    let given = load::<Serve>(&["--sample"], &[("POLYNYM_STORE", "embedded:x")]).unwrap();
    assert_eq!(given.location.store, StoreChoice::Embedded("x".into()));
}

#[test]
fn a_sample_has_its_console_on_every_http_listener() {
    let http = |given: &[&str]| load::<Serve>(given, &[]).unwrap().access.http;
    let listens_at =
        |given: &[&str]| http(given).http_listen.map(|addresses| addresses[0].to_string());
    let has_console = |given: &[&str]| http(given).console;
    let listen = ["--listen", "127.0.0.1:7171"];
    let http_listen = ["--http-listen", "127.0.0.1:7000"];
    assert_eq!(listens_at(&["--sample"]).as_deref(), Some("127.0.0.1:7180"));
    assert_eq!(listens_at(&[&["--sample"][..], &listen].concat()), None);
    for given in [&[][..], &listen] {
        let sample = [&["--sample"][..], given, &http_listen].concat();
        assert_eq!(listens_at(&sample).as_deref(), Some("127.0.0.1:7000"));
        assert!(has_console(&sample), "{sample:?}");
        assert!(!has_console(&[&sample[..], &["--console=false"]].concat()), "{sample:?}");
    }
    assert!(!has_console(&http_listen), "no sample");
}

#[test]
fn only_a_similar_key_is_suggested() {
    let message = |text: &str| {
        let file = file(text);
        errors::<Serve>(&["--config", file.path().to_str().unwrap()], &[]).remove(0).1
    };
    assert_eq!(message("max_cals = 7"), "unknown key; did you mean max_calls?");
    assert!(message("x = 7").starts_with("unknown key; known keys are "));
}

#[test]
fn a_log_filter_names_levels() {
    for valid in ["info", "OFF", "polynym=debug,warn", "warn,polynym::grpc=trace"] {
        assert_eq!(load::<Serve>(&["--log", valid], &[]).unwrap().telemetry.log, valid);
    }
    for wrong in ["inof", "polynym", "polynym=loud"] {
        assert_eq!(errors::<Serve>(&["--log", wrong], &[])[0].0, "flag --log", "{wrong}");
    }
}

#[test]
fn every_default_is_well_formed_and_no_name_is_used_twice() {
    assert!(load::<Output>(&[], &[]).is_ok() && load::<StoreReport>(&[], &[]).is_ok());
    assert_eq!(
        load::<StoreSettings>(&[], &[]).unwrap().store,
        load::<Serve>(&[], &[]).unwrap().location.store
    );
    let names: Vec<_> =
        Serve::all().into_iter().chain(Bench::all()).map(|setting| setting.key).collect();
    let distinct: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(names.len(), distinct.len());
}

#[test]
fn one_file_configures_the_server_and_its_clients() {
    share_file_with(Serve::all());
    let file = file("max_calls = 1\ntenant = \"acme\"\ninterval = \"2s\"\n");
    let config = ["--config", file.path().to_str().unwrap()];
    assert_eq!(load::<Client>(&config, &[]).unwrap().tenant, "acme");
    assert_eq!(load::<Serve>(&config, &[]).unwrap().max_calls, 1);
}
