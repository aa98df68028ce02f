//! Mending a file: values that are not understood, rejected rows in place, kept columns, and an
//! import that is undone and made again.

use super::{act, count, count_of, settled, upload};
use crate::browser::{Answer, Browser, HOME, Site};
use crate::bulk::ended;

const MOST_BYTES: usize = 60_000;

/// Sends the form of the rejected rows of a page, and waits until the new file is read.
async fn mend(browser: &mut Browser, page: &Answer, fields: &[(&str, &str)]) -> Answer {
    let page = browser.submit(page, &format!("{}/mend", page.path), fields).await;
    settled(browser, page).await
}

/// The path of the page of the user with this identity.
async fn user_page(browser: &mut Browser, query: &str) -> String {
    let found = browser.post(&format!("{HOME}/search"), &[("q", query)]).await;
    let users = format!("{HOME}/users/");
    if found.path.starts_with(&users) { found.path } else { found.attribute("href", &users) }
}

#[tokio::test]
async fn an_import_is_undone_mended_and_made_again() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let text = "email,display_name\nzoe@example.com,Zoë Wrong\nyan@example.com,Yan\n";
    let page = upload(&mut browser, "people.csv", text.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    let page = act(&mut browser, &page, "run", &[]).await;
    page.assert_has(&["Undo this import", "<li aria-current=\"step\">Import</li>"]);
    assert!(!page.text.contains("Sign out"), "nobody signed in");
    let zoe = user_page(&mut browser, "zoe@example.com").await;
    browser.get(&zoe).await.assert_has(&["Zoë Wrong"]);

    // The list of files leads to the preview of the undo, and that to the undo.
    let list = browser.get(&format!("{HOME}/import")).await;
    list.assert_has(&["Undo the import of people.csv"]);
    let undo = list.attribute("href", &format!("{HOME}/operations/import-"));
    assert!(undo.ends_with("/undo"), "{undo}");
    let preview = browser.get(&undo).await;
    preview.assert_has(&["Would be reverted: 2.", "The import of <strong dir=\"auto\">people.csv"]);
    browser.get(&zoe).await.assert_has(&["Zoë Wrong"]);
    let started = browser.submit(&preview, &undo, &[]).await;
    let undone = ended(&mut browser, &started.path).await;
    undone.assert_has(&["<dt>Changed</dt><dd>2</dd>", "Import the mended file"]);
    undone.assert_has(&["<h1>Undo of <bdi>people.csv</bdi></h1>"]);
    for page in [HOME.to_owned() + "/", list.path.clone()] {
        let page = browser.get(&page).await;
        page.assert_has(&[">undone</a>", &format!("href=\"{}\"", started.path)]);
        assert!(!page.text.contains(&undo), "{}", page.text);
    }
    browser.get(&zoe).await.assert_has(&["Deleted"]);

    // The mended file restores the same users.
    let mended = text.replace("Zoë Wrong", "Zoë Right");
    let mended = format!("{mended}xia@example.com,Xia\n");
    let page = upload(&mut browser, "mended.csv", mended.as_bytes()).await;
    let numbers = |page: &Answer| {
        ["New users", "Restored users", "Rejected lines"].map(|name| count(page, name))
    };
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!(numbers(&page), [1, 2, 0]);
    page.assert_has(&["1 new, 2 restored, 0 changed"]);
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!(numbers(&page), [1, 2, 0]);
    browser.get(&format!("{HOME}/")).await.assert_has(&["1 new, 2 restored, 0 changed"]);
    browser.get(&zoe).await.assert_has(&["Zoë Right"]);
    assert_eq!(user_page(&mut browser, "zoe@example.com").await, zoe);
}

#[tokio::test]
async fn values_that_are_not_understood_get_a_meaning() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let rows = (0..12).map(|n| {
        let country = ["D", "A", "Schweiz"][n % 3];
        let number = ["030 123456", "01 51234", "044 668 18 "][n % 3];
        format!("p{n}@example.org;Person {n};{number}{n:02};{country}\n")
    });
    let text = format!("E-Mail;Name;Telefon;Land\n{}", rows.collect::<String>());
    let page = upload(&mut browser, "countries.csv", text.as_bytes()).await;
    page.assert_has(&[
        "Values that are not understood",
        "<th scope=\"row\" dir=\"auto\">D</th>\n      <td class=\"number\">4</td>",
        "value=\"Germany\"",
        "value=\"Austria\"",
        "<option>Switzerland",
        "Rows with errors: 8 of 12",
    ]);
    assert!(page.text.len() < MOST_BYTES, "{} bytes", page.text.len());
    let values = format!("{}/values", page.path);
    let form = |a: &'static str| {
        [("column", "Land"), ("value", "A"), ("meaning", a)].into_iter().chain([
            ("column", "Land"),
            ("value", "D"),
            ("meaning", "Germany"),
        ])
    };
    let wrong = browser.post(&values, &form("Atlantis").collect::<Vec<_>>()).await;
    wrong.assert_has(&["Atlantis is no country"]);
    let page = browser.post(&values, &form("Österreich").collect::<Vec<_>>()).await;
    let page = settled(&mut browser, page).await;
    page.assert_has(&["No errors found", "<span class=\"good\">chosen</span>"]);
    let map = browser.get(&format!("{}/map", page.path)).await;
    map.assert_has(&["[values.Land]", "A = \"AT\"", "D = \"DE\""]);
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (12, 0));

    // The browser keeps columns and meanings for a file with the same header.
    let page = upload(&mut browser, "again.csv", text.as_bytes()).await;
    page.assert_has(&["These are the columns that you chose", "No errors found"]);
}

#[tokio::test]
async fn rejected_rows_are_mended_in_place() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let wrong = (0..12).map(|n| format!("Bad {n};nobody{n}@@example.org;\n"));
    let text = format!(
        "Name;E-Mail;Telefon\nGood;good@example.org;\nNumber;n@example.org;\"1,7E+11\"\n{}",
        wrong.collect::<String>()
    );
    let page = upload(&mut browser, "people.csv", text.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (1, 13));
    page.assert_has(&[
        "E-Mail</span>: Not in the form of such a value, 12 rows",
        "Telefon</span>: Cannot be read, 1 row<",
        "Excel turned this number into 1,7E+11, and the last digits are lost",
        "name=\"cell_0_9\" value=\"nobody9@@example.org\"",
    ]);
    assert!(!page.text.contains("cell_0_10") && page.text.len() < MOST_BYTES);
    let page = act(&mut browser, &page, "run", &[]).await;
    assert_eq!(count(&page, "New users"), 1);

    let untouched = browser.submit(&page, &format!("{}/mend", page.path), &[]).await;
    untouched.assert_has(&["No row is mended yet"]);
    let fields = [
        ("cell_0_0", "nobody0@example.org"),
        ("cell_0_1", "nobody1@@example.org"),
        ("cell_1_0", "+49 30 12345678"),
    ];
    let own = mend(&mut browser, &page, &fields).await;
    assert_ne!(own.path, page.path);
    own.assert_has(&["people-mended.csv", "2 rows", "No errors found", "nobody0@example.org"]);
    // The same form again makes no other file.
    assert_eq!(mend(&mut browser, &page, &fields).await.path, own.path);
    let own = act(&mut browser, &own, "dry-run", &[]).await;
    let own = act(&mut browser, &own, "run", &[]).await;
    assert_eq!((count(&own, "New users"), count(&own, "Rejected lines")), (2, 0));
    user_page(&mut browser, "nobody0@example.org").await;
}

#[tokio::test]
async fn columns_are_kept_by_a_name() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let first = "Nr,Kontakt\n007,a@example.org\n";
    let page = upload(&mut browser, "first.csv", first.as_bytes()).await;
    let fields = [("field_0", "attributes"), ("name_0", "customer")];
    let page = act(&mut browser, &page, "columns", &fields).await;
    let kept = format!("{}/kept", page.path);
    let nameless = browser.submit(&page, &kept, &[("action", "keep"), ("name", "")]).await;
    nameless.assert_has(&["Name the columns"]);
    let page = browser.submit(&page, &kept, &[("action", "keep"), ("name", "<Shop>")]).await;
    page.assert_has(&["<option>&#60;Shop&#62;"]);

    // They apply to a file with other columns, as far as it has them.
    let second = "Extra,Nr,Kontakt\nx,008,b@example.org\n";
    let page = upload(&mut browser, "second.csv", second.as_bytes()).await;
    let kept = format!("{}/kept", page.path);
    let page = browser.submit(&page, &kept, &[("action", "use"), ("kept", "<Shop>")]).await;
    let page = settled(&mut browser, page).await;
    page.assert_has(&["<span class=\"quiet\">customer</span> 008"]);
    let page = browser.submit(&page, &kept, &[("action", "remove"), ("kept", "<Shop>")]).await;
    assert!(!page.text.contains("&#60;Shop&#62;"), "{}", page.text);
}

#[tokio::test]
async fn a_dry_run_counts_rows_about_one_person_as_the_import_does() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let text = "email,display_name,attributes.city\n\
        a@example.org,Ann,Oslo\nA@example.org,Ann,Oslo\na@example.org,Ann,Rome\n\
        b@example.org,Ben,Oslo\na@example.org,Ann,Rome\n";
    for (on_existing, wanted) in [("reject", [2, 0, 1, 2]), ("update", [0, 1, 4, 0])] {
        let page = upload(&mut browser, "people.csv", text.as_bytes()).await;
        page.assert_has(&["3 rows, the first in line 3, have an email", "No errors found"]);
        let numbers = |page: &Answer, section: &str| {
            ["New users", "Changed users", "Unchanged users", "Rejected lines"]
                .map(|name| count_of(page, section, name))
        };
        let page = act(&mut browser, &page, "dry-run", &[("on_existing", on_existing)]).await;
        assert_eq!(numbers(&page, "result"), wanted, "{on_existing}");
        let page = act(&mut browser, &page, "run", &[]).await;
        assert_eq!(numbers(&page, "imported"), wanted, "{on_existing}");
    }
}

/// The fields of the first columns of a customers' file, of which one is changed.
const CHANGED: [(&str, &str); 3] = [("field_2", "social"), ("name_2", "github"), ("field_3", "")];

#[tokio::test]
async fn every_button_keeps_what_was_typed_beside_it() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let text = "Name,E-Mail,GitHub,Ort\nUna,una@example.org,octo-una,Bonn\n";
    for (n, part) in ["dry-run", "values", "kept", "columns"].into_iter().enumerate() {
        let text = text.replace("una", &format!("una{n}"));
        let page = upload(&mut browser, "git.csv", text.as_bytes()).await;
        let fields = [&CHANGED[..], &[("action", "keep"), ("name", "git")]].concat();
        let hidden = page.hidden_fields(&format!("{}/columns", page.path));
        let hidden = hidden.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<_> = hidden.chain(fields).collect();
        let page = browser.post(&format!("{}/{part}", page.path), &fields).await;
        let page = settled(&mut browser, page).await;
        let map = browser.get(&format!("{}/map", page.path)).await;
        map.assert_has(&["\"social.github\" = \"GitHub\""]);
        assert!(!map.text.contains("Ort"), "{part}: {}", map.text);
        if part == "dry-run" {
            assert_eq!(count(&page, "New users"), 1);
            page.assert_has(&["github/octo-una0"]);
        }
    }

    // An import by other options than those that it shows makes the dry run by them.
    let other = text.replace("Ort", "Stadt");
    let page = upload(&mut browser, "last.csv", other.as_bytes()).await;
    let mut page = act(&mut browser, &page, "dry-run", &[]).await;
    for fields in [&[("on_existing", "update")][..], &CHANGED] {
        page = act(&mut browser, &page, "run", fields).await;
        page.assert_has(&["nothing was imported yet", "What the import would do"]);
    }
}

#[tokio::test]
async fn corrected_cells_are_kept_by_the_import() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let text = "Name,E-Mail\nGood,good2@example.org\nBad,bad@@example.org\n";
    let page = upload(&mut browser, "people.csv", text.as_bytes()).await;
    let page = act(&mut browser, &page, "dry-run", &[]).await;
    let page = act(&mut browser, &page, "run", &[("cell_0_0", "bad@example.org")]).await;
    assert_eq!((count(&page, "New users"), count(&page, "Rejected lines")), (1, 1));
    page.assert_has(&[
        "Corrected rows of this file are a file of their own",
        ">people-mended.csv<",
    ]);
    let own = browser.get(&page.attribute("href", &format!("{HOME}/import/"))).await;
    let (_, note) = page.text.split_once("are a file of their own").unwrap();
    let address = note.split("href=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_ne!(address, page.path, "{}", own.path);
    browser.get(address).await.assert_has(&["bad@example.org", "No errors found"]);
}

#[tokio::test]
async fn the_cell_to_correct_is_the_wrong_one_and_owners_are_named() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let text = "Name;E-Mail;Telefon;Land\nOne;one@example.org;030 1234567;Atlantis\n\
        Joe;joe.smith@example.com;;\n";
    let page = upload(&mut browser, "people.csv", text.as_bytes()).await;
    let fields = [("field_2", "phone"), ("field_3", "region")];
    let page = act(&mut browser, &page, "dry-run", &fields).await;
    page.assert_has(&["Land</span>: ", "value=\"Atlantis\"", "Its owner: <a href="]);
    assert!(!page.text.contains("value=\"030 1234567\""), "{}", page.text);
}

#[tokio::test]
async fn groups_that_are_not_shown_are_counted() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let names: Vec<_> = (0..8).map(|n| format!("Mail {n}")).collect();
    let rows = (0..8).map(|n| {
        let cells =
            (0..8).map(|m| if m == n { format!("x{n}@@example.org") } else { String::new() });
        cells.collect::<Vec<_>>().join(",") + "\n"
    });
    let text = format!("{}\n{}", names.join(","), rows.collect::<String>());
    let page = upload(&mut browser, "many.csv", text.as_bytes()).await;
    let fields: Vec<_> = (0..8).map(|n| (format!("field_{n}"), "email")).collect();
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let page = act(&mut browser, &page, "dry-run", &fields).await;
    page.assert_has(&["And 2 more groups of 2 rows", "name=\"cell_5_0\""]);
    assert!(!page.text.contains("cell_6_0"), "{}", page.text);
}

#[tokio::test]
async fn a_country_that_the_rows_name_is_no_guess() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let row = |n: usize| format!("P{n};p{n}@example.org;030 12345{n:02};Deutschland\n");
    let text = format!("Name;E-Mail;Telefon;Land\n{}", (10..30).map(row).collect::<String>());
    let page = upload(&mut browser, "land.csv", text.as_bytes()).await;
    page.assert_has(&["20 phone numbers in national form are read as of DE."]);
}
