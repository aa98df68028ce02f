//! The realm of Keycloak as JSON, as `kc.sh export` and the API for admins write it.

use crate::json::{Object, Shape};
use crate::person::Person;

pub const SHAPE: Shape = Shape {
    source: "keycloak",
    lists: &["users"],
    is_lines: false,
    outside: "settings of the realm",
    advice: "the file has no users: export the realm with them, by kc.sh export --users realm_file",
    read,
};

/// The attributes that are telephone numbers.
const PHONES: [&str; 5] = ["phoneNumber", "phone_number", "phone", "mobile", "mobileNumber"];
/// The attributes by which Keycloak says whether the number is verified.
const PHONE_VERIFIED: [&str; 2] = ["phoneNumberVerified", "phone_number_verified"];

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
    person.text("keycloak_id", &id);
    let (first, last) = (object.text("firstName"), object.text("lastName"));
    person.display_name(&format!("{} {}", first.trim(), last.trim()));
    person.text("first_name", &first);
    person.text("last_name", &last);
    person.set_disabled(object.flag("enabled") == Some(false));

    let (email, is_verified) = (object.text("email"), object.flag("emailVerified"));
    if !email.is_empty() {
        let n = person.email(&email);
        person.make_primary(n);
        if is_verified == Some(true) {
            person.verify(n, None);
        }
    }
    person.login("keycloak_username", &username);
    for mut account in object.objects("federatedIdentities") {
        let (provider, subject) = (account.text("identityProvider"), account.text("userId"));
        person.social(&provider, &subject, &account.text("userName"));
        account.leave_out_rest("federatedIdentities.", person.notes);
    }
    attributes(object.object("attributes"), person);
    object.leave_out_rest("", person.notes);
    Ok(true)
}

/// The attributes: each has a list of texts, mostly of one.
fn attributes(mut attributes: Object, person: &mut Person<'_>) {
    let flags = PHONE_VERIFIED.iter().filter_map(|name| attributes.texts(name).pop());
    let is_verified = flags.last().is_some_and(|flag| flag == "true");
    for name in PHONES {
        for number in attributes.texts(name) {
            let n = person.phone(&number);
            if is_verified && name.contains("umber") {
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
