//! A form that changes something, as it is shown.

use http::StatusCode;
use polynym_proto::v1;
use uuid::Uuid;

use super::problem::Problem;
use super::version::Version;
use crate::form::Form;

/// A form that changes something, as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The submitted fields.
    pub form: Form,
    /// The version of the user that is shown.
    pub version: Version,
    /// The idempotency key, so that the same form sent twice changes nothing twice.
    pub request_id: String,
    /// The reason why it was refused.
    pub problem: Option<Problem>,
}

impl Draft {
    /// A form about nobody in particular, such as of a new user.
    pub fn new(form: Form) -> Self {
        Self { form, request_id: Uuid::now_v7().to_string(), ..Self::default() }
    }

    /// A form about a user as it is now.
    pub fn of(user: &v1::User, form: Form) -> Self {
        Self { version: Version::of(user), ..Self::new(form) }
    }

    /// The form as it was sent, with its etag and its request id.
    pub fn unchanged(form: Form) -> Self {
        let request_id = form.get("request_id").to_owned();
        Self { version: Version::from_form(&form, ""), request_id, problem: None, form }
    }

    /// The same form with why it was refused, and with what the problem offers in its field.
    pub fn with(self, problem: Problem) -> Self {
        let form = match problem.offer.is_empty() {
            true => self.form,
            false => self.form.with(&problem.field, &problem.offer),
        };
        Self { problem: Some(problem), form, ..self }
    }

    /// The status of the page of the form.
    pub fn status(&self) -> StatusCode {
        self.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status)
    }

    /// The text of the button: `verb`, or what it does after somebody else changed the user.
    pub fn verb<'a>(&'a self, verb: &'a str) -> &'a str {
        match &self.problem {
            Some(problem) if problem.is_stale() => "Apply again",
            _ => verb,
        }
    }

    /// The text of the button of the form with this name, on a page with several.
    pub fn verb_of<'a>(&'a self, name: &str, verb: &'a str) -> &'a str {
        if self.form.get("form") == name { self.verb(verb) } else { verb }
    }

    /// The reason that was typed in the form with this name, on a page with several.
    pub fn reason_of(&self, name: &str) -> &str {
        if self.form.get("form") == name { self.form.get("reason") } else { "" }
    }

    /// Whether the form was refused because of a field of this name.
    pub fn is_wrong(&self, field: &str) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.field.contains(field))
    }

    /// Whether the identifier is held for its former owner.
    pub fn is_held(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.reason == "IDENTITY_HELD")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_without_an_answer_is_sent_again_as_it_was() {
        let fields = [("name", "Joe"), ("etag", "a"), ("request_id", "b"), ("seen", "c")];
        let draft = Draft::unchanged(Form::of(&fields));
        let Version { etag, time } = &draft.version;
        assert_eq!((&**etag, &*draft.request_id, &**time), ("a", "b", "c"));
        assert_eq!((draft.form.get("name"), draft.verb("Change")), ("Joe", "Change"));
        let user = v1::User { etag: "d".to_owned(), ..Default::default() };
        let mut stale = Problem::default();
        stale.reason = "ETAG_MISMATCH".to_owned();
        let again = Draft::of(&user, draft.form).with(stale);
        assert_eq!((&*again.version.etag, again.verb("Change")), ("d", "Apply again"));
        assert!(!again.request_id.is_empty() && again.request_id != "b");
    }
}
