//! Searches a tenant for duplicates: reads all users, indexes their keys, and compares the users
//! who share a key.
//!
//! Memory: 24 bytes for each of at most 4,194,304 keys, and eight bytes for each user and each
//! address in an attribute. A user has two to six keys. If there are more keys, the tenant is read
//! again for the rest.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;

use super::Directory;
use crate::duplicates::compare::compare;
use crate::duplicates::frequency::Frequencies;
use crate::duplicates::key_index::KeyIndex;
use crate::duplicates::pairs::{DescribedPair, DuplicatePair, DuplicatePairs};
use crate::duplicates::profile::{Contact, Key, Profile, ProfileReader, is_present};
use crate::error::{Error, Invalid};
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::user::User;
use crate::service::scan_pace::Pace;
use crate::stores::{Consistency, View};

/// Users in one read.
const READ_BATCH: usize = 256;
/// Users whose groups are compared in one step, unless one group has more.
const STEP_USERS: usize = 256;
/// The users of a key that are compared with each other: the first by their ids.
pub const MAX_GROUP: usize = 50;
/// Keys in memory.
const MAX_KEYS: usize = 4 << 20;
/// Pairs whose users are read together for an answer.
const DESCRIBED_PAIRS: usize = 32;
/// The pause between two reports of progress.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The least score of a pair by default.
const DEFAULT_MIN_SCORE: u8 = 50;
/// Pairs by default, and at most.
const DEFAULT_PAIRS: usize = 1_000;
const MAX_PAIRS: usize = 100_000;

/// The options of a search for duplicates.
#[derive(Clone, Copy, Debug, Default)]
pub struct DuplicateOptions {
    /// The least score of a pair, at most 100; 0 for the default.
    pub min_score: i32,
    /// The most pairs; 0 for the default.
    pub max_pairs: i32,
}

/// The progress of a search for duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateProgress {
    /// Users that were read, except deleted and merged ones.
    pub users: u64,
    /// Users that cannot be read.
    pub unreadable: u64,
    /// Pairs of users that were compared.
    pub compared: u64,
    /// Groups of users with one key that were too large to compare as a whole.
    pub capped: u64,
}

/// An answer of a search for duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DuplicateEvent {
    /// The progress so far.
    Progress(DuplicateProgress),
    /// A pair. The best ones come first, after all progress.
    Pair(DescribedPair),
}

impl Directory {
    /// Begins a search for users of a tenant who are probably the same person. Nothing is read
    /// until [`DuplicateSearch::next`].
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn find_duplicates(
        self: &Arc<Self>,
        tenant: Tenant,
        options: DuplicateOptions,
    ) -> Result<DuplicateSearch, Error> {
        self.find_duplicates_within(MAX_KEYS, tenant, options).await
    }

    /// [`Directory::find_duplicates`] with another limit of keys in memory.
    ///
    /// # Errors
    /// Those of [`Directory::find_duplicates`].
    pub async fn find_duplicates_within(
        self: &Arc<Self>,
        keys: usize,
        tenant: Tenant,
        options: DuplicateOptions,
    ) -> Result<DuplicateSearch, Error> {
        let min_score = min_score(options.min_score)?;
        let pairs = DuplicatePairs::new(max_pairs(options.max_pairs)?);
        let policies = self.known_tenant(&tenant).await?.policies;
        let evidence = policies.evidence().map(ToOwned::to_owned).collect();
        let (rules, _) = self.stored_rules(Consistency::Latest).await?;
        Ok(DuplicateSearch {
            directory: self.clone(),
            tenant,
            reader: ProfileReader { rules, seed: fastrand::u64(..), evidence },
            min_score,
            phase: Phase::Reading(None),
            is_first: true,
            index: KeyIndex::new(keys),
            frequencies: Frequencies::default(),
            held: HashMap::new(),
            pairs,
            progress: DuplicateProgress::default(),
            reported: Instant::now(),
        })
    }
}

/// A search for duplicates in progress.
pub struct DuplicateSearch {
    directory: Arc<Directory>,
    tenant: Tenant,
    reader: ProfileReader,
    min_score: u8,
    phase: Phase,
    /// Whether the tenant is read for the first time.
    is_first: bool,
    index: KeyIndex,
    frequencies: Frequencies,
    /// The addresses that are held for users: later reads of users omit holds.
    held: HashMap<LocalityId, Vec<Contact>>,
    pairs: DuplicatePairs,
    progress: DuplicateProgress,
    reported: Instant,
}

enum Phase {
    /// Reads the users after this one.
    Reading(Option<LocalityId>),
    /// Compares the users of keys.
    Comparing,
    /// Returns the pairs. Some of them are read already.
    Answering(std::vec::IntoIter<DuplicatePair>, VecDeque<DescribedPair>),
}

impl DuplicateSearch {
    /// The next event: progress, about once a second and when all users are compared, or a pair.
    /// None at the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] and [`Error::Internal`], which end the search.
    pub async fn next(&mut self) -> Result<Option<DuplicateEvent>, Error> {
        loop {
            match &mut self.phase {
                &mut Phase::Reading(after) => self.read_users(after).await?,
                Phase::Comparing => {
                    if !self.compare_groups().await? {
                        self.end_range();
                    }
                    if matches!(self.phase, Phase::Answering(..)) {
                        return Ok(Some(DuplicateEvent::Progress(self.progress)));
                    }
                }
                Phase::Answering(_, described) if !described.is_empty() => {
                    return Ok(described.pop_front().map(DuplicateEvent::Pair));
                }
                Phase::Answering(pairs, _) => {
                    let next: Vec<_> = pairs.take(DESCRIBED_PAIRS).collect();
                    if next.is_empty() {
                        return Ok(None);
                    }
                    let read = self.describe(next).await?;
                    if let Phase::Answering(_, described) = &mut self.phase {
                        *described = read;
                    }
                    continue;
                }
            }
            if self.reported.elapsed() >= REPORT_PERIOD {
                self.reported = Instant::now();
                return Ok(Some(DuplicateEvent::Progress(self.progress)));
            }
        }
    }

    async fn read_users(&mut self, after: Option<LocalityId>) -> Result<(), Error> {
        let users = self.directory.backend.search.scan(&self.tenant, after, READ_BATCH).await?;
        let mut pace = Pace::default();
        for record in users.readable().filter(|record| is_present(record.user.state)) {
            pace.rest().await;
            self.index_user(record);
        }
        if self.is_first {
            self.progress.unreadable += users.unreadable().count() as u64;
        }
        match users.next {
            Some(last) => self.phase = Phase::Reading(Some(last)),
            None => self.sort().await?,
        }
        Ok(())
    }

    /// Indexes the keys of a user.
    fn index_user(&mut self, record: &Record) {
        let mut profile = self.reader.profile(&record.user);
        let held = self.reader.held(record, self.directory.now());
        profile.add_held(&held);
        let is_enough = |key: &Key| key.reason().is_none_or(|own| own.score() >= self.min_score);
        for key in self.reader.keys(&profile).into_iter().filter(is_enough) {
            self.index.add(key, record.id());
        }
        if self.is_first {
            self.progress.users += 1;
            profile.counted().for_each(|value| self.frequencies.add(value));
            if !held.is_empty() {
                self.held.insert(record.id(), held);
            }
        }
    }

    /// Sorts the keys, on a thread that may block, and continues with comparing.
    async fn sort(&mut self) -> Result<(), Error> {
        let (mut index, mut frequencies) =
            (std::mem::take(&mut self.index), std::mem::take(&mut self.frequencies));
        let sorted = tokio::task::spawn_blocking(move || {
            index.sort();
            frequencies.sort();
            (index, frequencies)
        });
        (self.index, self.frequencies) =
            sorted.await.map_err(|error| Error::Internal(error.into()))?;
        self.phase = Phase::Comparing;
        self.is_first = false;
        Ok(())
    }

    /// Compares the users of the next keys. Returns whether there are more.
    async fn compare_groups(&mut self) -> Result<bool, Error> {
        let groups = self.next_groups();
        if groups.is_empty() {
            return Ok(false);
        }
        let ids: BTreeSet<_> = groups.iter().flatten().copied().collect();
        let profiles = self.profiles(&ids.into_iter().collect::<Vec<_>>()).await?;
        let mut pace = Pace::default();
        for group in groups {
            let members: Vec<_> = group.iter().filter_map(|id| profiles.get(id)).collect();
            for (n, a) in members.iter().enumerate() {
                // Comparing users with many handles takes long.
                pace.rest().await;
                for b in &members[n + 1..] {
                    self.compare(a, b);
                }
            }
        }
        Ok(true)
    }

    fn compare(&mut self, a: &Profile, b: &Profile) {
        self.progress.compared += 1;
        let found = compare(a, b, &self.frequencies);
        if let Some(found) = found.filter(|found| found.score >= self.min_score) {
            self.pairs.add(DuplicatePair { users: [a.id, b.id], found });
        }
    }

    /// The users of the next keys, in the order of their ids.
    fn next_groups(&mut self) -> Vec<Vec<LocalityId>> {
        let (mut groups, mut count) = (Vec::new(), 0);
        while count < STEP_USERS {
            let Some(group) = self.index.next_group() else { break };
            if is_score_too_low(group, self.min_score) {
                continue;
            }
            self.progress.capped += u64::from(group.len() > MAX_GROUP);
            let ids: Vec<_> = group.iter().take(MAX_GROUP).map(|(_, id)| *id).collect();
            count += ids.len();
            groups.push(ids);
        }
        groups
    }

    /// The profiles of the users that are still present.
    async fn profiles(&self, ids: &[LocalityId]) -> Result<HashMap<LocalityId, Profile>, Error> {
        let mut profiles = HashMap::with_capacity(ids.len());
        let read = |user: User| {
            let mut profile = self.reader.profile(&user);
            profile.add_held(self.held.get(&user.id).map_or(&[], Vec::as_slice));
            profiles.insert(user.id, profile);
        };
        self.each_present(ids, read).await?;
        Ok(profiles)
    }

    /// The pairs with the names of their users and what they share.
    async fn describe(&self, pairs: Vec<DuplicatePair>) -> Result<VecDeque<DescribedPair>, Error> {
        let ids: BTreeSet<_> = pairs.iter().flat_map(|pair| pair.users).collect();
        let mut users = HashMap::with_capacity(ids.len());
        let read = |user: User| drop(users.insert(user.id, user));
        self.each_present(&ids.into_iter().collect::<Vec<_>>(), read).await?;

        let described = pairs.into_iter().map(|pair| {
            let [a, b] = pair.users.map(|id| users.get(&id));
            let name = |user: Option<&User>| user.map(|user| user.display_name.clone());
            let shared = |evidence| match (a, b) {
                (Some(a), Some(b)) => self.reader.shared([a, b], evidence),
                _ => Default::default(),
            };
            let values = pair.found.evidence.iter().map(shared).collect();
            let display_names = [a, b].map(|user| name(user).unwrap_or_default());
            DescribedPair { pair, display_names, values }
        });
        Ok(described.collect())
    }

    /// Reads the users that are still present.
    async fn each_present(
        &self,
        ids: &[LocalityId],
        mut read: impl FnMut(User),
    ) -> Result<(), Error> {
        let mut rest = ids;
        let mut pace = Pace::default();
        while !rest.is_empty() {
            let users = self.directory.backend.lookups.get(&self.tenant, rest, View::Full).await?;
            // The store returns at least one user.
            rest = &rest[users.len().clamp(1, rest.len())..];
            for encoded in users {
                pace.rest().await;
                let Some(encoded) = encoded? else { continue };
                let user = encoded.decode().map_err(|error| Error::Internal(error.into()))?;
                if is_present(user.state) {
                    read(user);
                }
            }
        }
        Ok(())
    }

    /// Continues with the next keys, or with the pairs if there are none.
    fn end_range(&mut self) {
        self.phase = match self.index.next_range() {
            true => Phase::Reading(None),
            false => {
                (self.index, self.held) = Default::default();
                let best = std::mem::take(&mut self.pairs).into_best();
                Phase::Answering(best.into_iter(), VecDeque::new())
            }
        };
    }
}

/// Whether too many users share a key for a sufficient score. Other values that they share have
/// keys of their own.
fn is_score_too_low(group: &[(Key, LocalityId)], min_score: u8) -> bool {
    let reason = group.first().and_then(|(key, _)| key.reason());
    reason.is_some_and(|reason| reason.score_shared(group.len() - 2) < min_score)
}

fn min_score(score: i32) -> Result<u8, Error> {
    match u8::try_from(score) {
        Ok(0) => Ok(DEFAULT_MIN_SCORE),
        Ok(score @ ..=100) => Ok(score),
        _ => Err(Error::invalid(Invalid::Field, "min_score", "must be from 0 to 100")),
    }
}

fn max_pairs(pairs: i32) -> Result<usize, Error> {
    match usize::try_from(pairs) {
        Ok(0) => Ok(DEFAULT_PAIRS),
        Ok(pairs) => Ok(pairs.min(MAX_PAIRS)),
        Err(_) => Err(Error::invalid(Invalid::Field, "max_pairs", "must not be negative")),
    }
}
