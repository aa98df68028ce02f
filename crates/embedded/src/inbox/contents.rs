//! Contents that the notices of several users share: stored once, and removed with the last notice.

use locality_uuid::LocalityId;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::schema::tables::{INBOX_CONTENT_USERS, INBOX_CONTENTS};
use polynym_directory::{
    NoticeContent, encoded::notice::decode_content, encoded::notice::encode_content,
};

/// A shorter content is no larger than what sharing it takes.
const MIN_SHARED_BYTES: usize = 256;

/// The content of a notice that is being delivered, in its stored form.
pub enum Content {
    /// Each row has a copy.
    Copied(Vec<u8>),
    /// All rows share it.
    Shared(Vec<u8>),
}

impl Content {
    /// The content of a notice whose rows do not share it.
    pub fn copied(content: &NoticeContent) -> Self {
        Self::Copied(encode_content(content))
    }

    /// The content of a notice to this number of users.
    pub fn for_users(content: &NoticeContent, users: usize) -> Self {
        let content = encode_content(content);
        match users {
            2.. if content.len() >= MIN_SHARED_BYTES => Self::Shared(content),
            _ => Self::Copied(content),
        }
    }

    /// The bytes that it takes once, and those that it takes for each user.
    pub const fn bytes(&self) -> (usize, usize) {
        match self {
            Self::Copied(content) => (0, content.len()),
            Self::Shared(content) => (content.len(), 0),
        }
    }
}

/// The shared contents inside one write transaction.
pub struct Contents<'t> {
    contents: Table<'t, &'static [u8; 16], &'static [u8]>,
    users: Table<'t, (&'static [u8; 16], &'static [u8; 16]), ()>,
}

impl<'t> Contents<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        Ok(Self {
            contents: transaction.open_table(INBOX_CONTENTS)?,
            users: transaction.open_table(INBOX_CONTENT_USERS)?,
        })
    }

    /// Adds a user to those who have a notice, and the content with the first.
    pub fn add_user(
        &mut self,
        notice: LocalityId,
        user: LocalityId,
        content: &[u8],
    ) -> Result<(), Fault> {
        if !self.has(notice)? {
            self.contents.insert(notice.as_bytes(), content)?;
        }
        self.list_user(notice, user)
    }

    /// Whether the content of a notice is there.
    pub fn has(&self, notice: LocalityId) -> Result<bool, Fault> {
        Ok(self.contents.get(notice.as_bytes())?.is_some())
    }

    /// Adds a user to those who have a notice.
    pub fn list_user(&mut self, notice: LocalityId, user: LocalityId) -> Result<(), Fault> {
        self.users.insert((notice.as_bytes(), user.as_bytes()), ())?;
        Ok(())
    }

    /// Removes a user from those who have a notice, and the content if it was the last.
    pub fn remove_user(&mut self, notice: LocalityId, user: LocalityId) -> Result<(), Fault> {
        self.users.remove((notice.as_bytes(), user.as_bytes()))?;
        self.remove_unused(notice)
    }

    /// Removes the content of a notice that no user has.
    pub fn remove_unused(&mut self, notice: LocalityId) -> Result<(), Fault> {
        if self.users.range(users_of(&notice))?.next().transpose()?.is_none() {
            self.contents.remove(notice.as_bytes())?;
        }
        Ok(())
    }
}

/// The shared contents on a snapshot.
pub struct SharedContents(ReadOnlyTable<&'static [u8; 16], &'static [u8]>);

impl SharedContents {
    pub fn open(transaction: &ReadTransaction) -> Result<Self, Fault> {
        Ok(Self(transaction.open_table(INBOX_CONTENTS)?))
    }

    /// The content of a notice.
    pub fn of(&self, notice: LocalityId) -> Result<NoticeContent, Fault> {
        let content = self.0.get(notice.as_bytes())?;
        let content = content.ok_or_else(|| Fault::damaged("a notice has lost its content"))?;
        decode_content(content.value()).map_err(Fault::damaged)
    }
}

/// The keys of all users who have a notice.
pub fn users_of(notice: &LocalityId) -> std::ops::RangeInclusive<(&[u8; 16], &[u8; 16])> {
    (notice.as_bytes(), &[0; 16])..=(notice.as_bytes(), &[0xff; 16])
}
