//! The realm of Keycloak as JSON, as `kc.sh export` and the API for admins write it.

use crate::json::{Object, Shape};
use crate::person::Person;
use crate::providers::is_public;

pub const SHAPE: Shape = Shape {
    source: "keycloak",
    lists: &["users"],
    is_lines: false,
    of_users: &[],
    container: Some(("realm", "export one realm, by kc.sh export --realm NAME")),
    state: "",
    providers: "identityProviders",
    outside: "settings of the realm",
    advice: "the file has no users: export the realm with them, by kc.sh export --users realm_file",
    read,
};

/// The attributes that are telephone numbers, and those that say whether they are verified.
const PHONES: [(&str, &str); 5] = [
    ("phoneNumber", "phoneNumberVerified"),
    ("phone_number", "phone_number_verified"),
    ("phone", ""),
    ("mobile", ""),
    ("mobileNumber", ""),
];

fn read(mut object: Object, person: &mut Person<'_>) -> Result<bool, String> {
    let (id, username) = (object.text("id"), object.text("username"));
    if id.is_empty() && username.is_empty() {
        return Err("a user of Keycloak has an id or a username, and this has neither".to_owned());
    }
    if !object.text("serviceAccountClientId").is_empty() {
        person.notes.leave_out("service accounts");
        return Ok(false);
    }
    object.user_times(person, "createdTimestamp", "updatedTimestamp");
    person.own("keycloak_id", &id);
    let (first, last) = (object.text("firstName"), object.text("lastName"));
    person.display_name(&format!("{} {}", first.trim(), last.trim()));
    person.own("first_name", &first);
    person.own("last_name", &last);
    object.state("enabled", false, person);

    let (email, is_verified) = (object.text("email"), object.flag("emailVerified"));
    let n = person.email(&email);
    person.make_primary(n);
    if is_verified == Some(true) {
        person.verify(n, None);
    }
    person.login("keycloak_username", &username);
    for mut account in object.objects("federatedIdentities") {
        let (provider, subject) = (account.text("identityProvider"), account.text("userId"));
        // The alias is no kind: the settings of the realm name that, if they are before the users.
        let kinds = person.kinds;
        let kind = kinds.and_then(|kinds| kinds.get(&provider)).filter(|kind| is_public(kind));
        let name = account.text("userName");
        match kind {
            Some(kind) => person.social(kind, &subject, &name),
            None => person.connection(("keycloak", &provider), &subject, &name),
        }
        account.leave_out_rest("federatedIdentities.", person.notes);
    }
    attributes(object.object("attributes"), person);
    object.leave_out_rest("", person.notes);
    Ok(true)
}

/// The attributes: each has a list of texts, mostly of one.
fn attributes(mut attributes: Object, person: &mut Person<'_>) {
    for (name, flag) in PHONES {
        let numbers = attributes.texts(name);
        let flags = if flag.is_empty() { Vec::new() } else { attributes.texts(flag) };
        // Of several numbers nobody knows which one is verified.
        let is_true = flags.iter().any(|flag| flag.trim().eq_ignore_ascii_case("true"));
        let is_verified = is_true && numbers.len() == 1 && flags.len() == 1;
        if is_true && !is_verified {
            person.notes.leave_out(&format!("attributes.{flag}"));
        }
        for number in numbers {
            let n = person.phone(&number);
            if is_verified {
                person.verify(n, None);
            }
        }
    }
    let names: Vec<String> = attributes.0.keys().cloned().collect();
    for name in names {
        let texts = attributes.texts(&name);
        person.texts(&name, texts);
    }
    attributes.leave_out_rest("attributes.", person.notes);
}
