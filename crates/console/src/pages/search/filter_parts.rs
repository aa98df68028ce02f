//! The parts of a filter that AND joins, as texts. The API decides what they mean.

/// The parts of a filter that AND joins, as they are written; none if it has no such form.
pub fn parts(filter: &str) -> Option<Vec<&str>> {
    let mut rest = Rest(filter.trim_start());
    let mut parts = Vec::new();
    while !rest.0.is_empty() {
        let begin = rest.0;
        rest.factor()?;
        parts.push(begin[..begin.len() - rest.0.len()].trim_end());
        rest.skip_space();
        if rest.keyword("AND") {
            rest.skip_space();
        }
    }
    Some(parts)
}

/// The filter with these parts.
pub fn join(parts: &[&str]) -> String {
    parts.join(" AND ")
}

/// Whether a part is a condition on the state alone.
pub fn is_of_state(part: &str) -> bool {
    let mut rest = Rest(part);
    let has_field = rest.keyword("state");
    rest.skip_space();
    let value = rest.0.strip_prefix(['=', ':']).filter(|_| has_field);
    value.is_some_and(|value| !value.trim_start().contains(char::is_whitespace))
}

/// The rest of a filter.
struct Rest<'f>(&'f str);

impl Rest<'_> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Skips characters of a kind. Returns whether there are any.
    fn skip(&mut self, is_part: impl Fn(char) -> bool) -> bool {
        let before = self.0.len();
        self.0 = self.0.trim_start_matches(is_part);
        self.0.len() < before
    }

    /// Skips a word of the language, if it comes next.
    fn keyword(&mut self, word: &str) -> bool {
        let rest = self.0.strip_prefix(word).filter(|rest| !rest.starts_with(is_word));
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Skips terms that OR joins.
    fn factor(&mut self) -> Option<()> {
        loop {
            self.term()?;
            self.skip_space();
            if !self.keyword("OR") {
                return Some(());
            }
        }
    }

    /// Skips a condition or a group.
    fn term(&mut self) -> Option<()> {
        self.skip_space();
        if !self.keyword("NOT") {
            self.0 = self.0.strip_prefix('-').unwrap_or(self.0);
        }
        self.skip_space();
        if self.0.starts_with('(') {
            return self.group();
        }
        self.skip(is_word).then_some(())?;
        if self.0.starts_with(MARKS) {
            self.quoted()?;
        }
        self.skip_space();
        self.skip(|c| matches!(c, '=' | '!' | '<' | '>' | ':')).then_some(())?;
        self.skip_space();
        match self.0.starts_with(MARKS) {
            true => self.quoted(),
            false => self.skip(is_value).then_some(()),
        }
    }

    /// Skips what is in parentheses.
    fn group(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.0.chars().next()? {
                '(' => depth += 1,
                ')' if depth == 1 => {
                    self.0 = &self.0[1..];
                    return Some(());
                }
                ')' => depth -= 1,
                mark if MARKS.contains(&mark) => {
                    self.quoted()?;
                    continue;
                }
                _ => {}
            }
            let mut chars = self.0.chars();
            chars.next();
            self.0 = chars.as_str();
        }
    }

    /// Skips a text in quotes.
    fn quoted(&mut self) -> Option<()> {
        let mut chars = self.0.chars();
        let mark = chars.next()?;
        loop {
            match chars.next()? {
                '\\' => {
                    chars.next()?;
                }
                c if c == mark => break,
                _ => {}
            }
        }
        self.0 = chars.as_str();
        Some(())
    }
}

const MARKS: [char; 2] = ['"', '\''];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_value(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | '\'' | '=' | '<' | '>' | '!' | ',' | '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_parts_that_and_joins() {
        for (filter, expected) in [
            ("", &[][..]),
            ("state = ACTIVE", &["state = ACTIVE"]),
            ("a=1 b:2  AND c<3", &["a=1", "b:2", "c<3"]),
            ("a=1 OR b=2 AND c=3", &["a=1 OR b=2", "c=3"]),
            ("NOT a=1 AND -b:* OR c=2", &["NOT a=1", "-b:* OR c=2"]),
            ("(a=1 AND (b=2 OR c=\")\")) d=4", &["(a=1 AND (b=2 OR c=\")\"))", "d=4"]),
            (
                r#"a = "x AND \"y\" AND z" AND b = 'it'"#,
                &[r#"a = "x AND \"y\" AND z""#, "b = 'it'"],
            ),
            (
                r#"attributes."a AND \" b" = "ü: \\" AND state=ACTIVE "#,
                &[r#"attributes."a AND \" b" = "ü: \\""#, "state=ACTIVE"],
            ),
            (
                "time > 2026-01-31T12:00:00Z ANDROID = 1",
                &["time > 2026-01-31T12:00:00Z", "ANDROID = 1"],
            ),
        ] {
            let found = parts(filter).unwrap();
            assert_eq!(found, expected, "{filter}");
            assert_eq!(parts(&join(&found)).unwrap(), expected, "{filter}");
        }
        for wrong in ["a", "a =", "(a = 1", "a = \"x", "= 1", "a = 1 AND AND b = 2", ")", "a = 1)"]
        {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_condition_on_the_state_is_known() {
        for own in ["state = ACTIVE", "state=active", "state: DELETED"] {
            assert!(is_of_state(own), "{own}");
        }
        for other in
            ["state != ACTIVE", "state = ACTIVE OR a = 1", "statement = 1", "NOT state = ACTIVE"]
        {
            assert!(!is_of_state(other), "{other}");
        }
    }
}
