//! Writes a tree as YAML and as JSON.

use std::fmt::Write;

use polynym_lines::is_terminal_control;
use saphyr_parser::ScalarStyle;
use serde_json::Value;

use super::node::{Data, Key, Node, scalar};

/// Words that are no texts in YAML 1.1.
const WORDS: [&str; 6] = ["n", "no", "off", "on", "y", "yes"];

/// The tree as YAML.
pub fn yaml(node: &Node) -> String {
    let mut text = String::new();
    block(node, 0, &mut text);
    text
}

/// The tree as JSON.
pub fn json(node: &Node) -> Value {
    match &node.data {
        Data::Null | Data::Fraction => Value::Null,
        Data::Switch(on) => Value::Bool(*on),
        Data::Number(number) => Value::from(*number),
        Data::Text(text) => Value::from(text.as_str()),
        Data::List(items) => items.iter().map(json).collect(),
        Data::Map(entries) => {
            let entry = |(key, value): &(Key, Node)| (key.text.clone(), json(value));
            Value::Object(entries.iter().map(entry).collect())
        }
    }
}

/// Writes a node as lines that are indented by `indent` spaces.
fn block(node: &Node, indent: usize, text: &mut String) {
    let spaces = " ".repeat(indent);
    match &node.data {
        Data::List(items) if !items.is_empty() => {
            for item in items {
                let start = text.len() + indent;
                block(item, indent + 2, text);
                // The first line of the item has a hyphen instead of spaces.
                text.replace_range(start..start + 2, "- ");
            }
        }
        Data::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let _ = write!(text, "{spaces}{}:", quoted(&key.text));
                if has_lines(value) {
                    text.push('\n');
                    block(value, indent + 2, text);
                } else {
                    let _ = writeln!(text, " {}", flow(value));
                }
            }
        }
        _ => {
            let _ = writeln!(text, "{spaces}{}", flow(node));
        }
    }
}

/// Whether a node is written below its key.
fn has_lines(node: &Node) -> bool {
    match &node.data {
        Data::List(items) => !items.is_empty(),
        Data::Map(entries) => !entries.is_empty(),
        _ => false,
    }
}

/// A node in its line: a scalar, or an empty collection.
fn flow(node: &Node) -> String {
    match &node.data {
        Data::Null | Data::Fraction => "null".to_owned(),
        Data::Switch(on) => on.to_string(),
        Data::Number(number) => number.to_string(),
        Data::Text(text) => quoted(text),
        Data::List(_) => "[]".to_owned(),
        Data::Map(_) => "{}".to_owned(),
    }
}

/// A text, in quotes unless YAML reads it as the same text without.
fn quoted(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_text = matches!(scalar(text, ScalarStyle::Plain), Data::Text(_));
    let is_plain = text.chars().all(is_safe)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !WORDS.contains(&text);
    if is_text && (is_plain || is_duration(text)) {
        return text.to_owned();
    }
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if is_terminal_control(c) => {
                let _ = write!(written, "\\U{:08x}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written + "\""
}

/// Whether a text is a number and a unit, such as `30d`.
fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && ["d", "h", "m", "s", "ms"].contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::super::node::parse;
    use super::*;

    fn map(entries: Vec<(&str, Data)>) -> Data {
        let key = |text: &str| Key { position: Default::default(), text: text.to_owned() };
        Data::Map(entries.into_iter().map(|(text, data)| (key(text), data.into())).collect())
    }

    #[test]
    fn texts_are_read_as_they_were_written() {
        for text in [
            "acme",
            "30d",
            "1500ms",
            "yes",
            "null",
            "12",
            "1e5",
            "0x10",
            "",
            " a",
            "a: b",
            "- a",
            "#a",
            "it's \"q\" \\ x",
            "ü花",
            "a\u{feff}\u{202e}\u{e0041}b",
            "true",
            "~",
            "\u{85}",
        ] {
            let node = Node::from(map(vec![("key", Data::Text(text.to_owned()))]));
            let written = yaml(&node);
            let read = parse(0, &written).unwrap();
            assert_eq!(json(&read[0]), json(&node), "{written}");
        }
    }

    #[test]
    fn a_tree_is_written_in_blocks() {
        let inner = map(vec![("name", Data::Text("acme".into())), ("on", Data::Switch(true))]);
        let list = Data::List(vec![Data::Text("a".into()).into(), Data::Number(7).into()]);
        let empty = Data::List(Vec::new());
        let second = map(vec![("list", list), ("empty", empty)]);
        let node: Node = map(vec![("all", Data::List(vec![inner.into(), second.into()]))]).into();
        let written = yaml(&node);
        let expected = [
            "all:",
            "  - name: acme",
            "    \"on\": true",
            "  - list:",
            "      - a",
            "      - 7",
            "    empty: []",
        ];
        assert_eq!(written.lines().collect::<Vec<_>>(), expected);
        assert_eq!(json(&parse(0, &written).unwrap()[0]), json(&node));
    }
}
