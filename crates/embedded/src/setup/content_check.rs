//! The check of the contents that notices share: compares the rows of inboxes, the lists of users
//! who have a notice, and the contents.

use std::collections::HashSet;

use locality_uuid::LocalityId;
use redb::{Range, ReadOnlyTable, ReadTransaction};

use crate::error::Fault;
use crate::inbox::contents::users_of;
use crate::inbox::entry::EntryRecord;
use crate::inbox::inboxes::keys_of;
use crate::schema::tables::{INBOX, INBOX_CONTENT_USERS, INBOX_CONTENTS, INBOX_NOTICES};
use polynym_directory::encoded::notice::decode_content;
use polynym_store_common::integrity::NoticeFault;

type Position = (&'static [u8; 16], u64);
type Pair = (&'static [u8; 16], &'static [u8; 16]);

/// The check of all contents: one item for each row of an inbox, then one for each listed user,
/// then one for each content.
pub struct ContentCheck {
    inbox: ReadOnlyTable<Position, &'static [u8]>,
    notices: ReadOnlyTable<Pair, u64>,
    users: ReadOnlyTable<Pair, ()>,
    contents: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    rows_left: Range<'static, Position, &'static [u8]>,
    users_left: Range<'static, Pair, ()>,
    contents_left: Range<'static, &'static [u8; 16], &'static [u8]>,
    /// The notices whose contents do not list all users: these contents are in use.
    incomplete: HashSet<LocalityId>,
}

impl ContentCheck {
    /// The check of a store.
    pub fn new(transaction: &ReadTransaction) -> Result<Self, Fault> {
        let contents = transaction.open_table(INBOX_CONTENTS)?;
        let inbox = transaction.open_table(INBOX)?;
        let users = transaction.open_table(INBOX_CONTENT_USERS)?;
        Ok(Self {
            rows_left: inbox.range::<(&[u8; 16], u64)>(..)?,
            users_left: users.range::<(&[u8; 16], &[u8; 16])>(..)?,
            contents_left: contents.range::<&[u8; 16]>(..)?,
            notices: transaction.open_table(INBOX_NOTICES)?,
            inbox,
            users,
            contents,
            incomplete: HashSet::new(),
        })
    }

    fn step(&mut self) -> Result<Option<Option<NoticeFault>>, Fault> {
        if let Some(row) = self.rows_left.next() {
            let (key, row) = row?;
            let (user, position) = key.value();
            return self.check_row((*user).into(), position, row.value()).map(Some);
        }
        if let Some(row) = self.users_left.next() {
            let (key, _) = row?;
            let (notice, user) = key.value();
            let (notice, user) = (LocalityId::from(*notice), LocalityId::from(*user));
            let has_notice = self.has_notice(user, notice)?;
            return Ok(Some((!has_notice).then_some(NoticeFault::Stray(user, notice))));
        }
        let Some(row) = self.contents_left.next() else { return Ok(None) };
        let (notice, content) = row?;
        let notice = LocalityId::from(*notice.value());
        let is_used = self.incomplete.contains(&notice)
            || self.users.range(users_of(&notice))?.next().transpose()?.is_some();
        let is_readable = decode_content(content.value()).is_ok();
        Ok(Some(match (is_used, is_readable) {
            (true, true) => None,
            (true, false) => Some(NoticeFault::Unreadable(notice.to_string())),
            (false, _) => Some(NoticeFault::Unused(notice)),
        }))
    }

    fn check_row(
        &mut self,
        user: LocalityId,
        position: u64,
        row: &[u8],
    ) -> Result<Option<NoticeFault>, Fault> {
        let Ok((notice, is_shared)) = read_row(row) else {
            return Ok(Some(NoticeFault::Unreadable(format!("{user}/{position}"))));
        };
        if !is_shared {
            return Ok(None);
        }
        if self.contents.get(notice.as_bytes())?.is_none() {
            return Ok(Some(NoticeFault::Lost(user, position, notice)));
        }
        if self.users.get((notice.as_bytes(), user.as_bytes()))?.is_none() {
            self.incomplete.insert(notice);
            return Ok(Some(NoticeFault::Unlisted(user, notice)));
        }
        Ok(None)
    }

    /// Whether a user has a notice whose content is shared. Reads all rows of a user whose index
    /// does not have the notice.
    fn has_notice(&self, user: LocalityId, notice: LocalityId) -> Result<bool, Fault> {
        let position = self.notices.get((user.as_bytes(), notice.as_bytes()))?;
        if let Some(position) = position {
            let row = self.inbox.get((user.as_bytes(), position.value()))?;
            return Ok(row.is_some_and(|row| shared_notice(row.value()) == Some(notice)));
        }
        for row in self.inbox.range(keys_of(&user))? {
            if shared_notice(row?.1.value()) == Some(notice) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Iterator for ContentCheck {
    type Item = Result<Option<NoticeFault>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// The notice of a row, and whether its content is shared. Fails if any part of it cannot be read.
fn read_row(row: &[u8]) -> Result<(LocalityId, bool), Fault> {
    let record = EntryRecord::read(row, true)?;
    if let Some(content) = &record.content {
        decode_content(content).map_err(Fault::damaged)?;
    }
    Ok((record.id()?, record.is_shared))
}

/// The notice of a row, if its content is shared. None for a row that cannot be read.
fn shared_notice(row: &[u8]) -> Option<LocalityId> {
    let record = EntryRecord::read(row, false).ok().filter(|record| record.is_shared)?;
    record.id().ok()
}
