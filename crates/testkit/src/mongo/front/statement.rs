//! Splits a statement of a transaction into parts for the shards that own its keys, and merges
//! their replies.

use mongodb::bson::raw::{CStr, cstr};
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocument, RawDocumentBuf, doc};

use super::chunks::Chunks;
use super::command::{Command, Items};
use super::fault::{Fault, is_ok};

/// Fields for the router alone: the statement of each shard gets its own.
const ROUTER_FIELDS: [&str; 8] = [
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "readConcern",
    "writeConcern",
    "$clusterTime",
    "coordinator",
];

/// The part of a statement for one shard: the indexes of its items.
pub struct Part {
    pub shard: usize,
    pub items: Vec<usize>,
}

/// A statement of a transaction.
pub struct Statement<'c, 'm> {
    command: &'c Command<'m>,
    /// The field with the items, if the statement is a write.
    field: Option<&'static CStr>,
    items: Items<'m>,
}

impl<'c, 'm> Statement<'c, 'm> {
    pub fn new(command: &'c Command<'m>) -> Result<Self, Fault> {
        let field = match command.name {
            "find" => None,
            "insert" => Some(cstr!("documents")),
            "update" => Some(cstr!("updates")),
            "delete" => Some(cstr!("deletes")),
            name => {
                let message = format!("'{name}' is not supported in a transaction here");
                return Err(Fault::own(263, "OperationNotSupportedInTransaction", message));
            }
        };

        let items = field.map(|field| command.items(field.as_str())).unwrap_or_default();
        Ok(Self { command, field, items })
    }

    /// Returns rounds of parts: the parts of a round run concurrently, the rounds in order. As in
    /// mongos, an ordered write continues with the next shard once the previous one has replied.
    pub fn rounds(&self, chunks: &Chunks) -> Result<Vec<Vec<Part>>, Fault> {
        if self.field.is_none() {
            let empty = RawDocumentBuf::new();
            let shards =
                chunks.of_filter(self.command.body.get_document("filter").unwrap_or(&empty))?;
            self.check_find(shards.len())?;
            return Ok(vec![
                shards.into_iter().map(|shard| Part { shard, items: Vec::new() }).collect(),
            ]);
        }

        let ordered = self.command.body.get_bool("ordered").unwrap_or(true);
        let mut rounds: Vec<Vec<Part>> = Vec::new();
        for n in 0..self.items.len() {
            let shards = self.targets(n, chunks)?;
            let joins = |round: &&mut Vec<Part>| {
                !ordered || (shards.len() == 1 && round.len() == 1 && round[0].shard == shards[0])
            };
            match rounds.last_mut().filter(joins) {
                Some(round) => shards.into_iter().for_each(|shard| add(round, shard, n)),
                None => rounds
                    .push(shards.into_iter().map(|shard| Part { shard, items: vec![n] }).collect()),
            }
        }

        Ok(rounds)
    }

    /// Returns the shards of one item of a write.
    fn targets(&self, n: usize, chunks: &Chunks) -> Result<Vec<usize>, Fault> {
        let item = self.items[n];
        if self.command.name == "insert" {
            let key = item
                .get("_id")?
                .ok_or_else(|| Fault::own(2, "BadValue", "a document without _id"))?;
            return Ok(vec![chunks.of_key(key)?]);
        }

        let shards = chunks.of_filter(
            item.get_document("q").map_err(|_| Fault::own(9, "FailedToParse", "no filter"))?,
        )?;
        let is_multi = item.get_bool("multi").unwrap_or_default()
            || item.get_i32("limit").is_ok_and(|is| is == 0);
        if shards.len() > 1 && !is_multi {
            return Err(Fault::own(2, "BadValue", "one document is written by its _id here"));
        }
        Ok(shards)
    }

    /// Returns true for a find.
    pub fn is_find(&self) -> bool {
        self.field.is_none()
    }

    pub fn command(&self) -> &'c Command<'m> {
        self.command
    }

    pub fn body(&self) -> &'m RawDocument {
        self.command.body
    }

    fn check_find(&self, shards: usize) -> Result<(), Fault> {
        let body = self.command.body;
        let narrows = ["sort", "skip"]
            .into_iter()
            .any(|field| body.get(field).is_ok_and(|value| value.is_some()));
        if shards > 1 && narrows {
            return Err(Fault::own(
                2,
                "BadValue",
                "sort and skip over several shards: not in a transaction here",
            ));
        }
        Ok(())
    }

    /// Returns the statement for one shard, without the fields of the transaction.
    pub fn request(&self, part: &Part, chunks: &Chunks) -> Result<RawDocumentBuf, Fault> {
        let mut request = RawDocumentBuf::new();
        for element in self.command.body.iter() {
            let (key, value) = element?;
            if !ROUTER_FIELDS.contains(&key.as_str()) && self.field != Some(key) {
                request.append(key, value);
            }
        }

        if let Some(field) = self.field {
            request.append(
                field,
                part.items.iter().map(|n| self.items[*n].to_owned()).collect::<RawArrayBuf>(),
            );
        }

        request
            .append(cstr!("shardVersion"), RawDocumentBuf::try_from(chunks.version(part.shard))?);
        if let Some(version) = &chunks.database {
            request.append(cstr!("databaseVersion"), RawDocumentBuf::try_from(version)?);
        }
        Ok(request)
    }
}

fn add(round: &mut Vec<Part>, shard: usize, item: usize) {
    match round.iter_mut().find(|part| part.shard == shard) {
        Some(part) => part.items.push(item),
        None => round.push(Part { shard, items: vec![item] }),
    }
}

/// Returns the reply of a shard, or its error. The indexes of errors refer to the whole statement.
pub fn accepted(part: &Part, reply: RawDocumentBuf) -> Result<RawDocumentBuf, Fault> {
    if is_ok(&reply) && reply.get("writeErrors")?.is_none() {
        return Ok(reply);
    }
    let mut document = Document::try_from(&*reply)?;
    if let Ok(errors) = document.get_array_mut("writeErrors") {
        renumber(errors, part);
    }
    Err(Fault::status_details(document))
}

/// Merges the replies of all parts of a write.
pub fn merged(mut replies: Vec<(Part, RawDocumentBuf)>) -> Result<RawDocumentBuf, Fault> {
    if replies.len() == 1 {
        return Ok(replies.remove(0).1);
    }

    let mut whole = doc! { "n": 0 };
    for (part, reply) in replies {
        let mut document = Document::try_from(&*reply)?;
        for field in ["n", "nModified"] {
            if let Ok(count) = document.get_i32(field) {
                whole.insert(field, whole.get_i32(field).unwrap_or_default() + count);
            }
        }
        if let Ok(upserted) = document.get_array_mut("upserted") {
            renumber(upserted, &part);
            let before = whole.get_array("upserted").cloned().unwrap_or_default();
            whole.insert("upserted", [before, upserted.clone()].concat());
        }
    }

    whole.insert("ok", 1.0);
    Ok(RawDocumentBuf::try_from(&whole)?)
}

/// Maps the indexes of a part to the indexes of the whole statement.
fn renumber(of_items: &mut [Bson], part: &Part) {
    for of_item in of_items.iter_mut().filter_map(Bson::as_document_mut) {
        let number = of_item.get_i32("index").ok().and_then(|index| part.items.get(index as usize));
        if let Some(number) = number {
            of_item.insert("index", *number as i32);
        }
    }
}

/// Returns true if the transaction has only read from this shard.
pub fn is_read_only(reply: &RawDocument) -> bool {
    reply.get_bool("readOnly").unwrap_or_default()
}
