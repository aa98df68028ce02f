//! Creating a user with identities and attributes.

use axum::body::Body;
use http::Response;
use polynym_identifier::pasted;
use prost_types::Timestamp;
use v1::CreateUserRequest;

use super::shared_parts::Origin;
use crate::change::identifier_fields::{self, KINDS, TypedIdentifier};
use crate::change::{Sent, value};
use crate::prelude::*;
use crate::views::reading::{self, Reading};

/// The maximum number of identities, and of attributes, in the form.
const MAX_ROWS: usize = 10;

#[derive(Template)]
#[template(path = "pages/user/create.html")]
struct CreatePage {
    frame: Frame,
    draft: Draft,
    identities: Vec<IdentityRow>,
    attributes: Vec<AttributeRow>,
    kinds: [(&'static str, &'static str); 6],
    types: Vec<(&'static str, &'static str)>,
    max_rows: usize,
    commands: Option<Commands>,
}

/// The fields of an identity.
struct IdentityRow {
    n: usize,
    kind: String,
    value: String,
    region: String,
    is_primary: bool,
    is_wrong: bool,
}

/// The fields of an attribute.
struct AttributeRow {
    n: usize,
    name: String,
    type_name: String,
    text: String,
    is_wrong: bool,
}

/// A user as typed.
#[derive(Default)]
struct NewUser {
    /// The identities, and the numbers of their rows.
    identities: Vec<(usize, TypedIdentifier, bool)>,
    attributes: Vec<(String, v1::AttributeValue)>,
}

/// The form, with the identifier of a search.
pub async fn page(visit: Visit, Path(tenant): Path<String>, Query(origin): Query<Origin>) -> Page {
    visit.require(Role::Registrar)?;
    let text = origin.text(&visit);
    let (name, fields) = match reading::read(&text, &visit.context.region) {
        Reading::Identifier(typed) if text.contains('@') => {
            (pasted::name_beside(&text), identifier_fields::fields(&typed.text))
        }
        Reading::Identifier(typed) => (String::new(), identifier_fields::fields(&typed.text)),
        _ => Default::default(),
    };
    let region = &visit.context.region;
    let region = if fields.get("region").is_empty() { region } else { fields.get("region") };
    let form = Form::of(&[
        ("name", &name),
        ("kind.1", fields.get("kind")),
        ("value.1", fields.get("value")),
        ("region.1", region),
    ]);
    Ok(show(&visit, &tenant, Draft::new(form)))
}

/// Creates the user, or adds fields to the form.
pub async fn create(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    if sent.form.has("add") {
        let draft = Draft::unchanged(sent.form.clone());
        return Ok(show(&sent.visit, &sent.tenant, draft));
    }
    let user = match new_user(&sent.form) {
        Ok(user) => user,
        Err(problem) => {
            let draft = Draft::unchanged(sent.form.clone()).with(problem);
            return Ok(show(&sent.visit, &sent.tenant, draft));
        }
    };
    sent.release_hold().await?;
    let request = request(&sent.tenant, &sent.form, &user);
    let error = match sent.client().registry().create_user(sent.undoable(request)?).await {
        Ok(answer) => {
            let user = answer.user.ok_or(Failure::NotFound)?;
            return Ok(sent.to_user(&user.user_id, "created"));
        }
        Err(error) => error,
    };
    let problem = Problem::of_call(&sent.client(), &error).await.ok_or_else(|| error.clone())?;
    let draft = if problem.keeps_request_id() {
        Draft::unchanged(sent.form.clone())
    } else {
        Draft::new(sent.form.clone())
    };
    Ok(show(&sent.visit, &sent.tenant, draft.with(of_row(problem, &user))))
}

/// The problem of an identity of the request, such as `user.identities[0].identifier`, as that of
/// its row.
fn of_row(mut problem: Problem, user: &NewUser) -> Problem {
    let rest = problem.field.strip_prefix("user.identities[");
    let n = rest.and_then(|rest| rest.split(']').next()).and_then(|n| n.parse::<usize>().ok());
    match n.and_then(|n| user.identities.get(n)) {
        Some((row, typed, _)) => {
            problem.field = format!("value.{row}");
            problem.about(&typed.text, "")
        }
        None => problem,
    }
}

/// Reads the rows that are filled in.
fn new_user(form: &Form) -> Result<NewUser, Problem> {
    let mut user = NewUser::default();
    for n in 1..=MAX_ROWS {
        if !form.get(&format!("value.{n}")).is_empty() {
            let typed = identifier_fields::identifier(form, &format!(".{n}"))?;
            user.identities.push((n, typed, form.has(&format!("primary.{n}"))));
        }
        let name = form.get(&format!("attribute.{n}"));
        let text = form.raw(&format!("text.{n}"));
        if name.is_empty() && text.is_empty() {
            continue;
        }
        let wrong = |message: &str| Problem::form(&format!("text.{n}"), message);
        if name.is_empty() {
            return Err(wrong("Type a name for this attribute, such as team."));
        }
        if user.attributes.iter().any(|(known, _)| known == name) {
            return Err(wrong("Another row has an attribute of this name."));
        }
        let value = value::parse(form.get(&format!("type.{n}")), text).map_err(wrong)?;
        user.attributes.push((name.to_owned(), value));
    }
    Ok(user)
}

fn request(tenant: &str, form: &Form, user: &NewUser) -> CreateUserRequest {
    let is_verified = form.has("verified");
    let verify_time = is_verified.then(|| Timestamp::from(std::time::SystemTime::now()));
    let verified_by = if is_verified { form.get("verified_by") } else { "" };
    let identity = |(_, typed, primary): &(usize, TypedIdentifier, bool)| v1::Identity {
        identifier: Some(typed.message.clone()),
        primary: *primary,
        verify_time,
        verified_by: verified_by.to_owned(),
        ..Default::default()
    };
    CreateUserRequest {
        tenant: tenant.to_owned(),
        user: Some(v1::User {
            display_name: form.get("name").to_owned(),
            identities: user.identities.iter().map(identity).collect(),
            attributes: user.attributes.iter().cloned().collect(),
            ..Default::default()
        }),
        request_id: form.get("request_id").to_owned(),
    }
}

fn show(visit: &Visit, tenant: &str, draft: Draft) -> Response<Body> {
    let status = draft.status();
    let page = CreatePage {
        frame: visit.frame(tenant),
        identities: identity_rows(&draft, &visit.context.region),
        attributes: attribute_rows(&draft),
        kinds: KINDS,
        types: value::types().collect(),
        max_rows: MAX_ROWS,
        commands: commands(tenant, &draft.form.typed()),
        draft,
    };
    render_with_status(&page, status)
}

/// The number of rows: those that are filled in, and another one if that was asked for.
fn count(form: &Form, field: &str, name: &str) -> usize {
    let filled = (1..=MAX_ROWS).filter(|n| form.has(&format!("{field}.{n}"))).count();
    (filled + usize::from(form.get("add") == name)).clamp(1, MAX_ROWS)
}

fn identity_rows(draft: &Draft, region: &str) -> Vec<IdentityRow> {
    let field = |name: &str, n: usize| draft.form.get(&format!("{name}.{n}")).to_owned();
    let row = |n| IdentityRow {
        n,
        kind: field("kind", n),
        value: field("value", n),
        region: Some(field("region", n))
            .filter(|own| !own.is_empty())
            .unwrap_or_else(|| region.to_owned()),
        is_primary: draft.form.has(&format!("primary.{n}")),
        is_wrong: is_wrong(draft, &format!("value.{n}")),
    };
    (1..=count(&draft.form, "value", "identity")).map(row).collect()
}

fn attribute_rows(draft: &Draft) -> Vec<AttributeRow> {
    let field = |name: &str, n: usize| draft.form.raw(&format!("{name}.{n}")).to_owned();
    let row = |n| AttributeRow {
        n,
        name: field("attribute", n),
        type_name: field("type", n),
        text: field("text", n),
        is_wrong: is_wrong(draft, &format!("text.{n}")),
    };
    (1..=count(&draft.form, "attribute", "attribute")).map(row).collect()
}

fn is_wrong(draft: &Draft, field: &str) -> bool {
    draft.problem.as_ref().is_some_and(|problem| problem.field == field)
}

/// The calls that do the same; none while the form has errors.
fn commands(tenant: &str, form: &Form) -> Option<Commands> {
    let user = new_user(form).ok()?;
    let mut cli: Vec<String> = vec!["user".to_owned(), "create".to_owned()];
    let name = form.get("name");
    if !name.is_empty() {
        cli.push(format!("--name={name}"));
    }
    for (_, typed, primary) in &user.identities {
        let flag = if *primary { "--primary" } else { "--identity" };
        cli.extend([flag.to_owned(), typed.text.clone()]);
    }
    if form.has("verified") {
        cli.push("--verified".to_owned());
        if !form.get("verified_by").is_empty() {
            cli.push(format!("--by={}", form.get("verified_by")));
        }
    }
    let arguments = user.attributes.iter().map(|(name, value)| value::argument(name, value));
    let arguments: Option<Vec<_>> = arguments.collect();
    for argument in arguments.iter().flatten() {
        cli.extend(["--attribute".to_owned(), argument.clone()]);
    }
    cli.extend(["--tenant".to_owned(), tenant.to_owned()]);
    let words: Vec<_> = cli.iter().map(String::as_str).collect();
    let words = if arguments.is_some() { &words[..] } else { &[] };
    let request = request(tenant, form, &user);
    Some(Commands::from_request(words, &request))
}
