//! YAML as a tree whose nodes have positions. JSON is read as YAML.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput};

/// The maximum depth of nested lists and mappings.
const MAX_DEPTH: usize = 16;

/// A position in a file. Line 0 stands for the whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of the file.
    pub file: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The position.
    pub position: Position,
    /// The rule that is broken.
    pub message: String,
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The position of its first character.
    pub position: Position,
    /// The value.
    pub data: Data,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// No value.
    Null,
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Number(i64),
    /// A number with a fraction or an exponent, which no key takes.
    Fraction,
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its position.
    pub position: Position,
    /// The key.
    pub text: String,
}

impl From<Data> for Node {
    /// A node of no file.
    fn from(data: Data) -> Self {
        Self { position: Position::default(), data }
    }
}

impl Fault {
    /// A fault at this position.
    pub fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }
}

/// The documents of a file.
///
/// # Errors
/// The first fault of its syntax.
pub fn parse(file: usize, text: &str) -> Result<Vec<Node>, Fault> {
    let text = with_whole_characters(text);
    let mut tree = Tree { file, parser: Parser::new_from_str(&text) };
    let mut documents = Vec::new();
    loop {
        match tree.next()?.0 {
            Event::DocumentStart(_) => {
                let first = tree.next()?;
                documents.push(tree.node(first, 0)?);
            }
            Event::StreamEnd => return Ok(documents),
            _ => {}
        }
    }
}

/// A text of JSON with one escape of YAML, `\U0001F600`, for each pair of escaped surrogates
/// (RFC 8259, section 7), which YAML does not have. Other texts stay.
fn with_whole_characters(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let is_json = text.trim_start().starts_with(['{', '[']);
    if !is_json || !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole += before;
        let found = surrogates(escape);
        // An escaped backslash begins no other escape.
        let length = if found.is_some() { 12 } else { 1 + usize::from(escape.len() > 1) };
        let length = (length..=escape.len()).find(|end| escape.is_char_boundary(*end));
        let (own, next) = escape.split_at(length.unwrap_or(escape.len()));
        match found {
            Some(character) => whole += &format!("\\U{:08X}", u32::from(character)),
            None => whole += own,
        }
        rest = next;
    }
    Cow::Owned(whole + rest)
}

/// The character of two escapes of surrogates at the beginning of a text.
fn surrogates(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = [unit(0)?, unit(6)?];
    let mut characters = char::decode_utf16(pair);
    characters.next()?.ok().filter(|character| character.len_utf16() == 2)
}

/// The value of a scalar, by the core schema of YAML 1.2.
pub fn scalar(text: &str, style: ScalarStyle) -> Data {
    if style != ScalarStyle::Plain {
        return Data::Text(text.to_owned());
    }
    let has_digit = || text.contains(|c: char| c.is_ascii_digit());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Switch(true),
        "false" | "False" | "FALSE" => Data::Switch(false),
        _ => match text.parse() {
            Ok(number) => Data::Number(number),
            Err(_) if has_digit() && text.parse::<f64>().is_ok() => Data::Fraction,
            Err(_) => Data::Text(text.to_owned()),
        },
    }
}

/// The tree of a file while it is read.
struct Tree<'a> {
    file: usize,
    parser: Parser<'a, StrInput<'a>>,
}

type Positioned<'a> = (Event<'a>, Position);

impl<'a> Tree<'a> {
    fn next(&mut self) -> Result<Positioned<'a>, Fault> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, Position::default())),
            Some(Ok((event, span))) => Ok((event, self.position(span.start))),
            Some(Err(error)) => Err(Fault::new(self.position(*error.marker()), error.info())),
        }
    }

    fn position(&self, marker: Marker) -> Position {
        Position { file: self.file, line: marker.line().max(1), column: marker.col() + 1 }
    }

    /// The node that begins with an event.
    fn node(&mut self, (event, position): Positioned<'a>, depth: usize) -> Result<Node, Fault> {
        let fault = |message: &str| Err(Fault::new(position, message));
        if depth > MAX_DEPTH {
            return fault("too deeply nested");
        }
        let data = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return fault("tags are not supported: write the value without the tag");
            }
            Event::Alias(_) => {
                return fault("aliases are not supported: write the value itself");
            }
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => Data::List(self.list(depth)?),
            Event::MappingStart(..) => Data::Map(self.map(depth)?),
            _ => Data::Null,
        };
        Ok(Node { position, data })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::StreamEnd, _) => return Ok(items),
                first => items.push(self.node(first, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, Fault> {
        let mut entries = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd | Event::StreamEnd, _) => return Ok(entries),
                (Event::Scalar(text, _, _, None), position) => {
                    Key { position, text: text.into_owned() }
                }
                (_, position) => return Err(Fault::new(position, "a key must be a text")),
            };
            let first = self.next()?;
            entries.push((key, self.node(first, depth + 1)?));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize) -> Position {
        Position { file: 7, line, column }
    }

    #[test]
    fn nodes_have_positions() {
        let documents = parse(7, "a: 1\nlist:\n  - true\n  - \"2\"\n---\n{\"b\": 1.5}\n").unwrap();
        let [Node { data: Data::Map(first), .. }, Node { data: Data::Map(second), .. }] =
            &documents[..]
        else {
            panic!("{documents:?}")
        };
        assert_eq!((first[0].0.position, first[0].1.position), (at(1, 1), at(1, 4)));
        let Data::List(items) = &first[1].1.data else { panic!("{first:?}") };
        assert_eq!((items[0].position, &items[0].data), (at(3, 5), &Data::Switch(true)));
        assert_eq!((items[1].position, &items[1].data), (at(4, 5), &Data::Text("2".into())));
        assert_eq!((second[0].0.position, &second[0].1.data), (at(6, 2), &Data::Fraction));
    }

    #[test]
    fn faults_have_positions() {
        for (text, position, part) in [
            ("a: [1, 2\nb: 3\n", None, ""),
            ("a: *b\n", None, ""),
            ("a: &b 1\nc: *b\n", Some(at(2, 4)), "aliases"),
            ("a: !!str 1\n", Some(at(1, 10)), "tags"),
            ("[a]: 1\n", None, "a key must be a text"),
            ("[".repeat(40).as_str(), None, ""),
        ] {
            let fault = parse(7, text).unwrap_err();
            assert!(fault.message.contains(part), "{text}: {fault:?}");
            assert!(fault.position.line > 0 && fault.position.column > 0, "{text}: {fault:?}");
            assert!(position.is_none_or(|at| fault.position.line == at.line), "{text}: {fault:?}");
        }
        assert_eq!(parse(7, "# nothing\n").unwrap(), []);
    }

    #[test]
    fn escapes_of_json_are_read() {
        for (text, value) in [
            (r#"["\ud83d\ude00 \u00e9"]"#, "\u{1f600} \u{e9}"),
            (r#"["\\\\ud83d\\\\ude00"]"#, r"\\ud83d\\ude00"),
            (r#"["a\\\\\ud83d\ude00"]"#, "a\\\\\u{1f600}"),
        ] {
            let documents = parse(0, text).unwrap();
            let Data::List(items) = &documents[0].data else { panic!("{documents:?}") };
            assert_eq!(items[0].data, Data::Text(value.to_owned()), "{text}");
        }
        assert!(parse(0, r#"["\ud83d"]"#).is_err());
    }
}
