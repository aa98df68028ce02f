//! The users of Auth0 as JSON Lines, as its export jobs write them.

use crate::json::{Object, Shape};
use crate::person::Person;

pub const SHAPE: Shape = Shape {
    source: "auth0",
    lists: &["users"],
    is_lines: true,
    of_users: &[],
    container: None,
    state: "blocked",
    providers: "",
    outside: "",
    advice: "the file has no users: export them as JSON, which has one user per line",
    read,
};

/// The names of fields in exports of the extension, and those of the API.
const NAMES: [(&str, &str); 9] = [
    ("Id", "user_id"),
    ("Given Name", "given_name"),
    ("Family Name", "family_name"),
    ("Nickname", "nickname"),
    ("Name", "name"),
    ("Email", "email"),
    ("Email Verified", "email_verified"),
    ("Created At", "created_at"),
    ("Updated At", "updated_at"),
];

/// Providers that are the account itself.
const OWN: [&str; 3] = ["auth0", "email", "sms"];
/// Providers that stand for one of many: the connection names it.
const GENERIC: [&str; 11] = [
    "ad",
    "adfs",
    "auth0-adldap",
    "google-apps",
    "oauth2",
    "oidc",
    "okta",
    "pingfederate",
    "samlp",
    "sharepoint",
    "waad",
];

fn read(mut object: Object, person: &mut Person<'_>) -> Result<bool, String> {
    for (written, name) in NAMES {
        if let Some(value) = object.0.remove(written) {
            object.0.entry(name).or_insert(value);
        }
    }
    let id = object.text("user_id");
    if id.is_empty() {
        return Err("a user of Auth0 has a user_id, and this has none: name it among the fields \
                    of the export"
            .to_owned());
    }
    object.user_times(person, "created_at", "updated_at");
    person.own("auth0_user_id", &id);
    object.state("blocked", true, person);
    names(&mut object, person);
    addresses(&mut object, person);
    person.login("auth0_username", &object.text("username"));
    accounts(&mut object, &id, person);
    object.object("user_metadata").keep_rest("user_metadata.", person);
    object.object("app_metadata").keep_rest("app_metadata.", person);
    object.leave_out_rest("", person.notes);
    Ok(true)
}

fn names(object: &mut Object, person: &mut Person<'_>) {
    let name = object.text("name");
    // Without a name, Auth0 writes the address.
    if !name.contains('@') {
        person.display_name(&name);
    }
    let (given, family) = (object.text("given_name"), object.text("family_name"));
    person.display_name(&format!("{} {}", given.trim(), family.trim()));
    person.own("given_name", &given);
    person.own("family_name", &family);
    object.keep(&[("nickname", "nickname"), ("locale", "locale")], person);
}

fn addresses(object: &mut Object, person: &mut Person<'_>) {
    let (email, is_verified) = (object.text("email"), object.flag("email_verified"));
    let n = person.email(&email);
    if is_verified == Some(true) {
        person.verify(n, None);
    }
    let (phone, is_verified) = (object.text("phone_number"), object.flag("phone_verified"));
    let n = person.phone(&phone);
    if is_verified == Some(true) {
        person.verify(n, None);
    }
}

/// The accounts at providers. Without a list of them, the id says which one it is.
fn accounts(object: &mut Object, id: &str, person: &mut Person<'_>) {
    let accounts = object.objects("identities");
    if accounts.is_empty() {
        let (provider, subject) = id.split_once('|').unwrap_or_default();
        match subject.split_once('|').filter(|_| GENERIC.contains(&provider)) {
            _ if subject.is_empty() || OWN.contains(&provider) => {}
            Some((connection, subject)) => person.connection((provider, connection), subject, ""),
            None if GENERIC.contains(&provider) => {
                person.notes.left_out.add("accounts without the name of their connection");
            }
            None => person.social(provider, subject, ""),
        }
    }
    for mut account in accounts {
        let (provider, connection) = (account.text("provider"), account.text("connection"));
        let subject = account.text("user_id");
        let name = account.object("profileData");
        account.flag("isSocial");
        account.leave_out_rest("identities.", person.notes);
        let name = profile(name, person);
        if OWN.contains(&&*provider) {
            if !name.trim().is_empty() || !id.ends_with(&*subject) {
                person.notes.left_out.add("identities of the account itself");
            }
            continue;
        }
        // The ids of generic connections begin with their names.
        let own = subject.strip_prefix(&format!("{connection}|")).unwrap_or(&subject);
        match GENERIC.contains(&&*provider) && !connection.is_empty() {
            true => person.connection((&provider, &connection), own, &name),
            false => person.social(&provider, own, &name),
        }
    }
}

/// The name of an account at its provider.
fn profile(mut profile: Object, person: &mut Person<'_>) -> String {
    let (email, name) = (profile.text("email"), profile.text("name"));
    profile.leave_out_rest("identities.profileData.", person.notes);
    if email.is_empty() { name } else { email }
}
