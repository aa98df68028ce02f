//! Messages with data in them, as they are found in words.

/// A message with places of data: `{}` for any text, `{n}` for a number, `{w}` for words.
#[derive(Debug)]
pub struct Pattern {
    begin: &'static str,
    /// The kind of each place, and the text after it.
    places: Vec<(Kind, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Number,
    Words,
}

impl Pattern {
    /// The pattern of a message.
    pub fn of(message: &'static str) -> Self {
        let mut parts = message.split('{');
        let begin = parts.next().unwrap_or_default();
        let places = parts.map(|part| {
            let (kind, text) = part.split_once('}').unwrap_or(("", part));
            let kind = match kind {
                "n" => Kind::Number,
                "w" => Kind::Words,
                _ => Kind::Any,
            };
            (kind, text)
        });
        Self { begin, places: places.collect() }
    }

    /// How exact it is: patterns with more text of their own come first.
    pub fn exactness(&self) -> (usize, usize) {
        let own = self.places.iter().map(|(_, text)| text.len()).sum::<usize>();
        let exact = self.places.iter().filter(|(kind, _)| *kind == Kind::Number).count();
        (self.begin.len() + own, exact)
    }

    /// The data in a text of this pattern, and whether they are words.
    pub fn parts<'t>(&self, text: &'t str) -> Option<Vec<(&'t str, bool)>> {
        let mut rest = text.strip_prefix(self.begin)?;
        let mut parts = Vec::with_capacity(self.places.len());
        for (index, (kind, after)) in self.places.iter().enumerate() {
            let is_last = index + 1 == self.places.len();
            let end =
                if is_last { rest.len().checked_sub(after.len())? } else { rest.find(after)? };
            let (part, following) = (rest.get(..end)?, rest.get(end..)?);
            let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
            if part.is_empty() || (*kind == Kind::Number && !part.chars().all(is_number)) {
                return None;
            }
            parts.push((part, *kind == Kind::Words));
            rest = following.strip_prefix(after)?;
        }
        rest.is_empty().then_some(parts)
    }
}
