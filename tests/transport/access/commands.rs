//! `polynym token`, and clients with a token.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;

use super::Callers;
use crate::server::polynym;

#[test]
fn changes_keep_the_rest_of_the_file() {
    let callers = Callers::new();
    callers.create("billing", "resolver", "default,eu-*");
    let mode = || fs::metadata(callers.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    let text = fs::read_to_string(callers.path()).unwrap();
    fs::write(callers.path(), format!("# ours\n{text}")).unwrap();
    fs::set_permissions(callers.path(), fs::Permissions::from_mode(0o640)).unwrap();
    // Only an administrator may give a file away.
    let _ = chown(callers.path(), Some(1_234), Some(1_235));
    let owner = || fs::metadata(callers.path()).map(|meta| (meta.uid(), meta.gid())).unwrap();
    let before = owner();

    let second = callers.create("ops", "admin", "*");
    let id = second.split('_').nth(1).unwrap();
    let list = callers.run(&["list"]);
    assert!(list.contains("billing") && list.contains("default eu-*") && list.contains(id));
    assert_eq!(callers.run(&["check"]), "the file is valid: 2 credentials\n");
    let token_file = callers.folder.path().join("ops.token");
    fs::write(&token_file, format!("{second}\n")).unwrap();
    let whose = callers.run(&["check", "--token-file", token_file.to_str().unwrap()]);
    assert_eq!(whose, "ops: admin of *\n");

    let expires =
        || callers.run(&["list"]).lines().find(|line| line.contains(id)).unwrap().to_owned();
    assert_eq!(callers.run(&["extend", id, "--expires", "2031-01-01T00:00:00Z"]), "extended: 1\n");
    assert!(expires().contains("2031-01-01T00:00:00Z"), "{}", expires());
    assert_eq!(callers.run(&["extend", "ops", "--expires", "never"]), "extended: 1\n");
    assert!(expires().contains("never"), "{}", expires());

    assert_eq!(callers.run(&["revoke", id]), "revoked: 1\n");
    let text = fs::read_to_string(callers.path()).unwrap();
    assert!(text.starts_with("# ours\n") && !text.contains(id) && text.contains("billing"));
    assert!(!text.contains(&second[14..]), "no token is in the file");
    assert_eq!((mode(), owner()), (0o640, before));
}

#[test]
fn wrong_changes_are_refused_and_change_nothing() {
    let callers = Callers::new();
    callers.create("a", "resolver", "*");
    let text = fs::read_to_string(callers.path()).unwrap();
    let wrong = [
        (&["create", "anonymous", "--role", "admin"][..], "anonymous"),
        (&["create", "a", "--role", "admin"], "another role"),
        (&["create", "b", "--role", "admin", "--tenants", "a*b"], "tenants"),
        (&["create", "b", "--role", "admin", "--expires", "99999999999999d"], "a future time"),
        (&["extend", "b"], "no caller or token"),
        (&["extend", "a", "--expires", "1999-01-01"], "a future time"),
        (&["revoke", "b"], "no caller or token"),
        (&["revoke", "a"], "last credentials"),
    ];
    for (arguments, part) in wrong {
        let mut command = polynym(&[&["token"], arguments].concat());
        let output = command.arg("--credentials").arg(callers.path()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(part), "{arguments:?}: {error}");
        assert_eq!(fs::read_to_string(callers.path()).unwrap(), text);
    }
}

#[test]
fn non_files_and_files_without_callers_are_refused() {
    let callers = Callers::new();
    let refusal = |arguments: &[&str]| {
        let mut command = polynym(&[&["token"], arguments].concat());
        let output = command.arg("--credentials").arg(callers.path()).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    fs::write(callers.path(), "# nobody yet\n").unwrap();
    assert!(refusal(&["check"]).contains("no callers"));
    fs::remove_file(callers.path()).unwrap();
    let _socket = UnixListener::bind(callers.path()).unwrap();
    assert!(refusal(&["create", "a", "--role", "admin"]).contains("not a file"));
}

#[test]
fn concurrent_changes_are_all_made() {
    let callers = Callers::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let callers = &callers;
            scope.spawn(move || callers.create(&format!("caller-{n}"), "resolver", "*"));
        }
    });
    assert_eq!(callers.run(&["check"]), "the file is valid: 8 credentials\n");
    let files = fs::read_dir(callers.folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the file");
}

#[test]
fn commands_send_the_token_of_a_file() {
    let callers = Callers::new();
    let token = callers.create("a", "resolver", "*");
    let server = callers.serve(&[]);
    let path = callers.folder.path().join("a.token");
    fs::write(&path, token).unwrap();
    let file = path.to_str().unwrap();

    let found = server.run(&["resolve", "handle:joe", "--token-file", file]);
    assert!(found.status.success(), "{found:?}");
    let refused = server.run(&["resolve", "handle:joe"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("Bearer TOKEN"));
    let bench = ["bench", "health", "--token-file", file, "--duration", "100ms", "--warmup", "0"];
    assert!(server.run(&bench).status.success());
    fs::write(file, "no token").unwrap();
    let unread = server.run(&["resolve", "handle:joe", "--token-file", file]);
    assert!(String::from_utf8(unread.stderr).unwrap().contains("the file has no token"));
}
