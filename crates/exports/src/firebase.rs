//! The accounts of Firebase as JSON, as `firebase auth:export` writes them.

use crate::json::{Object, Shape};
use crate::person::Person;

pub const SHAPE: Shape = Shape {
    source: "firebase",
    lists: &["users"],
    is_lines: false,
    of_users: &[],
    container: None,
    state: "",
    providers: "",
    outside: "",
    advice: "the file has no users: write it by firebase auth:export FILE --format=json",
    read,
};

/// Providers that are the account itself: its email and its telephone number.
const OWN: [&str; 4] = ["password", "phone", "emailLink", "firebase"];

fn read(mut object: Object, person: &mut Person<'_>) -> Result<bool, String> {
    let id = object.text("localId");
    if id.is_empty() {
        return Err("an account of Firebase has a localId, and this has none".to_owned());
    }
    object.user_times(person, "createdAt", "updatedAt");
    person.own("firebase_uid", &id);
    person.display_name(&object.text("displayName"));
    object.state("disabled", true, person);
    let (email, is_verified) = (object.text("email"), object.flag("emailVerified"));
    let n = person.email(&email);
    if is_verified == Some(true) {
        person.verify(n, None);
    }
    let phone = object.text("phoneNumber");
    person.phone(&phone);
    accounts(&mut object, (&email, &phone), person);
    claims(&mut object, person);
    object.leave_out_rest("", person.notes);
    Ok(true)
}

/// The accounts at providers. Those that are the account itself are counted if they differ from it.
fn accounts(object: &mut Object, (own_email, own_phone): (&str, &str), person: &mut Person<'_>) {
    for mut account in object.objects("providerUserInfo") {
        let (provider, subject) = (account.text("providerId"), account.text("rawId"));
        let (name, email) = (account.text("displayName"), account.text("email"));
        if OWN.contains(&&*provider) {
            if account.text("phoneNumber") != own_phone && provider == "phone" {
                person.notes.left_out.add("providerUserInfo.phoneNumber");
            }
            if !email.is_empty() && email != own_email {
                person.notes.left_out.add("providerUserInfo.email");
            }
            account.leave_out_rest("providerUserInfo.", person.notes);
            continue;
        }
        let shown = if email.is_empty() { &name } else { &email };
        person.social(&provider, &subject, shown);
        person.display_name(&name);
        account.leave_out_rest("providerUserInfo.", person.notes);
    }
}

/// The custom claims: an object, or its JSON as text.
fn claims(object: &mut Object, person: &mut Person<'_>) {
    for key in ["customAttributes", "customClaims"] {
        let text = object.text(key);
        let mut claims = object.object(key);
        if !text.is_empty() {
            match serde_json::from_str(&text) {
                Ok(parsed) => claims = Object(parsed),
                Err(_) => person.notes.leave_out(key),
            }
        }
        claims.keep_rest("claims.", person);
    }
}
