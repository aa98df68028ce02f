//! Texts: long ones cut, and sentences.

/// The first `count` characters of a text, with an ellipsis if there are more.
pub fn cut(text: impl Into<String>, count: usize) -> String {
    let mut text = text.into();
    shorten(&mut text, count);
    text
}

/// Cuts a text after `count` characters. Returns whether it had more.
pub fn shorten(text: &mut String, count: usize) -> bool {
    let Some((end, _)) = text.char_indices().nth(count) else { return false };
    text.truncate(end);
    text.push('…');
    true
}

/// A text with a capital letter at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    first + chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("Zoë", 3), "Zoë");
        assert_eq!(cut("Zoë", 2), "Zo…");
        assert_eq!(cut("Zoë", 0), "…");
    }
}
