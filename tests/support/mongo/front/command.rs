//! A command as the front end looks at it.

use std::io;

use mongodb::bson::{Document, RawBsonRef, RawDocument};

use super::super::wire::Message;

/// What a statement has beside its document in the message: the documents to insert and the like.
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

    /// A shard's router ends its process on these.
    pub fn is_change_stream(&self) -> bool {
        let stages = self.body.get_array("pipeline").into_iter().flatten();
        let is_one = |stage: RawBsonRef<'_>| {
            stage.as_document().is_some_and(|stage| has(stage, "$changeStream"))
        };
        self.name == "aggregate" && stages.flatten().any(is_one)
    }

    /// The documents under `field`, from wherever they are.
    pub fn items(&self, field: &str) -> Items<'m> {
        if let Some((_, items)) = self.sequences.iter().find(|(name, _)| *name == field) {
            return items.clone();
        }
        let items = self.body.get_array(field).into_iter().flatten();
        items.flatten().filter_map(|item| item.as_document()).collect()
    }

    /// The whole command as one document.
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
