//! Text that is safe on a terminal.

use std::borrow::Cow;

/// JSON with terminal controls escaped, which occur only inside strings.
pub fn escaped(json: &str) -> Cow<'_, str> {
    // JSON has no ASCII control characters but DEL.
    let is_plain = json.is_ascii() && !json.as_bytes().contains(&0x7f);
    if is_plain || !json.contains(is_terminal_control) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match is_terminal_control(c) {
            true => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}"))),
            false => escaped.push(c),
        }
    }

    Cow::Owned(escaped)
}

/// Whether a character can alter or hide text on a terminal: control characters, marks of
/// direction, and invisible formatting, except joiners, which some scripts need within words.
pub fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        )
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{9b}2J\u{200b}b\u{202e}\u{e0041}é\n";
        let json = serde_json::to_string(text).unwrap();
        assert!(escaped(&json).is_ascii() || !escaped(&json).contains(is_terminal_control));
        assert_eq!(serde_json::from_str::<String>(&escaped(&json)).unwrap(), text);
    }
}
