//! Inboxes inside one write transaction: rows by user and position, the positions of each notice,
//! and the times at which rows expire.

use locality_uuid::LocalityId;
use prost::Message;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::inbox::contents::{Content, Contents};
use crate::inbox::entry::EntryRecord;
use crate::schema::tables::{INBOX, INBOX_NOTICES, INBOX_TIMES};
use polynym_directory::{InboxChange, InboxLimits, Notice, Timestamp};
use polynym_store_common::integrity::NoticeFault;

/// The most rows that are read to mark notices up to a time: mutations wait for it.
const MARKED_ROWS: usize = 200;

/// The inboxes inside one write transaction.
pub struct Inboxes<'t> {
    rows: Table<'t, (&'static [u8; 16], u64), &'static [u8]>,
    notices: Table<'t, (&'static [u8; 16], &'static [u8; 16]), u64>,
    times: Table<'t, (i64, &'static [u8; 16], u64), ()>,
    contents: Contents<'t>,
}

impl<'t> Inboxes<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        Ok(Self {
            rows: transaction.open_table(INBOX)?,
            notices: transaction.open_table(INBOX_NOTICES)?,
            times: transaction.open_table(INBOX_TIMES)?,
            contents: Contents::open(transaction)?,
        })
    }

    /// Adds a notice to the inbox of a user, unless the inbox has or had it.
    pub fn deliver(
        &mut self,
        user: LocalityId,
        notice: &Notice,
        content: &Content,
        limits: InboxLimits,
    ) -> Result<(), Fault> {
        let (owner, id) = (user.as_bytes(), notice.id.as_bytes());
        if self.notices.get((owner, id))?.is_some() {
            return Ok(());
        }
        let position = self.last(user)? + 1;
        let own = match content {
            Content::Shared(content) => {
                self.contents.add_user(notice.id, user, content)?;
                None
            }
            Content::Copied(content) => Some(content.clone()),
        };
        let record = EntryRecord::new(notice, own, limits);
        self.rows.insert((owner, position), record.encode_to_vec().as_slice())?;
        self.notices.insert((owner, id), position)?;
        self.times.insert((record.expiry, owner, position), ())?;

        while let Some(first) = self.first(user)?.filter(|first| first + limits.count <= position) {
            self.remove(user, first)?;
        }
        Ok(())
    }

    /// The position of the latest notice, or 0.
    fn last(&self, user: LocalityId) -> Result<u64, Fault> {
        let last = self.rows.range(keys_of(&user))?.next_back().transpose()?;
        Ok(last.map_or(0, |(key, _)| key.value().1))
    }

    fn first(&self, user: LocalityId) -> Result<Option<u64>, Fault> {
        let first = self.rows.range(keys_of(&user))?.next().transpose()?;
        Ok(first.map(|(key, _)| key.value().1))
    }

    fn remove(&mut self, user: LocalityId, position: u64) -> Result<(), Fault> {
        let removed = self.rows.remove((user.as_bytes(), position))?;
        let Some(row) = removed.map(|row| row.value().to_vec()) else { return Ok(()) };
        // A damaged row must not prevent the removal of others.
        let Ok(record) = EntryRecord::read(&row, false) else { return Ok(()) };
        self.times.remove((record.expiry, user.as_bytes(), position))?;
        if let Ok(id) = record.id() {
            self.notices.remove((user.as_bytes(), id.as_bytes()))?;
            if record.is_shared {
                self.contents.remove_user(id, user)?;
            }
        }
        Ok(())
    }

    /// Changes the inbox of a user, or a part of it before a position. Returns the position at
    /// which to continue.
    pub fn change(
        &mut self,
        user: LocalityId,
        change: &InboxChange,
        before: u64,
    ) -> Result<Option<u64>, Fault> {
        match change {
            InboxChange::Read(notices) => {
                for notice in notices {
                    self.edit(user, *notice, |record| record.read = true)?;
                }
                Ok(None)
            }
            InboxChange::Delete(notice) => {
                self.edit(user, *notice, EntryRecord::delete)?;
                Ok(None)
            }
            InboxChange::ReadUpTo(time) => self.read_up_to(user, *time, before),
        }
    }

    /// Marks notices before a position as read that were sent at `time` or before, the latest
    /// first. Returns the position at which to continue.
    fn read_up_to(
        &mut self,
        user: LocalityId,
        time: Timestamp,
        before: u64,
    ) -> Result<Option<u64>, Fault> {
        let (mut unread, mut last, mut count) = (Vec::new(), 0, 0);
        for row in self.rows.range((user.as_bytes(), 0)..(user.as_bytes(), before))?.rev() {
            let (key, row) = row?;
            let record = EntryRecord::read(row.value(), false)?;
            (last, count) = (key.value().1, count + 1);
            if !record.read && record.send_time <= time.as_millis() {
                unread.push(last);
            }
            if count == MARKED_ROWS {
                break;
            }
        }
        for position in unread {
            self.edit_at(user, position, |record| record.read = true)?;
        }
        Ok((count == MARKED_ROWS).then_some(last))
    }

    /// Edits the entry of a notice, if the inbox has it.
    fn edit(
        &mut self,
        user: LocalityId,
        notice: LocalityId,
        edit: impl FnOnce(&mut EntryRecord),
    ) -> Result<(), Fault> {
        let position = self.notices.get((user.as_bytes(), notice.as_bytes()))?;
        let Some(position) = position.map(|position| position.value()) else { return Ok(()) };
        self.edit_at(user, position, edit)
    }

    /// Edits the entry at a position, if there is one.
    fn edit_at(
        &mut self,
        user: LocalityId,
        position: u64,
        edit: impl FnOnce(&mut EntryRecord),
    ) -> Result<(), Fault> {
        let key = (user.as_bytes(), position);
        let row = self.rows.get(key)?.map(|row| EntryRecord::decode(row.value()));
        let Some(mut record) = row.transpose().map_err(Fault::damaged)? else { return Ok(()) };
        let was_shared = record.is_shared;
        edit(&mut record);
        self.rows.insert(key, record.encode_to_vec().as_slice())?;
        if was_shared && !record.is_shared {
            self.contents.remove_user(record.id()?, user)?;
        }
        Ok(())
    }

    /// Repairs a fault of a notice.
    pub fn repair(&mut self, fault: &NoticeFault) -> Result<(), Fault> {
        let contents = &mut self.contents;
        match *fault {
            NoticeFault::Lost(_, _, notice) if contents.has(notice)? => Ok(()),
            NoticeFault::Lost(user, position, _) => {
                self.edit_at(user, position, EntryRecord::delete)
            }
            NoticeFault::Unlisted(user, notice) => contents.list_user(notice, user),
            NoticeFault::Stray(user, notice) => contents.remove_user(notice, user),
            NoticeFault::Unused(notice) => contents.remove_unused(notice),
            NoticeFault::Ownerless(user, _) => self.forget(user),
            NoticeFault::Unreadable(_) => Ok(()),
        }
    }

    /// Removes the inbox of a user.
    pub fn forget(&mut self, user: LocalityId) -> Result<(), Fault> {
        while let Some(first) = self.first(user)? {
            self.remove(user, first)?;
        }
        Ok(())
    }

    /// Removes the notice that expires first if it has expired. Returns whether it had.
    pub fn sweep(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let first = self.times.first()?.map(|(entry, _)| {
            let (expiry, user, position) = entry.value();
            (expiry, LocalityId::from(*user), position)
        });
        let expired = first.filter(|(expiry, ..)| *expiry <= now.as_millis());
        let Some((expiry, user, position)) = expired else {
            return Ok(false);
        };
        self.times.remove((expiry, user.as_bytes(), position))?;
        self.remove(user, position)?;
        Ok(true)
    }
}

/// The keys of all rows of a user.
pub fn keys_of(user: &LocalityId) -> std::ops::RangeInclusive<(&[u8; 16], u64)> {
    (user.as_bytes(), 0)..=(user.as_bytes(), u64::MAX)
}
