//! The exports of other user directories: each file is imported into `serve --ephemeral`, and its
//! users are found by all of their names. The commands of docs/bring-users.md print what it shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::ephemeral::Ephemeral;
use crate::support::doc_examples::{parse, shell};
use crate::support::output::{json, stderr, stdout};

/// A user of a file: the names by which it is found, and an attribute that it has.
type Person = (&'static [&'static str], (&'static str, &'static str));

/// The files, their formats, and their users.
const FILES: [(&str, &str, &[Person]); 8] = [
    (
        "keycloak.json",
        "keycloak",
        &[
            (
                &[
                    "email:ines.duarte@example.com",
                    "handle:ines.duarte",
                    "phone:+351211234567",
                    "social:keycloak-google/107000000000000000001",
                ],
                ("keycloak_id", "5f0a1c52-8a43-4c1c-9a40-6b3c5a0e1f01"),
            ),
            (&["social:keycloak-github/900417"], ("keycloak_username", "20417")),
        ],
    ),
    (
        "firebase.json",
        "firebase",
        &[
            (
                &["email:noor.haddad@example.com", "social:google/107000000000000000002"],
                ("firebase_uid", "Qm7bW1pX2cN4rT8vK0aLzE5sYd11"),
            ),
            (&["phone:+4930901820"], ("firebase_uid", "Qm7bW1pX2cN4rT8vK0aLzE5sYd12")),
        ],
    ),
    (
        "auth0.json",
        "auth0",
        &[
            (
                &["email:yara.okafor@example.com", "social:github/583200"],
                ("auth0_user_id", "auth0|61f0c1a2b3d4e5f601234561"),
            ),
            (
                &["email:lena.brandt@example.com", "social:google/107000000000000000003"],
                ("given_name", "Lena"),
            ),
        ],
    ),
    (
        "kratos.json",
        "kratos",
        &[(
            &[
                "email:aiko.tan@example.com",
                "handle:aiko",
                "social:oidc-google/107000000000000000004",
            ],
            ("kratos_id", "9f425a8d-7efc-4768-8f23-7647a74fdf13"),
        )],
    ),
    (
        "okta.csv",
        "okta",
        &[
            (
                &["email:mei.chen@example.com", "email:mei@example.org", "phone:+4930901822"],
                ("okta_id", "00u1a2b3c4D5e6F7g801"),
            ),
            (&["email:ola.berg@example.com", "phone:+4723150000"], ("okta_status", "STAGED")),
        ],
    ),
    (
        "entra.csv",
        "entra",
        &[
            (
                &["email:eva.lund@fjord.example.com", "email:eva@example.org", "phone:+4723150001"],
                ("entra_object_id", "2f1c9a70-3c5e-4d61-9a10-7d2b6c3e0a01"),
            ),
            (&["email:kim.ray@example.com"], ("userType", "Guest")),
        ],
    ),
    (
        "people.ldif",
        "ldif",
        &[
            (
                &[
                    "email:hugo.marin@example.com",
                    "email:hugo@example.org",
                    "handle:hugo.marin",
                    "phone:+33155552100",
                ],
                ("ldap_entry_uuid", "6a0e2c9e-07b1-1039-8e0c-3d5f1a7b9c01"),
            ),
            (
                &["email:ana@example.com", "handle:areyes", "email:areyes@corp.example.com"],
                ("ldap_object_guid", "03020100-0504-0706-0809-0a0b0c0d0e0f"),
            ),
        ],
    ),
    (
        "cards.vcf",
        "vcard",
        &[
            (
                &[
                    "email:emi.sato@example.com",
                    "email:emi@example.org",
                    "phone:+81355550100",
                    "url:https://www.linkedin.com/in/emi-sato-example",
                ],
                ("vcard_uid", "5d4f0c1e-8b1a-4b9e-9b0a-1f2e3d4c5b01"),
            ),
            (&["email:jonas.weiss@example.com", "phone:+4930901823"], ("categories", "crew,night")),
        ],
    ),
];

/// The example files, in a folder of their own.
fn examples() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exports");
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// The values of a user's attribute that are texts.
fn text<'v>(user: &'v Value, name: &str) -> &'v str {
    user["attributes"][name]["stringValue"].as_str().unwrap_or_default()
}

#[test]
fn users_are_found_by_each_of_their_names() {
    let (server, folder) = (Ephemeral::quiet(), examples());
    for (file, format, people) in FILES {
        let path = folder.path().join(file);
        let path = path.to_str().unwrap();
        let imported = server.run(&["import", path, "--json", "--region", "DE"]);
        assert!(imported.status.success(), "{file}: {}{}", stdout(&imported), stderr(&imported));
        let told = format!("--format {format}");
        assert!(stderr(&imported).contains(&told), "{file}: {}", stderr(&imported));
        let [summary] = &*json(&imported) else { panic!("{file}") };
        assert_eq!(summary["rejected"], 0, "{file}: {summary}");

        for (names, (attribute, value)) in people {
            let ids = names.iter().map(|name| {
                let resolved = server.run(&["resolve", name, "--json"]);
                let [user] = &*json(&resolved) else { panic!("{name}: {}", stderr(&resolved)) };
                let user = if user["user"].is_object() { &user["user"] } else { user };
                assert_eq!(text(user, attribute), *value, "{name}: {user}");
                user["userId"].to_string()
            });
            assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1, "{names:?}");
        }

        let again = server.run(&["import", path, "--json", "--region", "DE"]);
        let [summary] = &*json(&again) else { panic!("{file}") };
        assert_eq!((&summary["created"], &summary["rejected"]), (&0.into(), &0.into()), "{file}");
    }
}

#[test]
fn nothing_of_a_password_is_kept_and_it_is_said() {
    let (server, folder) = (Ephemeral::quiet(), examples());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, wanted) in [
        ("keycloak.json", "refused, since Polynym signs nobody in: 1 credentials"),
        ("firebase.json", "refused, since Polynym signs nobody in: 2 passwordHash, 2 salt"),
        ("people.ldif", "1 entries of groupOfNames"),
        ("cards.vcf", "not imported: 1 PHOTO, 1 cards of the kind group"),
    ] {
        let imported = server.run(&["import", &file(name)]);
        assert!(stdout(&imported).contains(wanted), "{name}: {}", stdout(&imported));
    }
    let exported = stdout(&server.run(&["export"]));
    assert!(exported.contains("ines.duarte"));
    for secret in ["bm90IGEgaGFzaA", "c2FsdA", "not a hash", "SSHA", "pbkdf2"] {
        assert!(!exported.contains(secret), "{secret}");
    }
}

#[test]
fn rejects_are_lines_to_correct_and_import() {
    let (server, folder) = (Ephemeral::quiet(), examples());
    let path: PathBuf = folder.path().join("cards.vcf");
    let cards = fs::read_to_string(&path).unwrap();
    let wrong = cards.replace("emi.sato@example.com", "emi.sato@@example.com");
    fs::write(&path, wrong.replace("VERSION:4.0\nFN", "VERSION:2.1\nFN")).unwrap();
    let imported = server.run(&["import", path.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(1), "{}", stdout(&imported));
    let rejects = fs::read_to_string(folder.path().join("cards.vcf.rejects")).unwrap();
    assert!(
        rejects.contains("vCard 2.1 is not read") && rejects.contains("\"line\":20"),
        "{rejects}"
    );
    let line = rejects.lines().find(|line| line.contains("emi.sato")).unwrap();
    let mended = folder.path().join("mended.rejects");
    fs::write(&mended, line.replace("@@", "@")).unwrap();
    let again = server.run(&["import", mended.to_str().unwrap()]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(server.run(&["resolve", "phone:+81355550100"]).status.success());
}

#[test]
fn formats_are_named_or_asked_for() {
    let (server, folder) = (Ephemeral::quiet(), examples());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let with_map = ["import", &file("okta.csv"), "--map", "email=email", "--dry-run"];
    let table = server.run(&with_map);
    assert!(table.status.success() && stdout(&table).starts_with("3 would be"), "{table:?}");
    let refused = server.run(&[&with_map[..], &["--format", "okta"]].concat());
    assert!(
        stderr(&refused).contains("only --region and --encoding count"),
        "{}",
        stderr(&refused)
    );
    let latin = folder.path().join("latin.ldif");
    fs::write(&latin, b"dn: uid=a\nuid: a\nmail: a@example.com\ncn: Andr\xe9\n").unwrap();
    let latin = ["import", latin.to_str().unwrap(), "--encoding", "windows-1252", "--dry-run"];
    let read = server.run(&latin);
    assert!(stdout(&read).starts_with("1 would be"), "{read:?}");
    let wrong = server.run(&["import", &file("kratos.json"), "--format", "jsonl"]);
    assert!(stderr(&wrong).contains("identities of Ory Kratos: add --format kratos"), "{wrong:?}");
    let cut = folder.path().join("cut.json");
    let whole = fs::read(folder.path().join("keycloak.json")).unwrap();
    fs::write(&cut, &whole[..whole.len() - 40]).unwrap();
    let cut = server.run(&["import", cut.to_str().unwrap()]);
    assert!(stderr(&cut).contains("before its end: it was cut off"), "{}", stderr(&cut));
}

#[test]
fn the_page_is_as_described() {
    let (server, folder) = (Ephemeral::quiet(), examples());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/bring-users.md");
    let page = fs::read_to_string(page).unwrap();
    let examples = parse("docs/bring-users.md", &page);
    assert!(examples.len() > 8, "the page has few examples");
    for example in examples {
        let command = &example.command;
        let command = format!("cd '{}' && {command}", folder.path().display());
        let output = shell(&command, server.url());
        let shown = stdout(&output);
        assert_eq!(shown, example.output, "{}: {}", example.position, stderr(&output));
    }
}
