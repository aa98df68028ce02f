//! A new bulk change. It begins with a dry run.

use askama::Template;
use polynym_access::Role;
use polynym_presentation::action::{Action as UserAction, bulk_name};
use polynym_proto::v1;
use serde::Deserialize;
use v1::bulk_action::{self, Action, Attributes};
use v1::start_bulk_change_request::Users;
use v1::{BulkAction, StartBulkChangeRequest};

use super::selection;
use crate::change::{Draft, Problem, Sent, value};
use crate::failure::Failure;
use crate::form::{Form, Path, Query};
use crate::frame::Frame;
use crate::render::{Page, redirect, render_with_status};
use crate::short_id::ShortId;
use crate::views::Commands;
use crate::views::reading::{self, Reading, filter_of};
use crate::visit::Visit;
use crate::words::filters;

/// The actions of the form, with their labels.
fn actions() -> Vec<(&'static str, String)> {
    let attributes = [("set", "Set an attribute"), ("remove", "Remove an attribute")]
        .map(|(name, label)| (name, label.to_owned()));
    [("", "Choose …".to_owned())]
        .into_iter()
        .chain(UserAction::bulk_labels())
        .chain(attributes)
        .collect()
}

#[derive(Template)]
#[template(path = "pages/bulk/new.html")]
struct NewPage {
    frame: Frame,
    draft: Draft,
    actions: Vec<(&'static str, String)>,
    types: Vec<(&'static str, &'static str)>,
    /// The number of selected users; 0 if a filter finds them.
    selected: usize,
    commands: Commands,
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Origin {
    /// The short id of the search whose users are to change.
    search: Option<ShortId>,
    /// The short id of the selected users.
    selection: Option<ShortId>,
}

/// The form, with the filter of a search or with the selected users.
pub async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Origin { search, selection }): Query<Origin>,
) -> Page {
    visit.require(Role::Registrar)?;
    let filter = match search {
        Some(search) => {
            let text = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
            match reading::read(&text, &visit.context.region) {
                Reading::Words(words) => filter_of(&words),
                _ => text,
            }
        }
        None => String::new(),
    };
    let selection = selection.map(|selection| selection.to_string()).unwrap_or_default();
    let draft = Draft::new(Form::of(&[("filter", &filter), ("selection", &selection)]));
    show(&visit, &tenant, draft)
}

/// Starts a dry run, and leads to its page.
pub async fn try_out(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let action = match action(&sent.form) {
        Ok(action) => action,
        Err((field, message)) => return again(&sent, Problem::form(field, message)),
    };
    let selected = selection::of_form(&sent.visit, &sent.form)?;
    let request = StartBulkChangeRequest {
        filter: sent.field("filter"),
        users: users(selected.as_deref().unwrap_or_default()),
        action: Some(BulkAction { action: Some(action) }),
        validate_only: true,
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    let client = sent.client();
    match client.registry().start_bulk_change(sent.call(request)?).await {
        Ok(answer) => {
            let id = answer.bulk_change.ok_or(Failure::NotFound)?.bulk_id;
            let kept = selected.map(|ids| selection::keep(&sent.visit, &id, &ids));
            Ok(redirect(&selection::address(&sent.home(), &id, kept)))
        }
        Err(error) => match Problem::of_call(&client, &error).await {
            Some(problem) => again(&sent, problem),
            None => Err(error.into()),
        },
    }
}

/// The list of a call; none without ids.
fn users(user_ids: &[String]) -> Option<Users> {
    (!user_ids.is_empty()).then(|| Users { user_ids: user_ids.to_vec() })
}

/// The form again with its problem. Unless the dry run may have begun, it gets a new request id.
fn again(sent: &Sent, problem: Problem) -> Page {
    let form = sent.form.clone();
    let draft = if problem.keeps_request_id() { Draft::unchanged(form) } else { Draft::new(form) };
    show(&sent.visit, &sent.tenant, draft.with(problem))
}

fn show(visit: &Visit, tenant: &str, draft: Draft) -> Page {
    let status = draft.status();
    let frame = visit.frame(tenant);
    let ids = selection::of_form(visit, &draft.form)?.unwrap_or_default();
    let commands = commands(tenant, &draft.form, &ids);
    let types = value::types().collect();
    let page = NewPage { frame, draft, actions: actions(), types, selected: ids.len(), commands };
    Ok(render_with_status(&page, status))
}

/// The action that a form describes. The error is a field, and what is wrong with it.
fn action(form: &Form) -> Result<Action, (&'static str, &'static str)> {
    let name = form.raw("attribute").to_owned();
    let named = || {
        if name.is_empty() {
            return Err(("attribute", "Name the attribute."));
        }
        Ok(name.clone())
    };
    Ok(match form.get("action") {
        "set" => {
            let value = value::parse(form.get("type"), form.raw("text"));
            let value = value.map_err(|message| ("text", message))?;
            Action::Attributes(Attributes { set: [(named()?, value)].into(), remove: Vec::new() })
        }
        "remove" => {
            Action::Attributes(Attributes { set: Default::default(), remove: vec![named()?] })
        }
        name => {
            UserAction::bulk_named(name).ok_or(("action", "Choose what to do with the users."))?
        }
    })
}

/// The dry run by command; of disabling, until an action is typed. The command line takes ids from
/// a file only: no command is shown for them.
fn commands(tenant: &str, form: &Form, ids: &[String]) -> Commands {
    let filter = form.get("filter");
    let action = action(form).unwrap_or(Action::Disable(bulk_action::Disable {}));
    let mut cli = vec!["bulk".to_owned(), "start".to_owned()];
    match &action {
        Action::Attributes(attributes) => {
            cli.push("set".to_owned());
            for (name, value) in &attributes.set {
                // A list with commas in its texts is no argument: then no command does it.
                let argument = value::argument(name, value);
                cli.extend(argument.map(|argument| format!("--attribute={argument}")));
            }
            cli.extend(attributes.remove.iter().map(|name| format!("--remove-attribute={name}")));
        }
        other => cli.extend(bulk_name(other).map(str::to_owned)),
    }
    cli.extend(
        ["--filter", filter, "--dry-run", "--follow", "--tenant", tenant].map(str::to_owned),
    );
    let mut cli: Vec<_> = cli.iter().map(String::as_str).collect();
    if !ids.is_empty() {
        cli.clear();
    }
    let request = StartBulkChangeRequest {
        users: users(ids),
        tenant: tenant.to_owned(),
        filter: filter.to_owned(),
        action: Some(BulkAction { action: Some(action) }),
        validate_only: true,
        ..Default::default()
    };
    Commands::new(&cli, "RegistryService/StartBulkChange", &request)
}
