//! The users of a file, one after another.

use polynym_proto::v1::User;
use polynym_table::encoding::Encoding;

use crate::notes::Notes;

/// The options for reading a file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The region of telephone numbers in national form; may be empty.
    pub region: String,
    /// The encoding of a file without a byte order mark; none for UTF-8.
    pub encoding: Option<&'static Encoding>,
}

/// A user of a file.
#[derive(Debug)]
pub struct Entry {
    /// The line in which the user begins, from 1; higher than that of the user before, if several
    /// are in one line.
    pub line: i64,
    /// The bytes of the file since the user before.
    pub bytes: usize,
    /// The user, or why there is none: the fault and its remedy.
    pub user: Result<User, String>,
}

/// The users of a file.
pub trait Users {
    /// The next user; none at the end.
    ///
    /// # Errors
    /// The rest of the file cannot be read: in words, with the line.
    fn next_user(&mut self) -> Result<Option<Entry>, String>;

    /// The data that were left out so far.
    fn notes(&self) -> &Notes;
}
