//! A property of a card: its name, its parameters and its value.

use crate::unfolded::Unfolded;

/// The limit of a property's parameters.
const MAX_PARAMETERS: usize = 100;

/// A property.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Property {
    /// The name in capital letters, without its group.
    pub name: String,
    /// The parameters, with names in capital letters.
    parameters: Vec<(String, String)>,
    /// The value as written.
    value: String,
}

impl Property {
    /// Parses a line.
    ///
    /// # Errors
    /// It has no name or no value: in words.
    pub fn parse(line: &Unfolded) -> Result<Self, String> {
        let number = line.line;
        let text = match line.is_cut {
            true => String::from_utf8_lossy(&line.text),
            false => str::from_utf8(&line.text)
                .map_err(|_| format!("line {number} is not UTF-8: export the cards again"))?
                .into(),
        };
        let wrong = || match line.is_cut {
            true => format!("line {number} is too long: export the card without it"),
            false => format!("line {number}: a property is NAME:VALUE; correct its source"),
        };
        let (head, value) = split_unquoted(&text, ':').ok_or_else(wrong)?;
        let (mut rest, mut parameters) = (Some(head), Vec::new());
        let mut name = None;
        while let Some(own) = rest {
            let (part, further) = match split_unquoted(own, ';') {
                Some((part, further)) => (part, Some(further)),
                None => (own, None),
            };
            rest = further;
            if parameters.len() >= MAX_PARAMETERS {
                return Err(format!("line {number} has more than {MAX_PARAMETERS} parameters"));
            }
            match (&name, part.split_once('=')) {
                (None, _) => name = Some(part.rsplit('.').next().unwrap_or(part)),
                (Some(_), Some((key, value))) => {
                    parameters.push((key.trim().to_uppercase(), value.replace('"', "")));
                }
                // Types of older cards have no name.
                (Some(_), None) => parameters.push(("TYPE".to_owned(), part.to_owned())),
            }
        }
        let name = name.map(|name| name.trim().to_uppercase()).unwrap_or_default();
        if name.is_empty() {
            return Err(wrong());
        }
        let encoding = parameters.iter().find(|(key, _)| key == "ENCODING");
        if encoding.is_some_and(|(_, own)| own.eq_ignore_ascii_case("QUOTED-PRINTABLE")) {
            let advice = "export the cards as 3.0 or 4.0";
            return Err(format!("line {number} has the form of vCard 2.1: {advice}"));
        }
        Ok(Self { name, parameters, value: value.to_owned() })
    }

    /// The value as text.
    pub fn text(&self) -> String {
        unescaped(&self.value)
    }

    /// The parts of a value such as a name or an address.
    pub fn parts(&self) -> Vec<String> {
        let (mut parts, mut part, mut is_escaped) = (Vec::new(), String::new(), false);
        for c in self.value.chars() {
            match c {
                ';' if !is_escaped => parts.push(unescaped(&std::mem::take(&mut part))),
                c => part.push(c),
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        parts.push(unescaped(&part));
        parts
    }

    /// The parts of a value that are not empty, as one text.
    pub fn joined(&self) -> String {
        let mut parts = self.parts();
        parts.retain(|part| !part.trim().is_empty());
        parts.join(", ")
    }

    /// The types in small letters, such as `home` and `fax`.
    pub fn types(&self) -> impl Iterator<Item = String> {
        let own = self.parameters.iter().filter(|(key, _)| key == "TYPE");
        own.flat_map(|(_, value)| value.split(',')).map(|kind| kind.trim().to_lowercase())
    }

    /// Whether it is the preferred one of its kind.
    pub fn is_preferred(&self) -> bool {
        let is_first = |(key, value): &(String, String)| key == "PREF" && value.trim() == "1";
        self.parameters.iter().any(is_first) || self.types().any(|kind| kind == "pref")
    }
}

/// The parts before and after a sign that is outside of double quotes.
fn split_unquoted(text: &str, sign: char) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let at = text.find(|c| {
        is_quoted ^= c == '"';
        c == sign && !is_quoted
    })?;
    Some((&text[..at], &text[at + sign.len_utf8()..]))
}

/// A text without its escapes.
fn unescaped(text: &str) -> String {
    let (mut plain, mut is_escaped) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        match (is_escaped, c) {
            (false, '\\') => is_escaped = true,
            (false, c) => plain.push(c),
            (true, c) => {
                plain.push(if matches!(c, 'n' | 'N') { '\n' } else { c });
                is_escaped = false;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(text: &str) -> Property {
        let (line, bytes, is_cut) = (1, text.len(), false);
        Property::parse(&Unfolded { line, bytes, text: text.into(), is_cut }).unwrap()
    }

    #[test]
    fn properties_have_parameters_and_escapes() {
        let phone = property("item1.tel;VALUE=uri;PREF=1;TYPE=\"voice,home\":tel:+1-415-555-2671");
        assert_eq!((&*phone.name, &*phone.text()), ("TEL", "tel:+1-415-555-2671"));
        assert!(phone.is_preferred());
        assert_eq!(phone.types().collect::<Vec<_>>(), ["voice", "home"]);
        assert!(property("EMAIL;INTERNET;type=pref:a@example.com").is_preferred());
        assert_eq!(
            property("ADR;LABEL=\"a;b:c\":;;1 Rue A\\, b;Lyon;;;").joined(),
            "1 Rue A, b, Lyon"
        );
        assert_eq!(property("NOTE:a\\nb\\;c\\\\").text(), "a\nb;c\\");
        assert_eq!(property("N:Lee\\;;Ann").parts(), ["Lee;", "Ann"]);
    }
}
