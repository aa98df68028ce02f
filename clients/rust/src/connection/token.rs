//! The caller's token, from a file that is read again when it changes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tonic::metadata::{Ascii, MetadataValue};

/// The interval between checks of the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The value of the header `authorization`.
pub type Authorization = MetadataValue<Ascii>;

/// Where the token comes from.
#[derive(Clone)]
pub enum Token {
    /// No token.
    Absent,
    /// A fixed token.
    Fixed(Authorization),
    /// The token in a file.
    File(Arc<TokenFile>),
}

impl Token {
    /// A token that never changes.
    pub fn fixed(token: &str) -> Result<Self, String> {
        authorization(token).map(Self::Fixed)
    }

    /// The token in a file.
    pub fn file(path: PathBuf) -> Result<Self, String> {
        let modified = modified(&path);
        let failure = |why: String| format!("the token file {}: {why}", path.display());
        let token = read(&path).map_err(failure)?;
        let state = Mutex::new(State { token, modified, checked: Instant::now() });
        Ok(Self::File(Arc::new(TokenFile { path, state })))
    }

    /// The header of the next call, if there is a token.
    pub fn current(&self) -> Option<Authorization> {
        match self {
            Self::Absent => None,
            Self::Fixed(token) => Some(token.clone()),
            Self::File(file) => Some(file.current()),
        }
    }
}

/// A file with a token.
pub struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    token: Authorization,
    modified: Option<SystemTime>,
    checked: Instant,
}

impl TokenFile {
    /// The token; the last one while the file cannot be read.
    fn current(&self) -> Authorization {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked.elapsed() >= CHECK_INTERVAL {
            state.checked = Instant::now();
            let modified = modified(&self.path);
            if modified != state.modified
                && let Ok(token) = read(&self.path)
            {
                state.modified = modified;
                state.token = token;
            }
        }
        state.token.clone()
    }
}

fn modified(path: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn read(path: &PathBuf) -> Result<Authorization, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        token => authorization(token),
    }
}

fn authorization(token: &str) -> Result<Authorization, String> {
    let header = format!("Bearer {token}").parse::<Authorization>();
    let mut header = header.map_err(|_| "the token has characters that cannot be sent")?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_read_and_an_unreadable_one_is_not_missed() {
        let path = std::env::temp_dir().join(format!("polynym-token-{}", uuid::Uuid::new_v4()));
        std::fs::write(&path, "one\n").unwrap();
        let Ok(Token::File(file)) = Token::file(path.clone()) else { panic!("no token") };
        // As if a second had passed, and the file were written a second later.
        let expire = || {
            let mut state = file.state.lock().unwrap();
            state.checked -= CHECK_INTERVAL;
            state.modified = None;
        };
        std::fs::write(&path, "two\n").unwrap();
        assert_eq!(file.current(), "Bearer one");
        expire();
        assert_eq!(file.current(), "Bearer two");
        std::fs::remove_file(&path).unwrap();
        expire();
        assert_eq!(file.current(), "Bearer two");
        assert!(Token::file(path).is_err());
    }
}
