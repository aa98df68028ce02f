//! A parsed command.

use std::io;

use mongodb::bson::{Document, RawBsonRef, RawDocument};

use super::wire::Message;

/// The items of a statement, such as the documents to insert.
pub type Items<'m> = Vec<&'m RawDocument>;

pub struct Command<'m> {
    pub name: &'m str,
    pub database: &'m str,
    pub body: &'m RawDocument,
    sequences: Vec<(&'m str, Items<'m>)>,
}

impl<'m> Command<'m> {
    pub fn read(message: &'m Message) -> io::Result<Self> {
        let body = message.body()?;
        let (name, _) =
            body.iter().next().ok_or(io::ErrorKind::InvalidData)?.map_err(io::Error::other)?;
        let database = body.get_str("$db").map_err(io::Error::other)?;
        Ok(Self { name: name.as_str(), database, body, sequences: message.sequences()? })
    }

    pub fn in_transaction(&self) -> bool {
        self.body.get_bool("autocommit").is_ok_and(|is| !is)
    }

    /// Returns true for a change stream: the router in a shard crashes on it.
    pub fn is_change_stream(&self) -> bool {
        let stages = self.body.get_array("pipeline").into_iter().flatten();
        let opens_stream = |stage: RawBsonRef<'_>| {
            stage.as_document().is_some_and(|stage| has(stage, "$changeStream"))
        };
        self.name == "aggregate" && stages.flatten().any(opens_stream)
    }

    /// Returns the documents in `field`, from the body or from a document sequence.
    pub fn items(&self, field: &str) -> Items<'m> {
        if let Some((_, items)) = self.sequences.iter().find(|(name, _)| *name == field) {
            return items.clone();
        }
        let items = self.body.get_array(field).into_iter().flatten();
        items.flatten().filter_map(|item| item.as_document()).collect()
    }

    /// Returns the command with its sequences as one document.
    pub fn document(&self) -> Result<Document, mongodb::bson::error::Error> {
        let mut document = Document::try_from(self.body)?;
        for (name, items) in &self.sequences {
            let items = items
                .iter()
                .map(|item| Document::try_from(*item))
                .collect::<Result<Vec<_>, _>>()?;
            document.insert(*name, items);
        }
        Ok(document)
    }
}

fn has(document: &RawDocument, field: &str) -> bool {
    document.get(field).is_ok_and(|value| value.is_some())
}
