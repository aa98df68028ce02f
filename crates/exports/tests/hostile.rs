//! Files with states, names, and ids that mean harm or that nobody expects: nobody becomes active,
//! somebody else, or two people in one by them.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use polynym_exports::ExportFormat::{Auth0, Entra, Firebase, Keycloak, Kratos, Ldif, Okta, Vcard};
use polynym_exports::{ExportFormat, Notes, ReadOptions, guess, open};
use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::identifier::Kind as IdentifierKind;
use polynym_proto::v1::{State, User};
use polynym_table::Given;
use polynym_table::encoding::named;

/// The users of a file or why there is none, what was left out, and why reading ended.
type Read = (Vec<Result<User, String>>, Notes, Option<String>);

fn read_as(format: ExportFormat, text: impl AsRef<[u8]>, options: &ReadOptions) -> Read {
    let (mut found, bytes) = (Vec::new(), text.as_ref());
    let mut users = open(format, bytes, options).unwrap();
    let error = loop {
        match users.next_user() {
            Ok(Some(entry)) => found.push(entry.user),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // The end stays the end.
    assert!(error.is_some() || users.next_user().unwrap().is_none());
    let notes = users.notes().clone();
    (found, notes, error)
}

fn read(format: ExportFormat, text: impl AsRef<[u8]>) -> Read {
    let (region, encoding) = ("DE".to_owned(), None);
    read_as(format, text, &ReadOptions { region, encoding })
}

/// The only user of a file.
fn user(format: ExportFormat, text: impl AsRef<[u8]>) -> (User, Notes) {
    let (mut users, notes, error) = read(format, text);
    assert_eq!((users.len(), error), (1, None), "{users:?}");
    (users.remove(0).unwrap(), notes)
}

/// Why a file has no user.
fn fault(format: ExportFormat, text: impl AsRef<[u8]>) -> String {
    let (mut users, ..) = read(format, text);
    assert_eq!(users.len(), 1, "{users:?}");
    users.remove(0).unwrap_err()
}

fn attribute(user: &User, name: &str) -> String {
    match user.attributes.get(name).and_then(|value| value.kind.as_ref()) {
        Some(Kind::StringValue(text)) => text.clone(),
        Some(Kind::ListValue(list)) => list.values.join(" | "),
        other => format!("{other:?}"),
    }
}

/// The providers of a user's accounts.
fn providers(user: &User) -> Vec<String> {
    let identifiers = user.identities.iter().filter_map(|own| own.identifier.clone()?.kind);
    let social = identifiers.filter_map(|kind| match kind {
        IdentifierKind::Social(social) => Some(social.provider),
        _ => None,
    });
    social.collect()
}

#[test]
fn names_and_numbers_of_attributes_are_bounded() {
    let long = "n".repeat(300);
    let inner = (0..1_000).map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(",");
    let text = format!(r#"[{{"id":"a","traits":{{"{long}":{{{inner}}},"x":"y"}}}}]"#);
    let (own, notes) = user(Kratos, text);
    assert_eq!(attribute(&own, "x"), "y");
    assert_eq!(notes.left_out.get(&"n".repeat(80)), 1);
    let fields = (0..1_000).map(|n| format!("\"f{n}\":1")).collect::<Vec<_>>().join(",");
    let text = format!(r#"[{{"id":"a","traits":{{{fields}}}}}]"#);
    assert!(fault(Kratos, text).contains("more than 200 attributes"));
    let (long, list) = ("x".repeat(4_097), "\"x\",".repeat(101));
    let list = list.trim_end_matches(',');
    let text = format!(r#"[{{"id":"a","traits":{{"long":"{long}","list":[{list}],"x":"y"}}}}]"#);
    let (own, notes) = user(Kratos, text);
    assert_eq!((own.attributes.len(), attribute(&own, "x")), (2, "y".to_owned()));
    let left_out = ["long (too long)", "list (too long)"].map(|name| notes.left_out.get(name));
    assert_eq!(left_out, [1, 1]);
}

#[test]
fn identities_are_bounded() {
    let mails: String = (0..101).map(|n| format!("mail: u{n}@example.com\n")).collect();
    let entry = format!("dn: uid=a\nuid: a\n{mails}");
    assert!(fault(Ldif, &entry).contains("more than 100 identities"));
    // Equal and blank ones count once and never.
    let mails = "mail: u@example.com\nmail: \n".repeat(10_000);
    let (own, _) = user(Ldif, format!("dn: uid=a\nuid: a\n{mails}"));
    assert_eq!(own.identities.len(), 2);
    let mails: String = (0..40_000).map(|n| format!("EMAIL:u{n}@example.com\n")).collect();
    let card = format!("BEGIN:VCARD\nVERSION:4.0\n{mails}END:VCARD\n");
    assert!(fault(Vcard, card).contains("more than 100 identities"));
    let account = |n| format!(r#"{{"identityProvider":"a","userId":"{n}"}}"#);
    let accounts = (0..101).map(account).collect::<Vec<_>>().join(",");
    let text = format!(r#"[{{"id":"a","username":"a","federatedIdentities":[{accounts}]}}]"#);
    assert!(fault(Keycloak, text).contains("more than 100 identities"));
}

#[test]
fn no_attribute_passes_for_an_id() {
    let text = r#"[{"id":"1","username":"a","attributes":{"keycloak_id":["2"],"okta_id":["3"]}}]"#;
    let (own, notes) = user(Keycloak, text);
    assert_eq!(attribute(&own, "keycloak_id"), "1");
    assert!(!own.attributes.contains_key("okta_id"));
    assert_eq!(notes.left_out.get("attributes that occur twice"), 1);
    assert_eq!(notes.left_out.get("attributes with the name of an id"), 1);
    let text = r#"[{"username":"a","attributes":{"keycloak_id":["2"]}}]"#;
    assert!(!user(Keycloak, text).0.attributes.contains_key("keycloak_id"));
    let (own, _) = user(Kratos, r#"[{"id":"1","traits":{"kratos_id":"2"}}]"#);
    assert_eq!(attribute(&own, "kratos_id"), "1");
    let (own, _) = user(Ldif, "dn: uid=a\nuid: a\nldap_entry_uuid: 2\n");
    assert!(!own.attributes.contains_key("ldap_entry_uuid"));
}

#[test]
fn two_entries_are_never_one_user() {
    for gap in ["", " \n"] {
        let text = format!("dn: uid=a\nuid: a\n{gap}dn: uid=b\nuid: b\n\ndn: uid=c\nuid: c\n");
        let (users, ..) = read(Ldif, text);
        assert_eq!((users.len(), users[1].is_ok()), (2, true));
        let line = if gap.is_empty() { 3 } else { 4 };
        let wanted = format!("line {line}: a dn within the entry that begins in line 1");
        assert!(users[0].as_ref().unwrap_err().starts_with(&wanted), "{:?}", users[0]);
    }
    assert!(fault(Ldif, "uid: a\nmail: a@example.com\ndn: uid=b\nuid: b\n").contains("line 3"));
    assert!(read(Ldif, "version: 1\ndn: uid=a\nuid: a\n").0[0].is_ok());
}

#[test]
fn states_of_directories_are_known() {
    for state in [
        "inetUserStatus: inactive",
        "msDS-UserAccountDisabled: TRUE",
        "pwdAccountLockedTime: 000001010000Z",
        "nsAccountLock: True",
        "userAccountControl: 514",
    ] {
        let (own, _) = user(Ldif, format!("dn: uid=a\nuid: a\n{state}\n"));
        assert_eq!(own.state(), State::Disabled, "{state}");
    }
    let (own, notes) = user(Ldif, "dn: uid=a\nuid: a\npwdAccountLockedTime: 20240101000000Z\n");
    assert_eq!((own.state(), notes.left_out.get("pwdAccountLockedTime")), (State::Unspecified, 1));
    let text = "dn: a=b\nuid: a\nisDeleted: TRUE\n\ndn: a=c\nuid: c\ninetUserStatus: deleted\n";
    let (users, notes, _) = read(Ldif, text);
    assert_eq!((users.len(), notes.left_out.get("entries that are deleted")), (0, 2));
}

#[test]
fn states_that_are_not_known_are_rejects() {
    for (format, field, text) in [
        (Ldif, "userAccountControl", "dn: uid=a\nuid: a\nuserAccountControl: x\n"),
        (Ldif, "nsAccountLock", "dn: uid=a\nuid: a\nnsAccountLock: perhaps\n"),
        (Ldif, "inetUserStatus", "dn: uid=a\nuid: a\ninetUserStatus: asleep\n"),
        (Keycloak, "enabled", r#"[{"id":"1","username":"a","enabled":"no"}]"#),
        (Firebase, "disabled", r#"[{"localId":"1","disabled":"perhaps"}]"#),
        (Auth0, "blocked", r#"[{"user_id":"auth0|1","blocked":"perhaps"}]"#),
        (Kratos, "state", r#"[{"id":"1","traits":{},"state":"asleep"}]"#),
        (Okta, "status", "login,status\na@example.com,Asleep\n"),
        (Entra, "accountEnabled", "userPrincipalName,accountEnabled\na@example.com,Falsch\n"),
    ] {
        let fault = fault(format, text);
        assert!(fault.starts_with(&format!("{field} does not say")), "{format:?}: {fault}");
    }
    for (format, text) in [
        (Keycloak, r#"[{"id":"1","username":"a","enabled":"False"}]"#),
        (Okta, "login,status\na@example.com,Deactivated\n"),
        (Okta, "login,status\na@example.com,INACTIVE\n"),
        (Entra, "userPrincipalName,accountEnabled\na@example.com,FALSE\n"),
    ] {
        assert_eq!(user(format, text).0.state(), State::Disabled, "{text}");
    }
    let (own, _) = user(Okta, "login,status\na@example.com,Pending user action\n");
    assert_eq!(own.state(), State::Unspecified);
}

#[test]
fn files_without_states_say_so() {
    for (format, field, text) in [
        (Auth0, "blocked", "{\"user_id\":\"auth0|1\"}\n{\"user_id\":\"auth0|2\"}\n"),
        (Okta, "status", "login\na@example.com\nb@example.com\n"),
        (Entra, "accountEnabled", "userPrincipalName\na@example.com\nb@example.com\n"),
    ] {
        let (users, notes, _) = read(format, text);
        let name = format!("state of the users, since none has {field}");
        assert_eq!((users.len(), notes.left_out.get(&name)), (2, 1), "{notes:?}");
    }
    let text = "{\"user_id\":\"auth0|1\"}\n{\"user_id\":\"auth0|2\",\"blocked\":false}\n";
    assert!(read(Auth0, text).1.left_out.is_empty());
}

#[test]
fn a_flag_verifies_one_number_of_its_own_spelling() {
    for (attributes, is_verified) in [
        (r#""phoneNumber":["030 123456"],"phoneNumberVerified":["true"]"#, true),
        (r#""phone_number":["030 123456"],"phoneNumberVerified":["true"]"#, false),
        (r#""mobileNumber":["030 123456"],"phoneNumberVerified":["true"]"#, false),
        (r#""phoneNumber":["030 123456","030 123457"],"phoneNumberVerified":["true"]"#, false),
        (r#""phoneNumber":["030 123456"],"phoneNumberVerified":["false","true"]"#, false),
    ] {
        let text = format!(r#"[{{"id":"1","createdTimestamp":1,"attributes":{{{attributes}}}}}]"#);
        let (own, _) = user(Keycloak, text);
        let found = own.identities.iter().any(|identity| identity.verify_time.is_some());
        assert_eq!((found, own.identities.is_empty()), (is_verified, false), "{attributes}");
    }
}

#[test]
fn connections_named_like_public_providers_are_kept_apart() {
    let account = |provider: &str, connection: &str, subject: &str| {
        let names = format!(r#""provider":"{provider}","connection":"{connection}""#);
        format!(r#"{{"user_id":"x|1","identities":[{{{names},"user_id":"{subject}"}}]}}"#)
    };
    for (text, wanted) in [
        (account("github", "github", "1"), "github"),
        (account("oidc", "github", "github|1"), "oidc-github"),
        (account("samlp", "Google-OAuth2", "1"), "samlp-google-oauth2"),
        (account("samlp", "warehouse", "warehouse|1"), "warehouse"),
        (r#"{"user_id":"oauth2|github|1"}"#.to_owned(), "oauth2-github"),
    ] {
        assert_eq!(providers(&user(Auth0, &text).0), [wanted], "{text}");
    }
    let text = r#"[{"id":"1","traits":{},"credentials":{"saml":{"identifiers":["github:1"]}}}]"#;
    assert_eq!(providers(&user(Kratos, text).0), ["saml-github"]);
    let text = r#"[{"id":"1","federatedIdentities":[{"identityProvider":"GitHub","userId":"1"}]}]"#;
    assert_eq!(providers(&user(Keycloak, text).0), ["keycloak-github"]);
}

#[test]
fn an_alias_is_public_if_the_realm_says_so() {
    let users = r#""users":[{"id":"1","federatedIdentities":[
        {"identityProvider":"github","userId":"1"}, {"identityProvider":"google","userId":"1"}]}]"#;
    let kinds = r#""identityProviders":[{"alias":"github","providerId":"github"},
        {"alias":"google","providerId":"oidc"}]"#;
    let (own, _) = user(Keycloak, format!(r#"{{"realm":"a",{kinds},{users}}}"#));
    assert_eq!(providers(&own), ["github", "keycloak-google"]);
    let text = format!(r#"{{"realm":"a",{kinds},{users}}}{{"realm":"b",{users}}}"#);
    let (users_of_both, ..) = read(Keycloak, text);
    let other = users_of_both[1].as_ref().unwrap();
    assert_eq!(providers(other), ["keycloak-github", "keycloak-google"]);
    let (own, _) = user(Keycloak, format!(r#"{{"realm":"a",{users},{kinds}}}"#));
    assert_eq!(providers(&own), ["keycloak-github", "keycloak-google"]);
}

/// The console reads the tables of Okta and Entra as any others.
#[test]
fn tables_have_states_without_a_format() {
    for text in [
        &include_bytes!("../../../tests/data/exports/okta.csv")[..],
        include_bytes!("../../../tests/data/exports/entra.csv"),
    ] {
        let inspection = polynym_table::inspect(|| Ok(text), Given::default()).unwrap();
        let users = inspection.sample.iter().map(|(_, own)| own.as_ref().unwrap());
        let states = users.map(|own| own.user.state()).collect::<Vec<_>>();
        assert_eq!(states, [State::Active, State::Disabled, State::Active]);
        let again = inspection.map_file.given().unwrap();
        let again = polynym_table::inspect(|| Ok(text), again).unwrap();
        assert_eq!(again.rejects, inspection.rejects);
    }
    // A word that is not known is no reason to take everybody as active.
    let text = b"mail,status\na@example.com,ACTIVE\nb@example.com,Asleep\nc@example.com,INACTIVE\n";
    let inspection = polynym_table::inspect(|| Ok(&text[..]), Given::default()).unwrap();
    let rejects: Vec<_> = inspection.rejects.into_iter().collect();
    let wanted = "status: Asleep: the state must be active or disabled".to_owned();
    assert_eq!(rejects, [(wanted, (1, 3))]);
}

#[test]
fn short_lines_have_a_cost() {
    let lines = "a: b\n".repeat(70_000);
    assert!(fault(Ldif, format!("dn: uid=a\nuid: a\n{lines}")).contains("more than 4 MiB"));
    let lines = "X:y\n".repeat(70_000);
    let card = format!("BEGIN:VCARD\nVERSION:4.0\n{lines}END:VCARD\n");
    assert!(fault(Vcard, card).contains("more than 4 MiB"));
    let folded = "\n x".repeat(70_000);
    let (own, notes) = user(Ldif, format!("dn: uid=a\nuid: a\ntitle: x{folded}\n"));
    assert_eq!((notes.left_out.get("title"), own.attributes.len()), (1, 1));
    let card = format!("BEGIN:VCARD\nVERSION:4.0\nFN{}:A\nEND:VCARD\n", ";a".repeat(1_000));
    assert!(fault(Vcard, card).contains("more than 100 parameters"));
}

#[test]
fn a_list_of_realms_is_refused() {
    let (users, _, error) = read(Keycloak, r#"[{"realm":"a","users":[{"id":"1"}]}]"#);
    assert!(users.is_empty());
    assert!(error.unwrap().contains("--realm NAME"));
}

#[test]
fn pages_that_were_put_together_are_read() {
    let page = r#"{"realm":"a","users":[{"id":"1","username":"a"}]}"#;
    assert_eq!(read(Keycloak, format!("{page}{page}\n{page}")).0.len(), 3);
    let page = r#"[{"id":"1","traits":{}}]"#;
    assert_eq!(read(Kratos, format!("{page}\n{page}\n")).0.len(), 2);
    let line = "{\"id\":\"1\",\"traits\":{\"email\":\"a@example.com\"}}\n";
    let (users, _, error) = read(Kratos, format!("{line}{line}"));
    assert_eq!((users.len(), users.iter().all(Result::is_ok), error), (2, true, None));
    for (token, count) in [("\"\"", 0), ("null", 0), ("\"abc\"", 1)] {
        let text = format!(r#"{{"identities":{page},"next_page_token":{token}}}"#);
        assert_eq!(read(Kratos, text).1.left_out.get("next_page_token"), count, "{token}");
    }
}

#[test]
fn values_of_known_names_are_texts_and_counted() {
    let reason = fault(Ldif, b"dn: uid=a\nuid: a\nmail: \xe9@example.com\n");
    assert!(reason.starts_with("mail is not UTF-8"), "{reason}");
    let text = "dn: uid=a\nuid: a\ndisplayName: A\ndisplayName: B\ncn: C\nwhenCreated: soon\n";
    let (own, notes) = user(Ldif, text);
    assert_eq!((&*own.display_name, attribute(&own, "cn")), ("A", "C".to_owned()));
    let left_out = ["displayName", "whencreated"].map(|name| notes.left_out.get(name));
    assert_eq!(left_out, [1, 1]);
}

#[test]
fn names_and_numbers_that_are_not_valid_are_kept() {
    let (own, notes) = user(Ldif, "dn: uid=a\nuid: 1\nuid: 2\nmobile: 12\nmobile: \n");
    assert_eq!(attribute(&own, "ldap_uid"), "1 | 2");
    assert_eq!((attribute(&own, "other_phone"), own.identities.len()), ("12".to_owned(), 0));
    assert_eq!((notes.kept.get("other_phone"), notes.kept.get("ldap_uid")), (1, 2));
    let card = "BEGIN:VCARD\nVERSION:4.0\nN:Lee;Ann;Q;;\nFN:Ann\nFN:Annie\nEND:VCARD\n";
    let notes = user(Vcard, card).1;
    assert_eq!(["further FN", "further parts of N"].map(|name| notes.left_out.get(name)), [1, 1]);
    let text = r#"[{"user_id":"auth0|1","identities":[
        {"provider":"auth0","user_id":"1"},
        {"provider":"email","user_id":"2","profileData":{"email":"b@example.com"}}]}]"#;
    let (_, notes, _) = read(Auth0, text);
    assert_eq!(notes.left_out.get("identities of the account itself"), 1);
    let text = r#"[{"localId":"1","email":"a@example.com","providerUserInfo":[
        {"providerId":"password","email":"a@example.com"},
        {"providerId":"password","email":"b@example.com"}]}]"#;
    assert_eq!(user(Firebase, text).1.left_out.get("providerUserInfo.email"), 1);
}

#[test]
fn files_have_the_encoding_that_is_named() {
    let latin = named("windows-1252").ok();
    let options = ReadOptions { encoding: latin, ..ReadOptions::default() };
    for (format, text) in [
        (Okta, &b"login,displayName\na@example.com,Andr\xe9\n"[..]),
        (Ldif, b"dn: uid=a\nuid: a\ncn: Andr\xe9\n"),
        (Vcard, b"BEGIN:VCARD\nVERSION:4.0\nFN:Andr\xe9\nEND:VCARD\n"),
    ] {
        let (users, ..) = read_as(format, text, &options);
        assert_eq!(users[0].as_ref().unwrap().display_name, "André", "{format:?}");
    }
}

#[test]
fn cards_have_schemes_and_versions_as_programs_write_them() {
    let card = "BEGIN:VCARD\nVERSION: 4.0 \nEMAIL:MailTo:a@example.com\nEND:VCARD\n";
    let (own, _) = user(Vcard, card);
    let identifier = own.identities[0].identifier.as_ref().and_then(|own| own.kind.clone());
    assert_eq!(identifier, Some(IdentifierKind::Email("a@example.com".to_owned())));
}

#[test]
fn users_of_auth0_have_an_id() {
    assert_eq!(guess(br#"{"email":"a@example.com","email_verified":true}"#), None);
    assert_eq!(guess(br#"{"user_id":"auth0|1","email_verified":true}"#), Some(Auth0));
}
