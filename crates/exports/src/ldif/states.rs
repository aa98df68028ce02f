//! Whether an entry is of somebody who is disabled, or deleted, in the words of several servers.

use super::Record;
use crate::person::Person;

/// The attributes that are TRUE for accounts that are disabled.
const FLAGS: [&str; 3] = ["nsAccountLock", "loginDisabled", "msDS-UserAccountDisabled"];
/// The bit of `userAccountControl` for accounts that are disabled.
const DISABLED: i64 = 2;
/// The time at which an account was locked, if it stays so until somebody unlocks it.
const FOR_EVER: &str = "000001010000Z";

/// Whether the entry is what a server keeps of somebody who is deleted.
pub fn is_deleted(record: &mut Record) -> bool {
    let is = |name: &str, wanted: &str| {
        let values = record.values.get(name).map(|(_, values)| values);
        let mut values = values.into_iter().flatten();
        values.any(|value| value.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    let is_deleted = is("isdeleted", "true") || is("inetuserstatus", "deleted");
    if !is_deleted && is("isdeleted", "false") {
        record.values.remove("isdeleted");
    }
    is_deleted
}

/// Reads the state. There is no user if it is not understood.
pub fn read(record: &mut Record, person: &mut Person<'_>) {
    for name in FLAGS {
        for text in texts(record, &name.to_lowercase()) {
            match text.to_lowercase().parse::<bool>() {
                Ok(is_disabled) => person.set_disabled(is_disabled),
                Err(_) => person.unknown_state(name),
            }
        }
    }
    for text in texts(record, "useraccountcontrol") {
        match text.parse::<i64>() {
            Ok(bits) => person.set_disabled(bits & DISABLED != 0),
            Err(_) => person.unknown_state("userAccountControl"),
        }
    }
    for text in texts(record, "inetuserstatus") {
        match &*text.to_lowercase() {
            "active" => {}
            "inactive" => person.set_disabled(true),
            _ => person.unknown_state("inetUserStatus"),
        }
    }
    if !texts(record, "isdeleted").is_empty() {
        person.unknown_state("isDeleted");
    }
    for text in texts(record, "pwdaccountlockedtime") {
        match &*text {
            FOR_EVER => person.set_disabled(true),
            _ => person.notes.leave_out("pwdAccountLockedTime"),
        }
    }
}

/// Takes the texts of a name that are not blank, without white space around them.
fn texts(record: &mut Record, name: &str) -> Vec<String> {
    let texts = record.texts(name).into_iter().map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}
