//! The users in a file of JSON: the elements of its list, or of a list in its object.

use std::io::BufRead;

use polynym_lines::{Line, Lines};

use super::scanner::{Fault, Kept, Scanner};

/// The limit of a user's bytes.
pub const MAX_USER_BYTES: usize = 4 << 20;
/// The limit of a key's bytes.
const MAX_KEY_BYTES: usize = 1 << 10;
/// Values that say nothing, and the bytes of the longest one.
const EMPTY: [&[u8]; 5] = [b"\"\"", b"null", b"[]", b"{}", b"false"];
const MAX_EMPTY_BYTES: usize = 5;
/// The limit of the list of providers.
const MAX_PROVIDERS_BYTES: usize = 1 << 20;

/// An element.
pub struct Element {
    /// The line in which it begins.
    pub line: i64,
    /// The bytes of the file since the element before.
    pub bytes: usize,
    /// The JSON, or the number of its bytes if it is too long.
    pub content: Result<Vec<u8>, usize>,
}

/// The place of the elements in the text.
pub struct Elements<R> {
    scanner: Scanner<R>,
    /// The keys of the lists in the outer object.
    keys: &'static [&'static str],
    /// The key of the list of providers in the outer object.
    providers_key: &'static str,
    state: State,
    /// The bytes before the last element.
    before: usize,
    /// Whether a list with elements was found.
    pub has_list: bool,
    /// The keys of the outer object that have other values.
    pub other_keys: Vec<String>,
    /// The list of providers, if it is before the users; empty where a file goes on with another
    /// value.
    pub providers: Option<Vec<u8>>,
}

/// The place in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning, or after a value of several: pages that were put together.
    Start { is_first: bool },
    /// Before an element of a sequence without a list.
    Sequence,
    /// In the object around the list, before its first key or after a value.
    Object { is_first: bool },
    /// In the list, before its first element or after one.
    List { is_first: bool, has_object: bool },
    /// After the last value.
    End,
}

impl<R: BufRead> Elements<R> {
    /// The elements of a list, or of the lists with these keys in an object.
    pub fn new(reader: R, keys: &'static [&'static str], providers_key: &'static str) -> Self {
        let scanner = Scanner::new(reader);
        let (state, other_keys) = (State::Start { is_first: true }, Vec::new());
        Self {
            scanner,
            keys,
            providers_key,
            state,
            before: 0,
            has_list: false,
            other_keys,
            providers: None,
        }
    }

    /// The elements that follow each other without a list, such as one a line.
    pub fn sequence(reader: R) -> Self {
        Self { state: State::Sequence, has_list: true, ..Self::new(reader, &[], "") }
    }

    /// The next element; none at the end.
    ///
    /// # Errors
    /// The rest of the file cannot be read: in words, with the line.
    pub fn next(&mut self) -> Result<Option<Element>, String> {
        loop {
            let was_at_end = self.state == State::End;
            let step = self.step();
            match step.map_err(|fault| self.words(fault))? {
                Ok(None) if !was_at_end => {}
                Ok(element) => return Ok(element),
                Err(wanted) => {
                    let line = self.scanner.line;
                    return Err(format!("line {line}: {wanted} is missing: correct its source"));
                }
            }
        }
    }

    /// Goes on to the next element or place. The inner error is what the file should have here.
    fn step(&mut self) -> Result<Result<Option<Element>, &'static str>, Fault> {
        let sign = self.scanner.peek_sign()?;
        match self.state {
            State::Start { is_first: false } if sign.is_none() => {
                self.state = State::End;
                Ok(Ok(None))
            }
            State::Start { .. } => self.start(sign),
            State::Sequence => self.next_of_sequence(sign),
            State::Object { is_first } => self.member(sign, is_first),
            State::List { is_first, has_object } => self.element(sign, is_first, has_object),
            State::End => Ok(Ok(None)),
        }
    }

    fn start(&mut self, sign: Option<u8>) -> Result<Result<Option<Element>, &'static str>, Fault> {
        self.state = match sign {
            Some(b'[') => State::List { is_first: true, has_object: false },
            Some(b'{') => State::Object { is_first: true },
            _ => return Ok(Err("a list or an object of JSON")),
        };
        self.has_list |= sign == Some(b'[');
        // Each value is a realm of its own.
        self.providers = Some(Vec::new());
        self.scanner.next()?;
        Ok(Ok(None))
    }

    fn member(
        &mut self,
        sign: Option<u8>,
        is_first: bool,
    ) -> Result<Result<Option<Element>, &'static str>, Fault> {
        match sign {
            None => return Err(Fault::Truncated),
            Some(b'}') => {
                self.scanner.next()?;
                self.state = State::Start { is_first: false };
                return Ok(Ok(None));
            }
            Some(b',') if !is_first => drop(self.scanner.next()?),
            Some(_) if is_first => {}
            Some(_) => return Ok(Err("a comma or }")),
        }
        if self.scanner.peek_sign()? != Some(b'"') {
            return Ok(Err("a key in double quotes"));
        }
        let mut key = Kept { limit: MAX_KEY_BYTES, ..Kept::default() };
        self.scanner.text(&mut key)?;
        if self.scanner.peek_sign()? != Some(b':') {
            return Ok(Err("a colon"));
        }
        self.scanner.next()?;
        let name: String = serde_json::from_slice(&key.content).unwrap_or_default();
        self.state = State::Object { is_first: false };
        match self.scanner.peek_sign()? {
            Some(b'[') if self.keys.contains(&&*name) => {
                self.scanner.next()?;
                self.has_list = true;
                self.state = State::List { is_first: true, has_object: true };
            }
            Some(b',' | b']' | b'}' | b':') => return Ok(Err("a value")),
            _ => {
                self.other(name)?;
            }
        }
        Ok(Ok(None))
    }

    /// Takes a value that is no list of users.
    fn other(&mut self, name: String) -> Result<(), Fault> {
        let has_providers = !name.is_empty() && name == self.providers_key;
        let limit = if has_providers { MAX_PROVIDERS_BYTES } else { MAX_EMPTY_BYTES };
        let mut kept = Kept { limit, ..Kept::default() };
        self.scanner.value(&mut kept)?;
        if !EMPTY.contains(&&*kept.content) && self.other_keys.len() < MAX_KEY_BYTES {
            self.other_keys.push(name);
        }
        if has_providers && kept.size <= limit {
            self.providers = Some(kept.content);
        }
        Ok(())
    }

    fn element(
        &mut self,
        sign: Option<u8>,
        is_first: bool,
        has_object: bool,
    ) -> Result<Result<Option<Element>, &'static str>, Fault> {
        match sign {
            None => return Err(Fault::Truncated),
            Some(b']') => {
                self.scanner.next()?;
                self.state = match has_object {
                    true => State::Object { is_first: false },
                    false => State::Start { is_first: false },
                };
                return Ok(Ok(None));
            }
            Some(b',') if !is_first => drop(self.scanner.next()?),
            Some(_) if is_first => {}
            Some(_) => return Ok(Err("a comma or ]")),
        }
        self.state = State::List { is_first: false, has_object };
        self.whole()
    }

    fn next_of_sequence(
        &mut self,
        sign: Option<u8>,
    ) -> Result<Result<Option<Element>, &'static str>, Fault> {
        match sign {
            None => {
                self.state = State::End;
                Ok(Ok(None))
            }
            Some(b'{') => self.whole(),
            Some(_) => Ok(Err("a user")),
        }
    }

    /// Takes the element that begins here.
    fn whole(&mut self) -> Result<Result<Option<Element>, &'static str>, Fault> {
        if matches!(self.scanner.peek_sign()?, None | Some(b',' | b']' | b'}' | b':')) {
            return Ok(Err("a user"));
        }
        let line = self.scanner.line;
        let mut kept = Kept { limit: MAX_USER_BYTES, ..Kept::default() };
        self.scanner.value(&mut kept)?;
        let bytes = self.scanner.bytes - self.before;
        self.before = self.scanner.bytes;
        let is_whole = kept.size <= MAX_USER_BYTES;
        let content = if is_whole { Ok(kept.content) } else { Err(kept.size) };
        Ok(Ok(Some(Element { line, bytes, content })))
    }

    fn words(&self, fault: Fault) -> String {
        let line = self.scanner.line;
        match fault {
            Fault::Truncated => format!(
                "the file ends in line {line}, before its end: it was cut off; export or copy it \
                 again"
            ),
            Fault::Io(error) => format!("line {line}: {error}"),
        }
    }
}

/// The next element of a file of lines; none at the end.
///
/// # Errors
/// The rest of the file cannot be read: in words.
pub fn next_line<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<Element>, String> {
    while let Some((line, content, bytes)) = lines.next_line().map_err(|e| e.to_string())? {
        let content = match content {
            Line::Whole(content) if content.trim_ascii().is_empty() => continue,
            Line::Whole(content) => Ok(content),
            Line::TooLong(size) => Err(size),
        };
        return Ok(Some(Element { line, bytes, content }));
    }
    Ok(None)
}
