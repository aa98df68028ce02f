//! Addresses as people write them, without a scheme.

/// The scheme that is added.
pub const HTTPS: &str = "https://";

/// The whole address, if text begins with a host that has a dot, and has a path.
pub fn added(typed: &str) -> Option<String> {
    let text = typed.trim_start_matches(is_trimmed);
    let (host, _) = text.split_once('/')?;
    let blanks = &typed[..typed.len() - text.len()];
    is_dotted(host).then(|| format!("{blanks}{HTTPS}{text}"))
}

/// Whether a text reads as a host: labels with dots between them, and letters in the last one.
fn is_dotted(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let has_end = last.chars().filter(|c| c.is_alphabetic()).nth(1).is_some();
    text.contains('.') && has_end && text.split('.').all(is_label)
}

/// Whether the URL standard removes a character at the start and the end: C0 controls and spaces.
pub const fn is_trimmed(c: char) -> bool {
    c <= ' '
}
