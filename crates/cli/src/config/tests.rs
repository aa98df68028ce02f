//! The search for values, and their errors.

use clap::{Args, Command, FromArgMatches};

use super::*;
use std::fmt;

fn load<C: Settings>(flags: &[&str], environment: &[(&str, &str)]) -> Result<C, SettingErrors> {
    let command = Flags::<C>::augment_args(Command::new("test").no_binary_name(true));
    let flags =
        Flags::<C>::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap();
    let find = |name: &str| {
        environment.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    };
    flags.load_from(&find)
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
fn servers_are_urls() {
    let rejected = [
        ("https://example.com/x", "write https://example.com"),
        ("localhost:7171", "http://"),
        ("http://", "http://"),
        ("http://joe:secret@example.com", "no user and no password"),
        ("http://example.com:1/path", "write http://example.com:1"),
        ("http://example.com/?x", "no path"),
    ];
    for (server, part) in rejected {
        let found = errors::<Client>(&["--server", server], &[]);
        assert!(found[0].1.contains(part) && !found[0].1.contains("secret"), "{found:?}");
    }
    for server in [
        "http://example.com",
        "https://example.com:7171",
        "http://[::1]:7171",
        "http://127.0.0.1:7171/",
    ] {
        assert_eq!(load::<Client>(&["--server", server], &[]).unwrap().server, server);
    }
}

#[test]
fn sizes_and_times_have_units() {
    assert_eq!(parse::size("256MiB"), Ok(256 << 20));
    assert_eq!(parse::size("1 GB"), Ok(1_000_000_000));
    assert_eq!(parse::size("4096"), Ok(4_096));
    for wrong in ["", "MiB", "-1", "1XB", "99999999999GiB"] {
        assert!(parse::size(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse::duration("1.5"), Ok(std::time::Duration::from_millis(1_500)));
    assert_eq!(parse::duration("500ms"), Ok(std::time::Duration::from_millis(500)));
    assert_eq!(parse::duration("2m"), Ok(std::time::Duration::from_secs(120)));
    for wrong in ["", "s", "-1", "1x", "inf", "nan", "1e300"] {
        assert!(parse::duration(wrong).is_err(), "{wrong}");
    }
    assert!(parse::positive("0").is_err());
}

#[test]
fn every_default_is_well_formed() {
    assert!(load::<Output>(&[], &[]).is_ok() && load::<Top>(&[], &[]).is_ok());
    assert_eq!(load::<ChangeClient>(&[], &[]).unwrap().purpose, Purpose::default());
    let bench: Bench = load(&[], &[]).unwrap();
    assert_eq!((bench.connections, bench.client.server.as_str()), (4, "http://127.0.0.1:7171"));
    assert_eq!(bench.client.tenant, "bench");
    assert_eq!(load::<Bench>(&["--tenant", "t"], &[]).unwrap().client.tenant, "t");
}
