//! MongoDB's messages, as a router and a proxy need them: the document of the command and its
//! document sequences, parsed in place. See OP_MSG in the wire protocol.

use std::io;
use std::ops::Range;

use mongodb::bson::{RawDocument, RawDocumentBuf};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The opcode of all current messages, and the opcode in which drivers send the hello to a server
/// of unknown version.
pub const MSG: i32 = 2013;
pub const QUERY: i32 = 2004;
const REPLY: i32 = 1;

const HEADER: usize = 16;
const MAX_LENGTH: usize = 48_000_000 + HEADER;
const CHECKSUM: u32 = 1;
const MORE_TO_COME: u32 = 2;

/// A complete message with its header.
pub struct Message(Vec<u8>);

impl Message {
    /// Reads the next message; returns `None` at the end of the connection.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; HEADER];
        match from.read_exact(&mut bytes).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            outcome => outcome?,
        };

        let length =
            i32_at(&bytes, 0).and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
        if !(HEADER..=MAX_LENGTH).contains(&length) {
            return Err(malformed());
        }

        bytes.resize(length, 0);
        from.read_exact(&mut bytes[HEADER..]).await?;
        Ok(Some(Self(bytes)))
    }

    /// Encodes a command.
    pub fn command(body: &RawDocument) -> Self {
        Self::reply(0, body)
    }

    /// Encodes the reply to the message with the id `to`.
    pub fn reply(to: i32, body: &RawDocument) -> Self {
        Self::with_head(to, MSG, &[&[0; 5], body.as_bytes()].concat())
    }

    /// Encodes the reply to an OP_QUERY: one document.
    pub fn query_reply(to: i32, body: &RawDocument) -> Self {
        let fixed = [8_i32, 0, 0, 0, 1].map(i32::to_le_bytes).concat();
        Self::with_head(to, REPLY, &[&fixed, body.as_bytes()].concat())
    }

    fn with_head(to: i32, kind: i32, rest: &[u8]) -> Self {
        let head = [(HEADER + rest.len()) as i32, 1, to, kind].map(i32::to_le_bytes).concat();
        Self([&head, rest].concat())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn id(&self) -> i32 {
        i32_at(&self.0, 4).unwrap_or_default()
    }

    pub fn response_to(&self) -> i32 {
        i32_at(&self.0, 8).unwrap_or_default()
    }

    pub fn kind(&self) -> i32 {
        i32_at(&self.0, 12).unwrap_or_default()
    }

    /// Returns true if the sender expects a reply.
    pub fn wants_reply(&self) -> bool {
        self.flags() & MORE_TO_COME == 0
    }

    fn flags(&self) -> u32 {
        i32_at(&self.0, HEADER).unwrap_or_default() as u32
    }

    /// Returns the document of the command or the reply.
    pub fn body(&self) -> io::Result<&RawDocument> {
        let range = self.sections().find(|(kind, _)| *kind == 0).ok_or_else(malformed)?.1;
        document(&self.0[range])
    }

    /// Returns the document of a command, or that of an OP_QUERY, in which drivers send the hello.
    pub fn greeting_or_body(&self) -> io::Result<&RawDocument> {
        if self.kind() != QUERY {
            return self.body();
        }
        let rest = self.0.get(HEADER + 4..).ok_or_else(malformed)?;
        let name = rest.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let start = HEADER + 4 + name + 1 + 8;
        let length = i32_at(&self.0, start)
            .and_then(|length| usize::try_from(length).ok())
            .ok_or_else(malformed)?;
        document(self.0.get(start..start + length).ok_or_else(malformed)?)
    }

    /// Returns the document sequences of the message, each with its name.
    pub fn sequences(&self) -> io::Result<Vec<(&str, Vec<&RawDocument>)>> {
        let sequence = |range: Range<usize>| {
            let section = self.0.get(range.start + 4..range.end).ok_or_else(malformed)?;
            let end = section.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
            let name = str::from_utf8(&section[..end]).map_err(|_| malformed())?;
            Ok((name, documents(&section[end + 1..])?))
        };
        self.sections().filter(|(kind, _)| *kind == 1).map(|(_, range)| sequence(range)).collect()
    }

    /// Returns the command under another name, with a reply expected.
    pub fn renamed(&self, new: &str) -> io::Result<Self> {
        let body = self.sections().find(|(kind, _)| *kind == 0).ok_or_else(malformed)?.1;
        let key = body.start + 5;
        let old = self.0[key..].iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let mut bytes = [&self.0[..key], new.as_bytes(), &self.0[key + old..self.end()]].concat();
        let body_length = (body.len() + new.len() - old) as i32;
        let flags = self.flags() & !(CHECKSUM | MORE_TO_COME);
        let length = bytes.len() as i32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[HEADER..HEADER + 4].copy_from_slice(&flags.to_le_bytes());
        bytes[body.start..body.start + 4].copy_from_slice(&body_length.to_le_bytes());
        Ok(Self(bytes))
    }

    /// Returns a reply of the router in a shard with the cluster time as its operation time: that
    /// of the shard may be before what other shards have shown. A mongos that does not know the
    /// time of an operation does so, too.
    pub fn with_operation_time(self) -> io::Result<Self> {
        let body = self.body()?;
        let Ok(time) = body
            .get_document("$clusterTime")
            .and_then(|gossip| gossip.get_timestamp("clusterTime"))
        else {
            return Ok(self);
        };
        let mut reply = RawDocumentBuf::new();
        for element in body.iter() {
            let (key, value) = element.map_err(io::Error::other)?;
            match key.as_str() {
                "operationTime" => reply.append(key, time),
                _ => reply.append(key, value),
            }
        }
        Ok(Self::reply(self.response_to(), &reply))
    }

    /// Returns the end of the sections: a checksum may follow.
    fn end(&self) -> usize {
        if self.flags() & CHECKSUM == 0 { self.0.len() } else { self.0.len() - 4 }
    }

    /// Returns the kind of each section and the range of its content.
    fn sections(&self) -> impl Iterator<Item = (u8, Range<usize>)> {
        let (mut at, end) = (HEADER + 4, self.end());
        std::iter::from_fn(move || {
            let kind = *self.0.get(at).filter(|_| at < end)?;
            let length = usize::try_from(i32_at(&self.0, at + 1)?).ok()?;
            let range = at + 1..at + 1 + length;
            at = range.end;
            (range.end <= end).then_some((kind, range))
        })
    }
}

/// Parses consecutive documents.
fn documents(mut bytes: &[u8]) -> io::Result<Vec<&RawDocument>> {
    let mut found = Vec::new();
    while let Some(length) = i32_at(bytes, 0) {
        let length =
            usize::try_from(length).ok().filter(|length| (5..=bytes.len()).contains(length));
        let (first, rest) = bytes.split_at(length.ok_or_else(malformed)?);
        found.push(document(first)?);
        bytes = rest;
    }
    Ok(found)
}

fn document(bytes: &[u8]) -> io::Result<&RawDocument> {
    RawDocument::from_bytes(bytes).map_err(|_| malformed())
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed message")
}
