//! Imports a batch of lines together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use prost::Message;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128};

use super::line::raw_user;
use super::person_order::Place;
use crate::grpc::status::status;
use polynym_directory::{Error, Import, Invalid, Line, LineOutcome, Tenant};
use polynym_proto::v1;
use polynym_transport::StreamPermit;
use polynym_transport::rich_status::internal;

/// The limit of different lines that are counted.
const MAX_COUNTED: usize = 100_000;

/// The limit of lines that find their users by an attribute.
const MAX_KEYS: usize = 1_000_000;

/// The number of a line and its outcome, or the error that ends the import.
pub type LineResult = Result<(i64, LineOutcome), Status>;

/// A line in flight.
pub struct PendingLine {
    pub number: i64,
    pub work: Work,
}

pub enum Work {
    /// A user to import.
    User(Box<UserLine>),
    /// The outcome of a line that is already imported or rejected.
    Done(LineOutcome),
}

pub struct UserLine {
    pub tenant: Tenant,
    pub user: v1::User,
    pub internals: Option<v1::UserInternals>,
    /// Distinguishes the line from others with the same content.
    pub mark: Vec<u8>,
    pub _permit: OwnedSemaphorePermit,
    pub _place: Place,
}

/// Counts equal lines: of those without identities each is a person of its own, and of those that
/// change users each takes effect.
#[derive(Default)]
pub struct Repeats(HashMap<u64, u32>);

impl Repeats {
    /// Distinguishes a line from the earlier lines of the import that have this user, by their
    /// number; empty if there are none. Beyond [`MAX_COUNTED`] different lines, one that changes
    /// users is known by its own number.
    pub fn mark(&mut self, tenant: &Tenant, user: &v1::User, (n, changes): (i64, bool)) -> Vec<u8> {
        if !changes && (!user.identities.is_empty() || !user.user_id.is_empty()) {
            return Vec::new();
        }
        match self.count(hash(tenant, user)) {
            None if changes => n.to_be_bytes().to_vec(),
            None | Some(0) => Vec::new(),
            Some(count) => count.to_be_bytes().to_vec(),
        }
    }

    /// The number of earlier lines with this hash; none if there are too many to count.
    fn count(&mut self, hash: u64) -> Option<u32> {
        if self.0.len() >= MAX_COUNTED && !self.0.contains_key(&hash) {
            return None;
        }
        let count = self.0.entry(hash).or_default();
        *count += 1;
        Some(*count - 1)
    }
}

/// The attribute by which lines find their users: each value once.
#[derive(Default)]
pub struct Keys(HashSet<u64>);

impl Keys {
    /// Adds the key of a line.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an earlier line has it, or there are too many.
    pub fn add(&mut self, tenant: &Tenant, user: &v1::User, name: &str) -> Result<(), Error> {
        let Some(value) = user.attributes.get(name).filter(|_| user.user_id.is_empty()) else {
            return Ok(());
        };
        let fault = match self.0.len() >= MAX_KEYS {
            true => "is one of too many keys: an import has at most 1,000,000",
            false if self.0.insert(hash(tenant, value)) => return Ok(()),
            false => "is the key of an earlier line, too",
        };
        Err(Error::invalid(Invalid::Field, format!("user.attributes.{name}"), fault))
    }
}

/// A hash of a part of a line of this tenant.
fn hash(tenant: &Tenant, part: &impl Message) -> u64 {
    xxh3_64_with_seed(&part.encode_to_vec(), xxh3_64(tenant.as_str().as_bytes()))
}

/// Imports a batch in a task of its own, so that it finishes even if the caller leaves.
pub async fn import_batch(
    import: Arc<Import>,
    lines: Vec<Result<PendingLine, Status>>,
    permit: Option<StreamPermit>,
) -> Vec<LineResult> {
    let (mut pending, mut error) = (Vec::with_capacity(lines.len()), None);
    for line in lines {
        match line {
            Ok(line) => pending.push(line),
            Err(status) => error = error.or(Some(Err(status))),
        }
    }

    let task = tokio::spawn(async move {
        let _permit = permit;
        results(&import, pending).await
    });
    let results = match task.await.map_err(|_| internal()) {
        Ok(Ok(results)) => results,
        Ok(Err(error)) => return vec![Err(status(error))],
        Err(panicked) => return vec![Err(panicked)],
    };
    results.into_iter().map(Ok).chain(error).collect()
}

async fn results(
    import: &Import,
    pending: Vec<PendingLine>,
) -> Result<Vec<(i64, LineOutcome)>, Error> {
    let (mut results, mut users) = (Vec::with_capacity(pending.len()), Vec::new());
    for (n, PendingLine { number, work }) in pending.into_iter().enumerate() {
        results.push((number, LineOutcome::default()));
        match work {
            Work::Done(outcome) => results[n].1 = outcome,
            Work::User(line) => users.push((n, line)),
        }
    }

    let (mut lines, mut positions) = (Vec::with_capacity(users.len()), Vec::new());
    for (n, line) in &mut users {
        match line.parse() {
            Ok(line) => {
                lines.push(line);
                positions.push(*n);
            }
            Err(error) => results[*n].1 = LineOutcome::rejected(error),
        }
    }
    for (n, outcome) in positions.into_iter().zip(import.users(&lines).await?) {
        results[n].1 = outcome;
    }
    Ok(results)
}

impl UserLine {
    /// Parses the line. Its content hash ignores the etag and the tenant, which may be that of the
    /// whole import.
    fn parse(&mut self) -> Result<Line<'_>, Error> {
        self.user.etag.clear();
        self.user.tenant.clear();
        let mut content = self.user.encode_to_vec();
        if let Some(internals) = &self.internals {
            content.extend(internals.encode_to_vec());
        }
        content.extend(&self.mark);
        let raw = raw_user(&self.user, self.internals.as_ref())?;
        Ok(Line { tenant: self.tenant.clone(), raw, content: xxh3_128(&content) })
    }
}
