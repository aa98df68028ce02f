//! The attributes of a user: add, change, remove.

use std::collections::BTreeMap;

use polynym_client::Client;
use polynym_presentation::attribute::words;
use prost_types::FieldMask;
use v1::UpdateUserRequest;

use super::shared_parts::{policies, user_id};
use crate::change::{problem, value};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::user::AttributeView;

/// The maximum number of known names that are offered.
const MAX_NAMES: i32 = 100;

#[derive(Template)]
#[template(path = "pages/user/attribute.html")]
struct AttributePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    /// The name; empty for a new attribute.
    name: String,
    /// The beginning of the value, if a form cannot change it.
    fixed: Option<String>,
    /// The name of the type that the tenant has defined; empty for any.
    defined: &'static str,
    types: Vec<(&'static str, &'static str)>,
    /// The names that users have, with the types that are demanded.
    names: Vec<(String, &'static str)>,
    commands: Option<Commands>,
}

/// Keeps the name of an attribute under a short id, and leads to its page: names are in no address.
pub async fn open(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    let search = visit.session.queries.add(form.raw("attribute"));
    let (home, id) = (visit.frame(&tenant).home(), user_id(&id)?);
    Ok(redirect(&format!("{home}/users/{id}/attribute/{search}")))
}

/// The page of an attribute.
pub async fn page(
    visit: Visit,
    Path((tenant, id, search)): Path<(String, String, ShortId)>,
) -> Page {
    let name = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
    let form = UserForm::new(visit, tenant, &id, Form::default()).await?;
    let current = form.user.attributes.get(&name).and_then(value::editable);
    let (type_name, text) = current.unwrap_or_default();
    let fields = Form::of(&[("attribute", &name), ("type", type_name), ("text", &text)]);
    show(form.with_fields(fields)).await
}

/// The form of a new attribute.
pub async fn new(form: UserForm) -> Page {
    show(form).await
}

/// Sets or removes an attribute.
pub async fn set(change: UserChange) -> Page {
    let request = match request(&change.tenant, &change.id, &change.form) {
        Ok(request) => check_new(&change).await?.map_or(Ok(request), Err),
        wrong => wrong,
    };
    let request = match request {
        Ok(request) => request,
        Err(problem) => return change.correct(problem, show).await,
    };
    let done = if change.form.has("remove") { "removed" } else { "set" };
    let outcome = change.client().registry().update_user(change.undoable(request)?).await;
    change.finish(outcome, done, show).await
}

/// Why a new attribute cannot be added: the user has one of this name, unchanged since the form was
/// loaded. After a change, the etag of the form decides.
async fn check_new(change: &UserChange) -> Result<Option<Problem>, Failure> {
    let form = &change.form;
    if form.has("attribute") {
        return Ok(None);
    }
    let user = problem::get(&change.client(), &change.id).await?;
    let is_known = user.etag == form.get("etag") && user.attributes.contains_key(form.get("name"));
    let message = "The user has this attribute already. Change it on the page of the user.";
    Ok(is_known.then(|| Problem::form("name", message)))
}

/// The name in a form: that of an attribute which the user has, or a new one.
fn name(form: &Form) -> &str {
    if form.has("attribute") { form.raw("attribute") } else { form.get("name") }
}

fn request(tenant: &str, id: &str, form: &Form) -> Result<UpdateUserRequest, Problem> {
    let name = name(form);
    if name.is_empty() {
        return Err(Problem::form("name", "Type a name, such as team."));
    }
    let mut attributes = BTreeMap::new();
    if !form.has("remove") {
        let value = value::parse(form.get("type"), form.raw("text"));
        let value = value.map_err(|message| Problem::form("text", message))?;
        attributes.insert(name.to_owned(), value);
    }
    let etag = form.get("etag").to_owned();
    Ok(UpdateUserRequest {
        tenant: tenant.to_owned(),
        user: Some(v1::User { user_id: id.to_owned(), etag, attributes, ..Default::default() }),
        update_mask: Some(FieldMask { paths: vec![value::mask_path(name)] }),
        request_id: form.get("request_id").to_owned(),
    })
}

async fn show(form: UserForm) -> Page {
    let is_new = !form.draft.form.has("attribute");
    let name = name(&form.draft.form).to_owned();
    let current = form.user.attributes.get(&name);
    let fixed = current.filter(|value| value::editable(value).is_none());
    let client = form.client();
    let definitions = policies(&client).await.attribute_definitions;
    let status = form.draft.status();
    let page = AttributePage {
        frame: form.frame(),
        fixed: fixed.map(|own| AttributeView::of((&name, own)).short().to_owned()),
        defined: type_of(&definitions, &name),
        types: value::types().collect(),
        names: if is_new { names(&client, &definitions).await } else { Vec::new() },
        commands: commands(&form.tenant, &form.user.user_id, &form.draft.form.typed()),
        name: if is_new { String::new() } else { name },
        user: UserView::of(&form.user),
        draft: form.draft,
    };
    Ok(render_with_status(&page, status))
}

/// The name of the type that a definition demands; empty for any.
fn type_of(definitions: &[v1::AttributeDefinition], name: &str) -> &'static str {
    let definition = definitions.iter().find(|definition| definition.name == name);
    definition.map_or("", |definition| words(definition.r#type()).argument)
}

/// Names that users of the tenant have, with the types that are demanded.
async fn names(
    client: &Client,
    definitions: &[v1::AttributeDefinition],
) -> Vec<(String, &'static str)> {
    let request = v1::ListAttributeNamesRequest { page_size: MAX_NAMES, ..Default::default() };
    let answer = client.admin().list_attribute_names(request).await;
    let names = answer.map(|answer| answer.names).unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), type_of(definitions, &name))).collect()
}

/// The calls that do the same; none if nothing is typed yet.
fn commands(tenant: &str, id: &str, form: &Form) -> Option<Commands> {
    let request = request(tenant, id, form).ok()?;
    let name = name(form);
    let argument = match request.user.as_ref()?.attributes.get(name) {
        Some(value) => value::argument(name, value).map(|own| format!("--attribute={own}")),
        None => Some(format!("--remove-attribute={name}")),
    };
    let cli = argument.as_deref().map(|own| ["user", "update", id, own, "--tenant", tenant]);
    let cli = cli.as_ref().map_or(&[][..], |words| &words[..]);
    Some(Commands::from_request(cli, &request))
}
