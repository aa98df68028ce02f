//! Marks in a rendered page that tell data from words. They are noncharacters of Unicode.

use std::cell::Cell;
use std::fmt::{self, Display, Formatter, Write};

use askama::filters::{Escaper, Html as Plain};

/// Before data.
pub const DATA: char = '\u{FDD0}';
/// After data.
pub const DATA_END: char = '\u{FDD1}';
/// Before words.
pub const WORDS: char = '\u{FDD2}';
/// After words.
pub const WORDS_END: char = '\u{FDD3}';

thread_local! {
    /// Whether a page is being rendered to be translated.
    static IS_MARKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a character is a mark.
pub const fn is_mark(c: char) -> bool {
    matches!(c, DATA..=WORDS_END)
}

/// Renders something with marks.
pub fn marking<T>(render: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_MARKING.set(self.0);
        }
    }
    let _reset = Reset(IS_MARKING.replace(true));
    render()
}

/// Escapes data for HTML. In a page to be translated it marks them, and removes marks in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        if !IS_MARKING.get() {
            return Plain.write_escaped_str(dest, text);
        }
        dest.write_char(DATA)?;
        write_unmarked(&mut dest, text)?;
        dest.write_char(DATA_END)
    }
}

fn write_unmarked<W: Write>(dest: &mut W, text: &str) -> fmt::Result {
    text.split(is_mark).try_for_each(|part| Plain.write_escaped_str(&mut *dest, part))
}

/// Words in a page: they are escaped, and translated as a message of their own.
#[derive(Debug)]
pub struct Words<T> {
    /// The words.
    pub text: T,
    /// The prefix that tells them from equal words: `[verb] `, or nothing.
    pub context: &'static str,
}

struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if IS_MARKING.get() {
            write_unmarked(&mut self.0, text)
        } else {
            Plain.write_escaped_str(&mut self.0, text)
        }
    }
}

impl<T: Display> Display for Words<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_marking = IS_MARKING.get();
        if is_marking {
            f.write_char(WORDS)?;
            f.write_str(self.context)?;
        }
        write!(Escaping(&mut *f), "{}", self.text)?;
        if is_marking { f.write_char(WORDS_END) } else { Ok(()) }
    }
}
