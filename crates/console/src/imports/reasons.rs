//! The reasons of rejects in the words of people.

/// A reason in words; a reason that is not known stays as it is.
pub fn words(reason: &str) -> String {
    const WORDS: [(&str, &str); 15] = [
        ("IDENTIFIER_INVALID", "Not in the form of such a value"),
        ("IDENTITY_TAKEN", "Belongs to another user"),
        ("IDENTITY_HELD", "Belonged to another user until recently"),
        ("IDENTITY_RESERVED", "A name that is reserved"),
        ("IDENTITY_CONFUSABLE", "Looks like the handle of another user"),
        ("IDENTIFIER_DUPLICATE", "Twice in one row"),
        ("USER_EXISTS", "The user exists already, with other values"),
        ("USER_DELETED", "The user was deleted"),
        ("USER_ID_INVALID", "Not the id of a user"),
        ("LINE_AMBIGUOUS", "Fits several users"),
        ("LINE_INVALID", "Cannot be read"),
        ("FIELD_INVALID", "A value that is not allowed"),
        ("ATTRIBUTE_INVALID", "A value that the attribute does not allow"),
        ("TENANT_EXISTS", "The tenant exists already, with other policies"),
        ("PRIMARY_MISSING", "The user was merged into one who is not there"),
    ];
    let known = WORDS.iter().find(|(known, _)| *known == reason);
    known.map_or_else(|| sentence(reason), |(_, words)| (*words).to_owned())
}

/// `LAST_IDENTITY` as `Last identity`.
fn sentence(reason: &str) -> String {
    let text = reason.replace('_', " ").to_lowercase();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words() {
        assert_eq!(words("IDENTITY_TAKEN"), "Belongs to another user");
        assert_eq!(words("LAST_IDENTITY"), "Last identity");
    }
}
