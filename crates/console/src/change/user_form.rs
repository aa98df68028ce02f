//! A form about one user: as a page shows it, and as it was sent.

use std::ops::Deref;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::IntoResponse;
use http::Response;
use http::request::Parts;
use polynym_access::Role;
use polynym_client::{Client, Error};
use polynym_proto::v1;

use super::draft::Draft;
use super::problem::{self, Problem};
use super::submission::Sent;
use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::frame::Frame;
use crate::render::Page;
use crate::visit::Visit;

/// The tenant and the id in the address of a user.
type UserPath = Path<(String, String)>;

/// A form about a user, as a page shows it. As an argument of a page it is that of a caller who may
/// change users, and has no fields.
pub struct UserForm {
    pub visit: Visit,
    pub tenant: String,
    pub user: v1::User,
    pub draft: Draft,
}

impl UserForm {
    /// A form with these fields about a user as it is now.
    ///
    /// # Errors
    /// The user cannot be read.
    pub async fn new(
        visit: Visit,
        tenant: String,
        id: &str,
        fields: Form,
    ) -> Result<Self, Failure> {
        let user = problem::get(&visit.client(&tenant), id).await?;
        let draft = Draft::of(&user, fields);
        Ok(Self { visit, tenant, user, draft })
    }

    /// The form with other fields.
    pub fn with_fields(mut self, fields: Form) -> Self {
        self.draft.form = fields;
        self
    }

    /// The frame of its page.
    pub fn frame(&self) -> Frame {
        self.visit.frame(&self.tenant)
    }

    /// The client of the API.
    pub fn client(&self) -> Client {
        self.visit.client(&self.tenant)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UserForm {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let (visit, Path((tenant, id))) =
            <(Visit, UserPath)>::from_request_parts(parts, state).await?;
        visit.require(Role::Registrar).map_err(IntoResponse::into_response)?;
        let form = Self::new(visit, tenant, &id, Form::default()).await;
        form.map_err(IntoResponse::into_response)
    }
}

/// A form that was sent to change a user.
pub struct UserChange {
    sent: Sent,
    /// The id of the user.
    pub id: String,
}

impl Deref for UserChange {
    type Target = Sent;

    fn deref(&self) -> &Sent {
        &self.sent
    }
}

impl UserChange {
    /// A form of somebody who may change users.
    ///
    /// # Errors
    /// The role is too low.
    pub fn new(visit: Visit, tenant: String, id: String, form: Form) -> Result<Self, Failure> {
        Ok(Self { sent: Sent::new(visit, tenant, form)?, id })
    }

    /// Leads to the user's page, which says what was done, or shows the form again with why the
    /// change was refused.
    ///
    /// # Errors
    /// The form cannot be corrected.
    pub async fn finish<A, P: Future<Output = Page>>(
        self,
        outcome: Result<A, Error>,
        done: &'static str,
        show: impl FnOnce(UserForm) -> P,
    ) -> Page {
        match outcome {
            Ok(_) => Ok(self.to_user(&self.id, done)),
            Err(error) => self.refuse(error, show).await,
        }
    }

    /// Shows the form again with why the change was refused.
    ///
    /// # Errors
    /// The form cannot be corrected.
    pub async fn refuse<P: Future<Output = Page>>(
        self,
        error: Error,
        show: impl FnOnce(UserForm) -> P,
    ) -> Page {
        let again = self.refused(error, &self.id).await?;
        show(self.with(again)).await
    }

    /// Shows the form again with an error of its own.
    ///
    /// # Errors
    /// The user cannot be read.
    pub async fn correct<P: Future<Output = Page>>(
        self,
        problem: Problem,
        show: impl FnOnce(UserForm) -> P,
    ) -> Page {
        let again = self.wrong(problem, &self.id).await?;
        show(self.with(again)).await
    }

    fn with(self, (user, draft): (v1::User, Draft)) -> UserForm {
        UserForm { visit: self.sent.visit, tenant: self.sent.tenant, user, draft }
    }
}

impl<S: Send + Sync> FromRequest<S> for UserChange {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let (visit, Path((tenant, id)), form) =
            <(Visit, UserPath, Form)>::from_request(request, state).await?;
        Self::new(visit, tenant, id, form).map_err(IntoResponse::into_response)
    }
}
