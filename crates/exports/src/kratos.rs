//! The identities of Ory Kratos as JSON, as its API and its command line list them.

use serde_json::Value;

use crate::json::{Object, Shape};
use crate::person::Person;

pub const SHAPE: Shape = Shape {
    source: "kratos",
    lists: &["identities"],
    is_lines: false,
    of_users: &["traits", "schema_id"],
    container: None,
    state: "",
    providers: "",
    outside: "",
    advice: "the file has no identities: write the answer of GET /admin/identities to a file",
    read,
};

/// The traits that are addresses of each kind.
const EMAILS: [&str; 3] = ["email", "emails", "email_address"];
const PHONES: [&str; 4] = ["phone", "phones", "phone_number", "mobile"];
const USERNAMES: [&str; 3] = ["username", "user_name", "handle"];

fn read(mut object: Object, person: &mut Person<'_>) -> Result<bool, String> {
    let id = object.text("id");
    if id.is_empty() || !object.0.contains_key("traits") {
        return Err("an identity of Kratos has an id and traits, and this has not".to_owned());
    }
    object.user_times(person, "created_at", "updated_at");
    person.own("kratos_id", &id);
    object.keep(
        &[
            ("external_id", "kratos_external_id"),
            ("schema_id", "kratos_schema_id"),
            ("organization_id", "kratos_organization_id"),
        ],
        person,
    );
    match object.0.remove("state") {
        None | Some(Value::Null) => {}
        Some(Value::String(state)) if state.trim().is_empty() => {}
        Some(Value::String(state)) if state == "inactive" => person.set_disabled(true),
        Some(Value::String(state)) if state == "active" => person.set_disabled(false),
        Some(_) => person.unknown_state("state"),
    }
    for key in ["schema_url", "state_changed_at"] {
        object.0.remove(key);
    }
    addresses(&mut object, person);
    traits(object.object("traits"), person);
    credentials(object.object("credentials"), person);
    object.object("metadata_public").keep_rest("metadata_public.", person);
    object.object("metadata_admin").keep_rest("metadata_admin.", person);
    object.leave_out_rest("", person.notes);
    Ok(true)
}

/// The addresses that can be verified, and those for recovery, which are among them as a rule.
fn addresses(object: &mut Object, person: &mut Person<'_>) {
    let verifiable = object.objects("verifiable_addresses");
    for mut address in verifiable.into_iter().chain(object.objects("recovery_addresses")) {
        let (via, value) = (address.text("via"), address.text("value"));
        let n = match &*via {
            "email" => person.email(&value),
            "sms" | "phone" => person.phone(&value),
            _ => {
                person.notes.leave_out(&format!("addresses via {via}"));
                continue;
            }
        };
        if address.flag("verified") == Some(true) {
            person.verify(n, address.time("verified_at"));
        }
    }
}

fn traits(mut traits: Object, person: &mut Person<'_>) {
    for email in EMAILS.iter().flat_map(|key| traits.texts(key)).collect::<Vec<_>>() {
        person.email(&email);
    }
    for phone in PHONES.iter().flat_map(|key| traits.texts(key)).collect::<Vec<_>>() {
        person.phone(&phone);
    }
    for key in USERNAMES {
        person.login("kratos_username", &traits.text(key));
    }
    let name = traits.text("name");
    let parts =
        ["first", "last"].map(|part| match traits.0.get("name").and_then(|n| n.get(part)) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        });
    let [first, last] = ["first_name", "last_name"].map(|key| match traits.0.get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    });
    let shown = traits.text("display_name");
    let whole = [&shown, &name, &parts.join(" "), &format!("{first} {last}")];
    whole.into_iter().for_each(|name| person.display_name(name));
    if name.trim() != person.user.display_name {
        person.own("name", &name);
    }
    traits.keep_rest("", person);
}

/// The credentials: their identifiers are kept, the secrets in them are not.
fn credentials(credentials: Object, person: &mut Person<'_>) {
    for (kind, value) in credentials.0 {
        let Value::Object(value) = value else { continue };
        let mut credential = Object(value);
        person.notes.secrets.add(&format!("credentials.{kind}"));
        let identifiers = credential.texts("identifiers");
        for identifier in identifiers {
            match (&*kind, identifier.split_once(':')) {
                ("oidc" | "saml", Some((provider, subject))) => {
                    person.connection((&*kind, provider), subject, "");
                }
                ("oidc" | "saml", None) => {
                    person.notes.left_out.add("accounts at providers without an id");
                }
                ("password", _) => person.login("kratos_identifier", &identifier),
                _ => {}
            }
        }
    }
}
