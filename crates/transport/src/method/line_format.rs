//! The forms of calls with lines: which lines become which messages, and the reverse.

/// The content type of lines of JSON.
pub const NDJSON: &str = "application/x-ndjson";

/// The content type of server-sent events.
pub const EVENTS: &str = "text/event-stream";

/// The form of a method's calls with lines.
#[derive(Clone, Copy, Debug)]
pub struct LineMethod {
    /// Whether its requests are lines.
    pub takes_lines: bool,
    /// Whether its responses can be server-sent events.
    pub has_events: bool,
    /// Makes the format of a call.
    pub format: fn(LineRequest<'_>) -> Result<LineFormat, InvalidQuery>,
}

/// The properties of a request by which its format is made.
#[derive(Clone, Copy, Debug)]
pub struct LineRequest<'r> {
    /// The query of the path.
    pub query: &'r str,
    /// Whether the request is a GET, which has no message.
    pub is_get: bool,
    /// The form of the response.
    pub form: LineForm,
    /// The id of the last event that the client has had.
    pub last_event_id: Option<&'r str>,
}

/// The form of the lines of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// Objects of JSON.
    Json,
    /// Server-sent events (HTML standard, section 9.2).
    Events,
}

impl LineForm {
    /// The content type.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => NDJSON,
            Self::Events => EVENTS,
        }
    }
}

/// The error in a parameter of a query.
#[derive(Debug)]
pub struct InvalidQuery {
    /// The fault and its remedy.
    pub message: String,
}

/// The conversion between the lines and the messages of a call.
pub struct LineFormat {
    /// An encoded message whose fields are set in that of the request.
    pub fields: Vec<u8>,
    /// Reads lines; none if the request is one message.
    pub reader: Option<Box<dyn LineReader>>,
    /// Writes lines.
    pub writer: Box<dyn LineWriter>,
}

/// A line of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestLine<'l> {
    /// The bytes without the line break.
    Whole(&'l [u8]),
    /// The number of bytes, which exceeds the maximum.
    TooLong(usize),
}

/// The content of a line.
#[derive(Debug)]
pub enum Parsed {
    /// An encoded message.
    Message(Vec<u8>),
    /// A line without content, such as an empty one.
    Nothing,
    /// A rejected line, with the text that reports it in the response.
    Rejected(Vec<u8>),
}

/// Turns lines into messages.
pub trait LineReader: Send {
    /// The encoded message before those of the lines.
    fn first(&self) -> Vec<u8>;

    /// Reads a line. The first one has the number 1.
    fn parse(&mut self, number: i64, line: RequestLine<'_>) -> Parsed;
}

/// Turns messages into lines.
pub trait LineWriter: Send {
    /// Adds the lines of an encoded message to `text`.
    ///
    /// # Errors
    /// The message is not one of the method: says why.
    fn write(&mut self, message: &[u8], text: &mut Vec<u8>) -> Result<(), String>;

    /// Adds the last lines of a call that succeeded, of whose lines some were rejected.
    fn end(&mut self, rejected: i64, text: &mut Vec<u8>);
}
