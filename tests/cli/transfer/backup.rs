//! Backups of a store in use, and their content.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{embedded, export, import, sample};
use crate::assert_fails;
use crate::server::{Server, polynym};
use crate::stderr;

#[test]
fn a_backup_is_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let users = sample(&["--users", "500", "--dirty", "0"]);
    assert!(import(&server, folder.path(), &[], &users).status.success());
    const REQUEST: &str = "--request-id=0c9d2c80-6b0a-4b7e-9d53-3f3d0f6b9a01";
    let send = ["inbox", "send", "handle:noticed", "--subject=Hello", REQUEST];
    assert!(server.run(&["user", "create", "--identity=handle:noticed"]).status.success());
    assert!(server.run(&send).status.success());
    let notices = |server: &Server| server.run(&["inbox", "list", "handle:noticed", "--json"]);
    let noticed = notices(&server).stdout;
    let path_buf = folder.path().join("backup.redb");
    let file = path_buf.to_str().unwrap();
    let before = export(&server, &[]);
    let output = server.run(&["backup", file]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(server.run(&["user", "create", "--name", "Later"]).status.success());
    assert_fails(&server.run(&["backup", file]), 1, &["the file exists"]);

    let store = format!("embedded:{}", folder.path().join("restored").display());
    let mut flipped = fs::read(file).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 3].iter_mut().for_each(|byte| *byte ^= 1);
    let damaged = folder.path().join("damaged.redb");
    fs::write(&damaged, flipped).unwrap();
    let refused = polynym(&["restore", damaged.to_str().unwrap(), "--store", &store]).output();
    assert_fails(&refused.unwrap(), 1, &["damaged.redb is damaged", "restore an earlier backup"]);
    assert!(!folder.path().join("restored").exists());
    let restore = || polynym(&["restore", file, "--store", &store]).output().unwrap();
    let output = restore();
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    assert_fails(&restore(), 1, &["not empty"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let restored_folder = folder.path().join("restored");
    for (path, private) in
        [(restored_folder.clone(), 0o700), (restored_folder.join("directory.redb"), 0o600)]
    {
        assert_eq!(mode(&path), private, "{}", path.display());
    }
    let verified = polynym(&["store", "verify", "--store", &store]).output().unwrap();
    assert!(verified.status.success(), "{}", stderr(&verified));
    let restored = embedded(folder.path(), "restored");
    assert_eq!(export(&restored, &[]), before);

    // Programs of 0.2.0 and earlier wrote backups without a header.
    let older = folder.path().join("older.redb");
    fs::write(&older, &fs::read(file).unwrap()[4_096..]).unwrap();
    let other = format!("embedded:{}", folder.path().join("other").display());
    let output =
        polynym(&["restore", older.to_str().unwrap(), "--store", &other]).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("no checksum"), "{output:?}");

    // The copy has the request.
    assert!(restored.run(&send).status.success());
    assert!(String::from_utf8_lossy(&noticed).contains("Hello"));
    assert_eq!(notices(&restored).stdout, noticed);
}
