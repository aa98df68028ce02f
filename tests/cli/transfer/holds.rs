//! Holds that are exported and imported.

use super::{embedded, export, import};
use crate::stderr;

#[test]
fn a_released_look_alike_is_free_after_an_import() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| embedded(folder.path(), name));
    let run = |server: &crate::server::Server, arguments: &[&str]| {
        let output = server.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    };
    // All letters are Cyrillic.
    let handles = [("handle:ѕсоре", "handle:scope"), ("handle:рохе", "handle:poxe")];
    for ((handle, _), email) in handles.iter().zip(["email:a@example.com", "email:b@example.com"]) {
        run(&old, &["user", "create", "--identity", handle, "--identity", email]);
        run(&old, &["identity", "unlink", email, handle]);
    }
    // The hold of the second user becomes nobody's.
    run(&old, &["user", "purge", "email:b@example.com", "--yes"]);

    let lines = export(&old, &[]).join("\n");
    let imported = import(&new, folder.path(), &[], lines.as_bytes());
    assert!(imported.status.success(), "{}", stderr(&imported));
    for (identity, look_alike) in handles {
        let held = new.run(&["user", "create", "--identity", look_alike]);
        assert!(stderr(&held).contains("IDENTITY_"), "{look_alike} is free");
        run(&new, &["identity", "release", identity]);
        run(&new, &["user", "create", "--identity", look_alike]);
    }
}
