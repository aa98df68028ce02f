//! Whether a cell has one identity, or several.

use crate::field::Field;

/// Fails if a cell looks like several values, or like none of the field. Advice names no list whose
/// values people would share.
///
/// # Errors
/// What the cell has, and what to do: in words.
pub fn check_single(field: &Field, text: &str) -> Result<(), String> {
    let is_name = is_distinguished_name(text);
    let separator = match field {
        Field::Url => None,
        Field::Social(_) if is_name => None,
        Field::Phone if text.matches("tel:").count() == 1 => text.find(','),
        Field::Email => text.find([';', ',']).filter(|_| text.matches('@').count() > 1),
        _ => text.find([';', ',']),
    };
    let Some(sign) = separator.and_then(|at| text.get(at..=at)) else { return Ok(()) };
    let name = field.name();
    if is_name {
        let advice = "map its column as an account, --map social.PROVIDER=COLUMN";
        return Err(format!("the cell has the name of an entry of a directory: {advice}"));
    }
    if *field != Field::Email && is_personal_name(text) {
        let advice = "map its column to display_name, or leave it out";
        return Err(format!("the cell has a name with a comma, and no {name}: {advice}"));
    }
    Err(format!("the cell has several values: map it as a list, --map '{name}[{sign}]=COLUMN'"))
}

/// Whether a text is the name of an entry of a directory (RFC 4514), such as
/// `CN=Ann Lee,OU=Staff,DC=example,DC=com`.
pub fn is_distinguished_name(text: &str) -> bool {
    let (mut parts, mut part, mut signs) = (Vec::new(), String::new(), text.chars());
    while let Some(sign) = signs.next() {
        match sign {
            ',' | ';' | '+' => parts.push(std::mem::take(&mut part)),
            // An escaped sign belongs to the value.
            '\\' => part.extend(signs.next()),
            sign => part.push(sign),
        }
    }
    parts.push(part);
    let is_key = |key: &str| {
        let key = key.trim();
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
    };
    let is_part = |part: &String| part.split_once('=').is_some_and(|(key, _)| is_key(key));
    parts.len() > 1 && parts.iter().all(is_part)
}

/// Whether a text looks like a name, as `Lee, Ann`.
fn is_personal_name(text: &str) -> bool {
    let is_word = |c: char| c.is_alphabetic() || c.is_whitespace() || "-.'’".contains(c);
    let mut parts = text.split(',').map(str::trim);
    let is_part = |part: &str| part.starts_with(char::is_uppercase) && part.chars().all(is_word);
    text.contains(", ") && parts.clone().count() == 2 && parts.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_are_known() {
        for name in ["CN=Ann Lee,OU=Staff", "uid=ann, dc=example", r"cn=a\,b+sn=c,2.5.4.3=x"] {
            assert!(is_distinguished_name(name), "{name}");
        }
        for other in ["CN=Ann Lee", "a,b", "a=1,b", "", "=,="] {
            assert!(!is_distinguished_name(other), "{other}");
        }
    }
}
