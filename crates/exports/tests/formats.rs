//! The users of the example files of each format.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use polynym_exports::{ExportFormat, HEAD_BYTES, Notes, ReadOptions, guess, open};
use polynym_identifier::Identifier;
use polynym_lines::raw_identifier;
use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::{State, User};

const KEYCLOAK: &str = include_str!("../../../tests/data/exports/keycloak.json");
const FIREBASE: &str = include_str!("../../../tests/data/exports/firebase.json");
const AUTH0: &str = include_str!("../../../tests/data/exports/auth0.json");
const KRATOS: &str = include_str!("../../../tests/data/exports/kratos.json");
const OKTA: &str = include_str!("../../../tests/data/exports/okta.csv");
const ENTRA: &str = include_str!("../../../tests/data/exports/entra.csv");
const LDIF: &str = include_str!("../../../tests/data/exports/people.ldif");
const VCARD: &str = include_str!("../../../tests/data/exports/cards.vcf");

/// The users of a file, and what was left out.
fn users(format: ExportFormat, text: &str) -> (Vec<User>, Notes) {
    let options = ReadOptions { region: "DE".to_owned(), encoding: None };
    let mut users = open(format, text.as_bytes(), &options).unwrap();
    let (mut found, mut line, mut bytes) = (Vec::new(), 0, 0);
    while let Some(entry) = users.next_user().unwrap() {
        assert!(entry.line > line, "lines count up");
        (line, bytes) = (entry.line, bytes + entry.bytes);
        found.push(entry.user.unwrap());
    }
    assert!(bytes <= text.len() && bytes > text.len() / 2, "{bytes} of {}", text.len());
    (found, users.notes().clone())
}

/// The canonical forms of a user's identities: those that are verified end with "!".
fn identities(user: &User) -> Vec<String> {
    let canonical = user.identities.iter().map(|identity| {
        let raw = raw_identifier(identity.identifier.as_ref()).unwrap();
        let identifier = Identifier::parse(raw).unwrap();
        let mark = if identity.verify_time.is_some() { "!" } else { "" };
        format!("{}:{}{mark}", identifier.kind(), identifier.canonical())
    });
    canonical.collect()
}

/// The attributes as texts, one a line.
fn attributes(user: &User) -> Vec<String> {
    let text = |kind: &Kind| match kind {
        Kind::StringValue(text) => text.clone(),
        Kind::IntValue(number) => number.to_string(),
        Kind::BoolValue(yes) => yes.to_string(),
        Kind::ListValue(list) => list.values.join(" | "),
        other => format!("{other:?}"),
    };
    let attributes = user.attributes.iter();
    attributes
        .map(|(name, value)| format!("{name}={}", text(value.kind.as_ref().unwrap())))
        .collect()
}

fn counts(counts: &polynym_exports::Counts) -> Vec<String> {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect()
}

#[test]
fn keycloak_has_accounts_attributes_and_verified_addresses() {
    let (users, notes) = users(ExportFormat::Keycloak, KEYCLOAK);
    let [ines, tomas, marta] = &*users else { panic!("{users:?}") };
    assert_eq!(ines.display_name, "Inês Duarte");
    assert_eq!(
        identities(ines),
        [
            "email:ines.duarte@example.com!",
            "handle:ines.duarte",
            "social:keycloak-google/107000000000000000001",
            "phone:+351211234567",
        ]
    );
    let email = &ines.identities[0];
    assert_eq!((email.verify_time, &*email.verified_by), (ines.create_time, "keycloak"));
    assert_eq!(ines.create_time.unwrap().to_string(), "2021-03-04T10:11:12Z");
    assert_eq!(
        attributes(ines),
        [
            "berth=12 | 14",
            "first_name=Inês",
            "keycloak_id=5f0a1c52-8a43-4c1c-9a40-6b3c5a0e1f01",
            "last_name=Duarte",
            "locale=pt",
        ]
    );
    assert_eq!(
        (identities(tomas), tomas.state()),
        (vec!["email:tomas@example.com".to_owned()], State::Disabled)
    );
    assert_eq!(identities(marta), ["social:keycloak-github/900417"]);
    assert_eq!(marta.identities[0].display, "marta-v");
    assert!(attributes(marta).contains(&"keycloak_username=20417".to_owned()));
    assert_eq!(counts(&notes.secrets), ["credentials 1"]);
    assert_eq!(counts(&notes.kept), ["keycloak_username 1"]);
    let left_out = [
        "groups 1",
        "realmRoles 2",
        "requiredActions 1",
        "service accounts 1",
        "settings of the realm 7",
    ];
    assert_eq!(counts(&notes.left_out), left_out);
}

#[test]
fn firebase_has_providers_and_claims() {
    let (users, notes) = users(ExportFormat::Firebase, FIREBASE);
    let [noor, caller, petr] = &*users else { panic!("{users:?}") };
    let wanted = ["email:noor.haddad@example.com!", "social:google/107000000000000000002"];
    assert_eq!(identities(noor), wanted);
    let id = "firebase_uid=Qm7bW1pX2cN4rT8vK0aLzE5sYd11";
    assert_eq!(attributes(noor), ["claims.plan=gold", "claims.seats=3", id]);
    assert_eq!(identities(caller), ["phone:+4930901820"]);
    assert_eq!(
        (identities(petr), petr.state()),
        (vec!["email:petr.novak@example.com".to_owned()], State::Disabled)
    );
    assert_eq!(counts(&notes.secrets), ["passwordHash 2", "salt 2"]);
    let left_out = ["lastSignedInAt 2", "photoUrl 1", "providerUserInfo.photoUrl 1"];
    assert_eq!(counts(&notes.left_out), left_out);
}

#[test]
fn auth0_has_connections_and_metadata() {
    let (users, notes) = users(ExportFormat::Auth0, AUTH0);
    let [yara, lena, omar] = &*users else { panic!("{users:?}") };
    assert_eq!(identities(yara), ["email:yara.okafor@example.com!", "social:github/583200"]);
    assert_eq!(
        attributes(yara),
        [
            "app_metadata.plan=team",
            "auth0_user_id=auth0|61f0c1a2b3d4e5f601234561",
            "nickname=yara",
            "user_metadata.address.city=Lagos",
            "user_metadata.newsletter=true",
        ]
    );
    assert_eq!(
        identities(lena),
        ["email:lena.brandt@example.com!", "social:google/107000000000000000003"]
    );
    assert_eq!(
        identities(omar),
        ["email:omar.said@example.com", "handle:omar.said", "social:warehouse/0042"]
    );
    assert_eq!((&*omar.display_name, omar.state()), ("", State::Disabled));
    assert_eq!(counts(&notes.secrets), ["identities.access_token 1"]);
    let left_out = ["last_ip 1", "logins_count 1", "picture 1"];
    assert_eq!(counts(&notes.left_out), left_out);
    let extension = r#"{"Id":"auth0|1","Name":"A B","Email":"a@example.com","Email Verified":true,
        "Created At":"2022-01-26T08:00:00.000Z"}"#
        .replace('\n', "");
    assert_eq!(guess(extension.as_bytes()), Some(ExportFormat::Auth0));
    let (users, _) = self::users(ExportFormat::Auth0, &extension);
    assert_eq!(identities(&users[0]), ["email:a@example.com!"]);
}

#[test]
fn kratos_has_traits_addresses_and_credentials() {
    let (users, notes) = users(ExportFormat::Kratos, KRATOS);
    let [aiko, bruno] = &*users else { panic!("{users:?}") };
    assert_eq!(aiko.display_name, "Aiko Tan");
    assert_eq!(
        identities(aiko),
        ["email:aiko.tan@example.com!", "handle:aiko", "social:oidc-google/107000000000000000004"]
    );
    assert_eq!(aiko.identities[0].verify_time.unwrap().to_string(), "2023-02-01T09:05:00Z");
    assert_eq!(
        attributes(aiko),
        [
            "kratos_id=9f425a8d-7efc-4768-8f23-7647a74fdf13",
            "kratos_schema_id=customer",
            "metadata_public.tier=2",
            "name.first=Aiko",
            "name.last=Tan",
            "newsletter=true",
        ]
    );
    assert_eq!(identities(bruno), ["email:bruno.keller@example.com", "phone:+4930901821"]);
    assert_eq!(bruno.state(), State::Disabled);
    assert_eq!(counts(&notes.secrets), ["credentials.oidc 1", "credentials.password 1"]);
    assert_eq!(counts(&notes.left_out), Vec::<String>::new());
    let listed = format!(r#"{{"identities": {KRATOS}, "next_page_token": "x"}}"#);
    let (again, notes) = self::users(ExportFormat::Kratos, &listed);
    assert_eq!((again, counts(&notes.left_out)), (users, vec!["next_page_token 1".to_owned()]));
}

#[test]
fn okta_has_logins_and_states() {
    let (users, notes) = users(ExportFormat::Okta, OKTA);
    let [mei, raj, ola] = &*users else { panic!("{users:?}") };
    assert_eq!(
        identities(mei),
        ["email:mei.chen@example.com", "email:mei@example.org", "phone:+4930901822"]
    );
    assert_eq!(
        attributes(mei),
        [
            "countryCode=DE",
            "department=Logistics",
            "employeeNumber=0042",
            "family_name=Chen",
            "given_name=Mei",
            "okta_id=00u1a2b3c4D5e6F7g801",
            "okta_status=ACTIVE",
        ]
    );
    assert_eq!(mei.display_name, "Mei Chen");
    assert_eq!(identities(raj), ["handle:raj.patel", "email:raj.patel@example.com"]);
    assert_eq!((raj.state(), ola.state()), (State::Disabled, State::Unspecified));
    assert_eq!(identities(ola), ["email:ola.berg@example.com", "phone:+4723150000"]);
    assert!(notes.is_empty());
}

#[test]
fn entra_has_guests_and_regions() {
    let (users, notes) = users(ExportFormat::Entra, ENTRA);
    let [eva, nils, kim] = &*users else { panic!("{users:?}") };
    assert_eq!(
        identities(eva),
        ["email:eva.lund@fjord.example.com", "phone:+4723150001", "email:eva@example.org"]
    );
    assert_eq!(eva.create_time.unwrap().to_string(), "2021-03-04T10:11:12Z");
    let id = "entra_object_id=2f1c9a70-3c5e-4d61-9a10-7d2b6c3e0a01".to_owned();
    assert!(
        attributes(eva).contains(&id) && attributes(eva).contains(&"jobTitle=Pilot".to_owned())
    );
    assert_eq!((identities(nils).len(), nils.state()), (1, State::Disabled));
    assert_eq!(identities(kim), ["email:kim.ray@example.com"]);
    assert_eq!(counts(&notes.kept), ["entra_user_principal_name 1"]);
}

#[test]
fn ldif_has_people_of_two_schemas() {
    let (users, notes) = users(ExportFormat::Ldif, LDIF);
    let [hugo, jose, ana] = &*users else { panic!("{users:?}") };
    assert_eq!(
        identities(hugo),
        [
            "email:hugo.marin@example.com",
            "email:hugo@example.org",
            "handle:hugo.marin",
            "phone:+33155552100",
        ]
    );
    assert_eq!(
        attributes(hugo),
        [
            "cn;lang-fr=Hugo Marin",
            "description=Il est là le mardi et le jeudi.",
            "givenName=Hugo",
            "ldap_dn=uid=hugo.marin,ou=people,dc=example,dc=com",
            "ldap_entry_uuid=6a0e2c9e-07b1-1039-8e0c-3d5f1a7b9c01",
            "sn=Marin",
            "title=Chef de quai",
        ]
    );
    assert_eq!(hugo.create_time.unwrap().to_string(), "2019-05-10T09:30:00Z");
    assert_eq!((&*jose.display_name, jose.state()), ("José Vidal", State::Disabled));
    assert_eq!(
        identities(ana),
        [
            "email:ana.reyes@example.com",
            "email:ana@example.com",
            "handle:areyes",
            "email:areyes@corp.example.com",
        ]
    );
    let guid = "ldap_object_guid=03020100-0504-0706-0809-0a0b0c0d0e0f";
    assert!(attributes(ana).contains(&guid.to_owned()));
    assert!(ana.identities[0].primary);
    assert_eq!(counts(&notes.secrets), ["unicodePwd 1", "userPassword 1"]);
    let left_out = [
        "entries of domain 1",
        "entries of groupOfNames 1",
        "entries of organizationalUnit 1",
        "jpegPhoto 1",
        "memberOf 1",
    ];
    assert_eq!(counts(&notes.left_out), left_out);
}

#[test]
fn vcards_have_two_versions() {
    let (users, notes) = users(ExportFormat::Vcard, VCARD);
    let [emi, jonas] = &*users else { panic!("{users:?}") };
    assert_eq!(
        identities(emi),
        [
            "email:emi.sato@example.com",
            "email:emi@example.org",
            "phone:+81355550100",
            "url:https://www.linkedin.com/in/emi-sato-example",
        ]
    );
    assert!(emi.identities[0].primary);
    assert_eq!(
        attributes(emi),
        [
            "adr=1-2 Minato, Tokyo, 105-0001, Japan",
            "family_name=Sato",
            "fax=+81 3 5555 0101",
            "given_name=Emi",
            "note=Comes on Mondays, mostly.\nAsk for the long ladder.",
            "org=Example, Harbour",
            "vcard_uid=5d4f0c1e-8b1a-4b9e-9b0a-1f2e3d4c5b01",
        ]
    );
    assert_eq!(identities(jonas), ["email:jonas.weiss@example.com", "phone:+4930901823"]);
    assert_eq!(jonas.display_name, "Jonas Weiß");
    assert_eq!(counts(&notes.left_out), ["PHOTO 1", "cards of the kind group 1"]);
}

#[test]
fn formats_are_known_by_their_content() {
    let files = [KEYCLOAK, FIREBASE, AUTH0, KRATOS, OKTA, ENTRA, LDIF, VCARD];
    for (text, (format, ..)) in files.iter().zip(ExportFormat::ALL) {
        assert_eq!(guess(text.as_bytes()), Some(format));
        assert_eq!(guess(format!("\u{feff}{text}").as_bytes()), Some(format));
        let head = &text.as_bytes()[..text.len().min(HEAD_BYTES)];
        (0..head.len())
            .for_each(|end| assert!(guess(&head[..end]).is_none_or(|own| own == format)));
    }
    for text in [
        "",
        "{}",
        "[]",
        r#"{"displayName":"A","identities":[{"identifier":{"email":"a@example.com"}}]}"#,
        r#"{"attributes":{"email_verified":{"boolValue":true},"realm":{"stringValue":"x"}}}"#,
        r#"{"reason":"IDENTITY_TAKEN","original":{"attributes":{"keycloak_id":{}}}}"#,
        "email,handle,display_name\n",
        "login,firstName,lastName,email\n",
        "displayName,userPrincipalName,state\n",
        "version: 2\nkind: Tenant\n",
    ] {
        assert_eq!(guess(text.as_bytes()), None, "{text}");
    }
}
