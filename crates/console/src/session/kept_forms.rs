//! Forms of ended sessions, kept while somebody signs in at a provider: a browser does not take
//! them there. Bounded: a new one takes the place of the oldest.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The maximum number of forms.
const MAX_FORMS: usize = 128;
/// The maximum bytes of a form.
const MAX_FORM_BYTES: usize = 8 << 10;

/// The forms, from the oldest.
#[derive(Default)]
pub struct KeptForms(Mutex<VecDeque<(String, String)>>);

impl KeptForms {
    /// Keeps a form. Returns its id; empty if there is none, or if it is too large.
    pub fn keep(&self, form: &str) -> String {
        let mut bytes = [0; 16];
        if form.is_empty() || form.len() > MAX_FORM_BYTES || getrandom::fill(&mut bytes).is_err() {
            return String::new();
        }
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if forms.len() >= MAX_FORMS {
            forms.pop_front();
        }
        forms.push_back((id.clone(), form.to_owned()));
        id
    }

    /// Takes a form by its id; none if it has given way to others.
    pub fn take(&self, id: &str) -> Option<String> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = forms.iter().position(|(known, _)| known == id)?;
        forms.remove(place).map(|(_, form)| form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_taken_once_and_gives_way_to_newer_ones() {
        let forms = KeptForms::default();
        let first = forms.keep("q=1");
        let second = forms.keep("q=2");
        assert_eq!(forms.take(&second).as_deref(), Some("q=2"));
        assert_eq!(forms.take(&second), None);
        assert_eq!(forms.keep(""), "");
        assert_eq!(forms.keep(&"a".repeat(MAX_FORM_BYTES + 1)), "");
        for _ in 0..MAX_FORMS {
            forms.keep("q=3");
        }
        assert_eq!(forms.take(&first), None);
        assert_eq!(forms.0.lock().unwrap().len(), MAX_FORMS);
    }
}
