//! The definitions of attributes: their types, and whether they are indexed.

use http::StatusCode;
use polynym_presentation::attribute::{TYPES, Type, words};
use serde::Deserialize;
use v1::{AttributeDefinition, ListAttributeNamesRequest, Policies};
use v1::{Tenant, UpdateTenantRequest};

use super::conflict::{self, Conflict, Refusal, Seen, update};
use crate::prelude::*;
use crate::session::Message;

/// The definitions of a page, and the names.
const PAGE_SIZE: usize = 25;

#[derive(Template)]
#[template(path = "pages/tenants/attributes.html")]
struct AttributesPage {
    frame: Frame,
    definitions: Vec<DefinitionView>,
    pager: Pager,
    /// Names without a definition that users have.
    names: Vec<String>,
    /// The token of the next page of names.
    next_names: String,
    /// The form.
    typed: DefinitionView,
    seen: Seen,
    error: String,
    conflict: Option<Conflict>,
    commands: Commands,
}

/// A definition.
#[derive(Clone, Default)]
struct DefinitionView {
    name: String,
    kind: &'static str,
    is_indexed: bool,
    is_evidence: bool,
    finds_users: bool,
    /// Since when its index is being built or removed.
    building: Option<Time>,
}

/// The type with this name on pages; any type if there is none.
fn named(name: &str) -> &'static Type {
    TYPES.iter().find(|known| known.name == name).unwrap_or(&TYPES[0])
}

impl DefinitionView {
    fn of(definition: &AttributeDefinition) -> Self {
        Self {
            name: definition.name.clone(),
            kind: words(definition.r#type()).name,
            is_indexed: definition.indexed.unwrap_or(true),
            is_evidence: definition.evidence,
            finds_users: definition.find,
            building: Time::of(definition.index_change_time.as_ref()),
        }
    }

    fn in_form(form: &Form) -> Self {
        Self {
            name: form.get("name").to_owned(),
            kind: named(form.get("type")).name,
            is_indexed: form.has("indexed"),
            is_evidence: form.has("evidence"),
            finds_users: form.has("find"),
            building: None,
        }
    }

    fn message(&self) -> AttributeDefinition {
        AttributeDefinition {
            name: self.name.clone(),
            indexed: Some(self.is_indexed),
            r#type: named(self.kind).kind.into(),
            evidence: self.is_evidence,
            find: self.finds_users,
            index_change_time: None,
        }
    }

    /// The names of all types, for the form.
    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|known| known.name)
    }
}

/// The query of the page.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// The page. Its token is the last name of the page before.
    after: Trail,
    /// The token of a page of names.
    names: String,
    /// The name in the form.
    name: String,
}

/// The definitions, and the form for one.
pub async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(parameters): Query<Parameters>,
) -> Page {
    visit.require(Role::Viewer)?;
    show(&visit, &tenant, parameters, Attempt::default()).await
}

/// The submitted fields, and why they were refused.
#[derive(Default)]
struct Attempt {
    typed: Option<DefinitionView>,
    status: StatusCode,
    error: String,
    conflict: Option<Conflict>,
}

async fn show(visit: &Visit, name: &str, parameters: Parameters, attempt: Attempt) -> Page {
    let client = visit.client(name);
    let request = ListAttributeNamesRequest {
        tenant: name.to_owned(),
        page_size: PAGE_SIZE as i32,
        page_token: parameters.names.clone(),
    };
    let listed = async {
        let answer = client.admin().list_attribute_names(request.clone()).await;
        answer.map_err(Failure::from)
    };
    let (tenant, listed) = tokio::try_join!(conflict::tenant(&client), listed)?;
    let mut definitions = definitions(&tenant);
    let is_free = |name: &String| definitions.iter().all(|known| known.name != *name);
    let names = listed.names.into_iter().filter(is_free).collect();
    let known = definitions.iter().find(|known| known.name == parameters.name).cloned();
    let new = DefinitionView { is_indexed: true, name: parameters.name, ..Default::default() };
    definitions.retain(|definition| definition.name.as_str() > parameters.after.token());
    let has_more = definitions.len() > PAGE_SIZE;
    definitions.truncate(PAGE_SIZE);
    let last = definitions.last().filter(|_| has_more).map_or("", |last| &last.name);
    let frame = visit.frame(name);
    let address = format!("{}/policies/attributes", frame.home());
    let pager = parameters.after.pager(&address, definitions.len(), last);
    let shown = ListAttributeNamesRequest { page_token: String::new(), ..request };
    let typed = attempt.typed.or(known).unwrap_or(new);
    let commands = commands(name, &typed, &shown);
    Ok(render_with_status(
        &AttributesPage {
            frame,
            pager,
            definitions,
            names,
            next_names: listed.next_page_token,
            typed,
            seen: Seen::of(&tenant),
            error: attempt.error,
            conflict: attempt.conflict,
            commands,
        },
        attempt.status,
    ))
}

/// The calls that define the attribute of the form or, while it has no name, list all names.
fn commands(tenant: &str, typed: &DefinitionView, listed: &ListAttributeNamesRequest) -> Commands {
    if typed.name.is_empty() {
        let cli = ["attribute", "names", "--tenant", tenant];
        return Commands::from_request(&cli, listed);
    }
    let kind = named(typed.kind).argument;
    let mut cli = vec!["attribute", "define", &typed.name, "--tenant", tenant];
    if !kind.is_empty() {
        cli.extend(["--type", kind]);
    }
    cli.extend((!typed.is_indexed).then_some("--no-index"));
    cli.extend(typed.is_evidence.then_some("--evidence"));
    cli.extend(typed.finds_users.then_some("--find"));
    let policies = Policies { attribute_definitions: vec![typed.message()], ..Default::default() };
    let (tenant, policies) = (tenant.to_owned(), Some(policies));
    let request = UpdateTenantRequest { tenant, policies, ..Default::default() };
    Commands::from_request(&cli, &request)
}

/// The definitions of a tenant, by name.
fn definitions(tenant: &Tenant) -> Vec<DefinitionView> {
    let all = tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    let mut views: Vec<_> = all.map(DefinitionView::of).collect();
    views.sort_by(|one, other| one.name.cmp(&other.name));
    views
}

/// Defines an attribute, or removes its definition.
pub async fn submit(visit: Visit, Path(name): Path<String>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let (client, seen) = (visit.client(&name), Seen::in_form(&form));
    let typed = DefinitionView::in_form(&form);
    let definition = if form.has("remove") {
        AttributeDefinition { name: typed.name.clone(), ..Default::default() }
    } else {
        typed.message()
    };
    let policies = Policies { attribute_definitions: vec![definition], ..Default::default() };
    let request = UpdateTenantRequest {
        policies: Some(policies),
        etag: seen.etag.clone(),
        request_id: seen.request_id.clone(),
        ..Default::default()
    };
    let attempt = match update(&client, request).await {
        Ok(_) => {
            let list = format!("{}/policies/attributes", visit.frame(&name).home());
            let text = "The definition of the attribute is saved.";
            return Ok(visit.done(&list, Message::done("defined", text)));
        }
        Err(Refusal::Conflict) => Attempt {
            status: StatusCode::CONFLICT,
            conflict: Some(seen.conflict(&client).await?),
            ..Attempt::default()
        },
        Err(Refusal::Invalid(message, _)) => Attempt {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            error: format!("Nothing was saved. {message}"),
            ..Attempt::default()
        },
        Err(Refusal::Other(failure)) => return Err(failure),
    };
    let attempt = Attempt { typed: Some(typed), ..attempt };
    show(&visit, &name, Parameters::default(), attempt).await
}
