//! What was done, in sentences.

use polynym_presentation::action::Action;

use crate::session::Message;

/// What was done, by its name.
const DONE: [(&str, &str); 16] = [
    ("created", "The user was created."),
    ("renamed", "The display name was changed."),
    ("linked", "The identity was linked."),
    ("unlinked", "The identity was unlinked."),
    ("replaced", "The identity was replaced."),
    ("moved", "The identity was moved to this user."),
    ("verified", "The identity is marked as verified."),
    ("unverified", "The identity is marked as not verified."),
    ("primary", "The identity is the primary one of its kind."),
    ("set", "The attribute was set."),
    ("removed", "The attribute was removed."),
    ("sent", "The notice was sent."),
    ("read", "The notices are marked as read."),
    ("removed-notice", "The notice was deleted."),
    ("undone", "The change was undone."),
    ("gone", "The user no longer has this identity."),
];

/// The message about what was done.
pub fn done(name: &'static str) -> Message {
    let known = DONE.iter().find(|(known, _)| *known == name);
    let text = known.map(|(_, text)| (*text).to_owned()).or_else(|| Action::sentence(name));
    Message::done(name, text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_sentences() {
        assert_eq!(done("linked").text, "The identity was linked.");
        assert_eq!(done("disabled").text, "The user was disabled.");
    }
}
