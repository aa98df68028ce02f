//! The forms that have made a token: each makes one, however often it is sent. Bounded: a new one
//! takes the place of the oldest.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// The maximum number of forms.
const MAX_FORMS: usize = 4_096;

/// The request ids of the forms, from the oldest.
#[derive(Default)]
pub struct UsedForms(Mutex<VecDeque<Uuid>>);

impl UsedForms {
    /// Notes a form before its token is made. Returns whether it has not made one yet.
    pub fn begin(&self, request_id: Uuid) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains(&request_id) {
            return false;
        }
        if used.len() >= MAX_FORMS {
            used.pop_front();
        }
        used.push_back(request_id);
        true
    }

    /// Forgets a form that has made no token: it may be sent again.
    pub fn undo(&self, request_id: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != request_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_counts_once_unless_it_failed() {
        let (forms, first) = (UsedForms::default(), Uuid::new_v4());
        assert!(forms.begin(first) && !forms.begin(first));
        forms.undo(first);
        assert!(forms.begin(first));
        assert!((0..MAX_FORMS).all(|_| forms.begin(Uuid::new_v4())));
        assert_eq!(forms.0.lock().unwrap().len(), MAX_FORMS);
    }
}
