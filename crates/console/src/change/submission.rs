//! A form that was sent to change something.

use axum::body::Body;
use http::Response;
use polynym_access::Role;
use polynym_client::purpose::OPERATION_ID;
use polynym_client::{Client, Error};
use polynym_proto::v1;
use tonic::Request;
use uuid::Uuid;

use super::done::done;
use super::draft::Draft;
use super::identifier_fields;
use super::problem::{self, Problem};
use super::version::Version;
use crate::context::with_reason;
use crate::failure::Failure;
use crate::form::Form;
use crate::session::Message;
use crate::views::identity;
use crate::visit::Visit;

/// The prefix of the operation ids of the console. Each such operation is one change by one form.
pub const OWN_OPERATION: &str = "console-";

/// A form that was sent to change something.
pub struct Sent {
    pub visit: Visit,
    pub tenant: String,
    pub form: Form,
}

impl Sent {
    /// A form of somebody who may change users.
    ///
    /// # Errors
    /// The role is too low.
    pub fn new(visit: Visit, tenant: String, form: Form) -> Result<Self, Failure> {
        visit.require(Role::Registrar)?;
        Ok(Self { visit, tenant, form })
    }

    /// The client of the API.
    pub fn client(&self) -> Client {
        self.visit.client(&self.tenant)
    }

    /// The path of the tenant's pages.
    pub fn home(&self) -> String {
        self.visit.frame(&self.tenant).home()
    }

    /// The path of a user's page.
    pub fn user_path(&self, id: &str) -> String {
        format!("{}/users/{id}", self.home())
    }

    /// A field of the form.
    pub fn field(&self, name: &str) -> String {
        self.form.get(name).to_owned()
    }

    /// A call with the reason that was typed.
    ///
    /// # Errors
    /// The reason cannot be sent.
    pub fn call<T>(&self, message: T) -> Result<Request<T>, Failure> {
        with_reason(message, self.form.get("reason"))
    }

    /// A call that is an operation of its own, so that it can be undone.
    ///
    /// # Errors
    /// The reason cannot be sent.
    pub fn undoable<T>(&self, message: T) -> Result<Request<T>, Failure> {
        let mut request = self.call(message)?;
        if let Some(id) = self.operation().and_then(|id| id.parse().ok()) {
            request.metadata_mut().insert(OPERATION_ID, id);
        }
        Ok(request)
    }

    /// The operation id of this form's change. A form that is sent again has the same id, and one
    /// without a request id has none.
    fn operation(&self) -> Option<String> {
        let request_id = Uuid::parse_str(self.form.get("request_id")).ok()?;
        Some(format!("{OWN_OPERATION}{request_id}"))
    }

    /// Leads to a user's page, which says what was done, and offers to undo it.
    pub fn to_user(&self, id: &str, name: &'static str) -> Response<Body> {
        let path = self.user_path(id);
        let undo = self.operation().map(|operation| (format!("{path}/undo"), operation));
        self.visit.done(&path, Message { undo, ..done(name) })
    }

    /// Releases the hold on an identifier first if an admin has chosen that.
    ///
    /// # Errors
    /// The caller may not do that, or the API fails.
    pub async fn release_hold(&self) -> Result<(), Failure> {
        if !self.form.has("release") {
            return Ok(());
        }
        self.visit.require(Role::Admin)?;
        let request = v1::ReleaseHoldRequest {
            identifier: identity::parse(self.form.get("held")),
            request_id: Uuid::new_v4().to_string(),
            ..Default::default()
        };
        match self.client().admin().release_hold(self.call(request)?).await {
            Err(error) if error.reason() != "HOLD_NOT_FOUND" => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The form again after the change of a user was refused, and the user as it is now.
    ///
    /// # Errors
    /// The form cannot be corrected.
    pub async fn refused(&self, error: Error, id: &str) -> Result<(v1::User, Draft), Failure> {
        let client = self.client();
        let Some(mut problem) = Problem::of_call(&client, &error).await else {
            return Err(error.into());
        };
        let Ok(user) = problem::get(&client, id).await else { return Err(error.into()) };
        if let Ok(typed) = identifier_fields::identifier(&self.form, "") {
            problem = problem.about(&typed.text, id);
        }
        if problem.is_stale() {
            problem.changes = Version::from_form(&self.form, "").changes_since(&client, id).await;
        }
        let form = self.form.clone();
        let draft = if problem.keeps_request_id() {
            Draft::unchanged(form)
        } else {
            Draft::of(&user, form)
        };
        Ok((user, draft.with(problem)))
    }

    /// The form again with an error of its own, and the user as it is now.
    ///
    /// # Errors
    /// The user cannot be read.
    pub async fn wrong(&self, problem: Problem, id: &str) -> Result<(v1::User, Draft), Failure> {
        let user = problem::get(&self.client(), id).await?;
        Ok((user, Draft::unchanged(self.form.clone()).with(problem)))
    }
}
