//! Imports of files.

mod bounds;
mod mending;

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use testkit::calls::{Client, email, text, user};
use testkit::output::stdout;

use crate::browser::{Answer, Browser, HOME, Site};

const IMPORT: &str = "/console/t/default/import";
const BOUNDARY: &str = "----------------------------form";

/// A company's customers: a list of another encoding, with faults.
const CUSTOMERS: &str = "Kundennr.;Vorname;Nachname;E-Mail;Telefon;Ort;Umsatz\r\n\
    0001;Anna;Müller;anna@example.com;030 1234567;Köln;1.234,50\r\n\
    0002;Jörg;Groß;jg@example.com;+43 1 5123456;Wien;17,00\r\n\
    0003;Eva;Weiß;eva@example.org, e2@example.org;0171 1234567;Köln;0,99\r\n\
    0004;Nora;Falsch;nora@@example.org;;Köln;12,00\r\n\
    0005;<b>Ida</b>;\"Ra\"\"nd\";ida@example.com;;Köln;NULL\r\n";

/// The fields of a form with a file.
fn form(request_id: &str, name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"request_id\"\r\n\r\n\
         {request_id}\r\n--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; \
         filename=\"{name}\"\r\ncontent-type: text/csv\r\n\r\n"
    );
    [head.as_bytes(), content, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat()
}

/// Sends a form with a file.
async fn send(browser: &mut Browser, request_id: &str, name: &str, content: &[u8]) -> Answer {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let request = Request::post(IMPORT).header(CONTENT_TYPE, content_type);
    let body = Full::from(Bytes::from(form(request_id, name, content)));
    browser.send(request.body(body).unwrap()).await
}

/// Uploads a file, and waits until it is read.
pub async fn upload(browser: &mut Browser, name: &str, content: &[u8]) -> Answer {
    let page = browser.get(IMPORT).await;
    let id = page.hidden_fields(IMPORT)[0].1.clone();
    let page = send(browser, &id, name, content).await;
    settled(browser, page).await
}

/// The page when no work goes on.
pub async fn settled(browser: &mut Browser, mut page: Answer) -> Answer {
    while page.text.contains("/stop\"><button") {
        page = browser.get(&page.path).await;
    }
    page
}

/// Sends a form of a file's page, and waits until the work ends.
async fn act(browser: &mut Browser, page: &Answer, part: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.submit(page, &format!("{}/{part}", page.path), fields).await;
    settled(browser, page).await
}

fn windows_1252(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

/// The number of a result, such as the new users.
fn count(page: &Answer, name: &str) -> u64 {
    let (_, rest) = page.text.rsplit_once(&format!("<dt>{name}</dt><dd>")).unwrap_or_else(|| {
        panic!("no {name} at {}:\n{}", page.path, page.text);
    });
    rest.split('<').next().unwrap().parse().unwrap()
}

/// The number of a result in a section.
fn count_of(page: &Answer, section: &str, name: &str) -> u64 {
    let (_, rest) = page.text.split_once(&format!("<h2 id=\"{section}\"")).unwrap_or_else(|| {
        panic!("no {section} at {}:\n{}", page.path, page.text);
    });
    let (_, rest) = rest.split_once(&format!("<dt>{name}</dt><dd>")).unwrap();
    rest.split('<').next().unwrap().parse().unwrap()
}

/// Each file is known by its content, and imported by the code of the command line.
#[tokio::test]
async fn exports_of_other_directories_are_taken() {
    const FILES: [(&str, &[u8], &[&str], u64); 3] = [
        (
            "realm.json",
            include_bytes!("../../data/exports/keycloak.json"),
            &[
                "users of Keycloak · 3 lines",
                "only tables have columns to choose",
                "keycloak-google/107000000000000000001",
                "Refused as secrets: 1 credentials",
                "Not imported: 1 groups, 2 realmRoles",
                "Kept as attributes: 1 keycloak_username",
                "--format keycloak --dry-run",
            ],
            3,
        ),
        (
            "people.ldif",
            include_bytes!("../../data/exports/people.ldif"),
            &["LDIF · 3 lines", "Hugo Marin", "--format ldif"],
            3,
        ),
        (
            "cards.txt",
            include_bytes!("../../data/exports/cards.vcf"),
            &["vCards · 2 lines", "Jonas Weiß", "--format vcard"],
            2,
        ),
    ];
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    for (name, content, wanted, users) in FILES {
        let page = upload(&mut browser, name, content).await;
        page.assert_has(wanted);
        assert!(!page.text.contains("curl -X POST") && !page.text.contains("pbkdf2"));
        let page = act(&mut browser, &page, "dry-run", &[]).await;
        assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (users, 0));
        let page = act(&mut browser, &page, "run", &[]).await;
        assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (users, 0));
    }
    let found =
        browser.post("/console/t/default/search", &[("q", "ines.duarte@example.com")]).await;
    found.assert_has(&[">Inês Duarte</a>"]);
    let entra = include_bytes!("../../data/exports/entra.csv");
    let page = upload(&mut browser, "entra.csv", entra).await;
    page.assert_has(&["separated by comma · 29 columns"]);
}

#[tokio::test]
async fn a_dirty_file_is_understood_checked_and_imported() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    browser.get(IMPORT).await.assert_has(&["You have uploaded no file", "Upload</button>"]);
    let page = upload(&mut browser, "customers.csv", &windows_1252(CUSTOMERS)).await;
    page.assert_has(&[
        "windows-1252 · separated by semicolon · 7 columns · 5 rows",
        "<option selected>de</option>",
        "value=\"DE\"",
        "Jörg Groß",
        "&#60;b&#62;Ida&#60;/b&#62; Ra&#34;nd",
        "2 phone numbers in national form are read as of DE, which is a guess",
        "Rows with errors: 1 of 5",
        "not a valid email",
        "--map-file customers.toml --dry-run",
    ]);
    assert!(!page.text.contains("<b>Ida") && !page.path.contains("customers"));

    // The town is left out, and the number of the customer has another name.
    let fields = [("field_0", "attributes"), ("name_0", "customer"), ("field_5", "")];
    let page = act(&mut browser, &page, "columns", &fields).await;
    page.assert_has(&["<span class=\"quiet\">customer</span> 0001"]);
    assert!(!page.text.contains("<span class=\"quiet\">ort</span>"), "{}", page.text);
    let map = browser.get(&format!("{}/map", page.path)).await;
    map.assert_has(&["\"attributes.customer\" = \"Kundennr.\"", "locale = \"de\""]);

    let early = browser.post(&format!("{}/run", page.path), &[("dry_run", "")]).await;
    assert_eq!(early.status, 422);
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    page.assert_has(&["What the import would do"]);
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (4, 1));
    let page = act(&mut browser, &page, "run", &[]).await;
    page.assert_has(&["<h2 id=\"imported\">Imported</h2>", "<code>import-", "polynym undo"]);
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (4, 1));
    let imported = page.path.clone();
    let start = browser.get(&format!("{HOME}/")).await;
    start.assert_has(&[
        "<h2 id=\"ended\">",
        "4 new, 0 changed",
        "\"Undo the import of customers.csv\"",
    ]);
    let found = browser.post("/console/t/default/search", &[("q", "anna@example.com")]).await;
    found.assert_has(&[">Anna Müller</a>"]);

    let rejects = browser.get(&format!("{}/rejects", page.path)).await;
    assert!(rejects.text.starts_with("\u{feff}reject_line;reject_state;"), "{}", rejects.text);
    rejects.assert_has(&["nora@@example.org", ";E-Mail;"]);
    let disposition = rejects.response.header("content-disposition");
    assert_eq!(disposition, "attachment; filename=\"customers.rejects.csv\"");
    assert_eq!(rejects.text.lines().count(), 2, "{}", rejects.text);

    // The rejects are corrected and uploaded, and the command that is shown undoes the import.
    let corrected = rejects.text.replace("@@", "@");
    let page = upload(&mut browser, "corrected.csv", corrected.as_bytes()).await;
    page.assert_has(&["nora@example.org", "No errors found"]);
    assert!(!page.text.contains("\"quiet\">reject_"), "{}", page.text);
    let undo = browser.get(&imported).await;
    let id = undo.attribute("href", "/console/t/default/operations/");
    assert!(id.ends_with("/users"), "{id}");
    let undone = site.server.run(&["undo", id.rsplit('/').nth(1).unwrap()]);
    assert!(stdout(&undone).contains("4 of 4 users"), "{}", stdout(&undone));
}

#[tokio::test]
async fn a_later_list_changes_users_who_are_found_by_an_attribute() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let first = "email,display_name,attributes.number,attributes.city\n\
        ana@example.com,Ana,17,Lyon\nben@example.com,Ben,18,Oslo\n";
    let page = upload(&mut browser, "first.csv", first.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!(count(&page, "New users"), 2);
    act(&mut browser, &page, "run", &[]).await;

    let second = "email,attributes.number,attributes.city\nana@example.net,17,Nice\n\
        ben@example.com,18,Oslo\n";
    let page = upload(&mut browser, "second.csv", second.as_bytes()).await;
    let options = [("on_existing", "update"), ("key", "attributes.number")];
    let page = act(&mut browser, &page, "dry-run", &options).await;
    page.assert_has(&[
        "attributes.city",
        ">Lyon</td>",
        ">Nice</td>",
        "dir=\"auto\">Ana</a> <code class=\"quiet\">",
        "ana@example.net",
        "--on-existing update --match attributes.number",
    ]);
    assert_eq!((count(&page, "Changed users"), count(&page, "Unchanged users")), (1, 1));
    let checked = page;
    let page = act(&mut browser, &checked, "run", &[]).await;
    assert_eq!(count(&page, "Changed users"), 1);

    // The same form again does nothing twice, and a form of an older dry run nothing at all.
    let again = act(&mut browser, &checked, "run", &[]).await;
    assert_eq!(count(&again, "Changed users"), 1);
    let other = act(&mut browser, &page, "dry-run", &options).await;
    other.assert_has(&["Nothing would change."]);
    assert_eq!((count(&other, "Changed users"), count(&other, "Unchanged users")), (0, 2));
    let old = browser.submit(&checked, &format!("{}/run", page.path), &[]).await;
    assert_eq!(old.status, 422);
}

#[tokio::test]
async fn a_list_fills_what_users_lack() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let first = "handle,display_name,attributes.city\nfilled1,Ann,\nfilled2,,Oslo\n";
    let page = upload(&mut browser, "first.csv", first.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    act(&mut browser, &page, "run", &[]).await;
    let second = "handle,display_name,attributes.city\nfilled1,Other,Nice\nfilled2,Ben,Rome\n";
    let page = upload(&mut browser, "second.csv", second.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[("on_existing", "fill")]).await;
    page.assert_has(&["Fill: set only what the user lacks", "--on-existing fill"]);
    let (_, changes) = page.text.split_once("<h2 id=\"result\">").unwrap();
    assert!(changes.contains(">Nice</td>") && !changes.contains(">Rome</td>"), "{changes}");
    assert!(changes.contains(">Ben</td>") && !changes.contains(">Other</td>"), "{changes}");
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!(count(&page, "Changed users"), 2);
    let found = browser.post(&format!("{HOME}/search"), &[("q", "@filled2")]).await;
    found.assert_has(&["Ben"]);
}

/// What the console exports changes nobody when it is uploaded again.
#[tokio::test]
async fn an_export_changes_nobody() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    let texts = [("=1+1", "x;=1+1"), ("'=1+1", "NULL"), ("-2+3", "＝1+1")];
    for (n, (name, note)) in texts.into_iter().enumerate() {
        let mut one = user(name, vec![email(&format!("={n}@example.com"))]);
        one.attributes.insert("note".to_owned(), text(note));
        client.create(one).await.unwrap();
    }
    let mut browser = site.browser().await;
    let list = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    let columns = browser.get(&format!("{}/columns", list.path)).await;
    let chosen =
        ["attributes.note", "email", "handle", "phone", "state"].map(|own| ("column", own));
    let list = browser.submit(&columns, &columns.path.clone(), &chosen).await;
    let table = browser.get(&format!("{}/export?format=csv", list.path)).await.text;
    for part in [",'=1+1,", ",''=1+1,", ",'-2+3,", "x;'=1+1", ",'NULL", ",'＝1+1"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let page = upload(&mut browser, "users.csv", table.as_bytes()).await;
    page.assert_has(&["No errors found"]);
    let page = act(&mut browser, &page, "dry-run", &[("on_existing", "replace")]).await;
    page.assert_has(&["Nothing would change."]);
    assert_eq!(count(&page, "Unchanged users"), table.lines().count() as u64 - 1);
}

#[tokio::test]
async fn files_that_are_no_table_say_what_to_do() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let utf16: Vec<u8> =
        "email\nä@example.com\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, content, texts) in [
        ("a.csv.gz", &b"\x1f\x8b\x08\0"[..], ["compressed by gzip: unpack it first", "Read again"]),
        ("a.xlsx", b"PK\x03\x04xl/workbook.xml", ["a workbook", "save the sheet as CSV UTF-8"]),
        ("a.csv", b"\x7fELF\0\0\0\0\x01\x01", ["binary", "export it as CSV UTF-8"]),
        ("a.csv", b"\n\n", ["The file cannot be read", "Read again"]),
        ("a.csv", &utf16, ["UTF-16: choose the encoding utf-16le", "Read again"]),
    ] {
        let page = upload(&mut browser, name, content).await;
        page.assert_has(&texts);
        if texts[0].contains("utf-16le") {
            let page = act(&mut browser, &page, "columns", &[("encoding", "UTF-16LE")]).await;
            page.assert_has(&["UTF-16LE · separated by comma · 1 columns · 1 rows"]);
        }
        let early = browser.post(&format!("{}/dry-run", page.path), &[]).await;
        assert_eq!(early.status == 422, !texts[0].contains("utf-16le"), "{name}");
        browser.post(&format!("{}/remove", page.path), &[]).await;
    }
    let empty = upload(&mut browser, "a.csv", b"").await;
    empty.assert_has(&["The file is empty."]);
    let none = upload(&mut browser, "", b"").await;
    none.assert_has(&["Choose a file."]);
    assert_eq!((empty.status, none.status), (422, 422));
}
