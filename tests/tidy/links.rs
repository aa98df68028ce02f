//! Links between documents: each must name a file of the project, and a heading in that file.

use std::path::Path;

/// Returns the links of a document without a target. `path` is its path from `root`.
pub fn faults(root: &Path, path: &str, text: &str) -> Vec<String> {
    let numbered = prose(text).flat_map(|(n, line)| targets(line).map(move |target| (n, target)));
    let broken = numbered
        .filter(|(_, target)| !is_external(target) && !has_target(root, path, text, target));
    broken.map(|(n, target)| format!("{path}:{n}: the link to {target} has no target")).collect()
}

/// Returns the lines outside code blocks, with their numbers.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((n + 1, line))
    })
}

fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

fn is_external(target: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

fn has_target(root: &Path, path: &str, text: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() {
        return has_heading(text, heading);
    }
    let file = root.join(path).parent().map(|folder| folder.join(file)).unwrap_or_default();
    let has_heading =
        || std::fs::read_to_string(&file).is_ok_and(|text| has_heading(&text, heading));
    file.exists() && (heading.is_empty() || has_heading())
}

fn has_heading(text: &str, anchor: &str) -> bool {
    prose(text).any(|(_, line)| {
        line.starts_with('#') && slug(line.trim_start_matches('#').trim()) == anchor
    })
}

/// Returns the anchor of a heading.
fn slug(heading: &str) -> String {
    let allowed = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    allowed.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
