//! Long texts, cut.

/// The first `count` characters of a text, with an ellipsis if there are more.
pub fn cut(text: &str, count: usize) -> String {
    match text.char_indices().nth(count) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
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
