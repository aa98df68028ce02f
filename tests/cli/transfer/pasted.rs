//! Files with values as people paste them.

use std::fs;

use super::embedded;
use crate::support::output::stdout;
use crate::support::server::polynym;

const FILE: &str = "name,phone,url\n\
    \u{2068}Ann Lee\u{2069},tel:+33-6-12-34-56-71,linkedin.com/in/ann-lee\n\
    \u{202a}Bob Roe\u{202c},(+33) 6 12 34 56 72,https://threads.net/@bob\n\
    Ca\u{ad}ro\u{ad}line,\u{202a}+33 6 12 34 56 73\u{202c},www.github.com/Caro\n\
    Dan,\u{2068}+33 6 12 34 56 74\u{2069},https://x.com/dan/with_replies\n\
    Eve,\u{200e}+33 6 12 34 56 75,https://www.instagram.com/eve/tagged/\n\
    Fay,+33 6 12 34 56 76,https://de.linkedin.com/in/fay/overlay/contact-info/\n\
    Gus,06 12 34 56 77,\n\
    Hal \u{202e}Lee,,https://example.com/hal\n";

const FOUND: [(&str, &str, &str); 6] = [
    ("Ann Lee", "phone:+33612345671", "url:https://www.linkedin.com/in/ann-lee"),
    ("Bob Roe", "phone:+33612345672", "url:https://www.threads.com/@bob"),
    ("Caroline", "phone:+33612345673", "url:https://github.com/caro"),
    ("Dan", "phone:+33612345674", "url:https://x.com/dan"),
    ("Eve", "phone:+33612345675", "url:https://www.instagram.com/eve"),
    ("Fay", "phone:+33612345676", "url:https://www.linkedin.com/in/fay"),
];

#[test]
fn numbers_in_international_form_pass_the_strict_import() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    fs::write(folder.path().join("people.csv"), FILE).unwrap();
    let map = "display_name=name,phone=phone,url=url";
    let mut import = polynym(&["import", "people.csv", "--map", map, "--phones", "strict"]);
    let import = import.arg("--json").current_dir(folder.path());
    let output = import.env("POLYNYM_SERVER", &server.url).output().unwrap();
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&counts["created"], &counts["rejected"]), (&6.into(), &2.into()), "{counts}");
    for (name, phone, url) in FOUND {
        for identifier in [phone, url] {
            let found = stdout(&server.run(&["resolve", "--json", identifier]));
            assert!(found.contains(&format!("\"displayName\":\"{name}\"")), "{name}: {found}");
        }
    }
    let rejects = fs::read_to_string(folder.path().join("people.rejects.csv")).unwrap();
    for part in ["national form", "U+202E (right-to-left override) at character 5"] {
        assert!(rejects.contains(part), "{part}: {rejects}");
    }
}
