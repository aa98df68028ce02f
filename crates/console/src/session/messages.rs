//! Messages about what was done, each for the page to which a form leads. A session keeps them, so
//! that no link can make one, and shows each once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::views::person::Person;

/// The messages that a session keeps: those of forms that were sent at about the same time.
const MAX_MESSAGES: usize = 16;
/// The age at which a message is dropped: its page was never opened.
const MAX_AGE: Duration = Duration::from_secs(60);

/// A message about what was done.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// What was done, such as `renamed`.
    pub code: &'static str,
    /// The sentence.
    pub text: String,
    /// Whether it says that something failed.
    pub is_warning: bool,
    /// The path to which the form of its undo is sent, and the operation; none if it has none.
    pub undo: Option<(String, String)>,
    /// The user of the page and another one, of a merge.
    pub people: Vec<Person>,
    /// A page that is next: its address, and the text of the link.
    pub link: Option<(String, &'static str)>,
}

impl Message {
    /// A message that something is done.
    pub fn done(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), ..Self::default() }
    }
}

/// The messages of a session that are not shown yet, by the paths of their pages.
#[derive(Default)]
pub struct Messages(Mutex<VecDeque<(String, Message, Instant)>>);

impl Messages {
    /// Keeps a message for the page of an address.
    pub fn add(&self, address: &str, message: Message) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_MESSAGES {
            kept.pop_front();
        }
        let path = address.split(['?', '#']).next().unwrap_or_default();
        kept.push_back((path.to_owned(), message, Instant::now()));
    }

    /// The latest message for the page at a path. It is not kept longer.
    pub fn take(&self, path: &str) -> Option<Message> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(.., time)| time.elapsed() < MAX_AGE);
        let found = kept.iter().rfind(|(known, ..)| known == path);
        let message = found.map(|(_, message, _)| message.clone());
        kept.retain(|(known, ..)| known != path);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_once_by_its_page_and_they_are_few() {
        let messages = Messages::default();
        messages.add("/a?x=1#y", Message::done("renamed", "Renamed."));
        assert!(messages.take("/b").is_none());
        assert_eq!(messages.take("/a").unwrap().text, "Renamed.");
        assert!(messages.take("/a").is_none());
        for n in 0..2 * MAX_MESSAGES {
            messages.add(&format!("/{n}"), Message::default());
        }
        assert_eq!(messages.0.lock().unwrap().len(), MAX_MESSAGES);
    }
}
