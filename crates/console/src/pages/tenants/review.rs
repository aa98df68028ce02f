//! The review of changed policies: before and after, and what a change removes.

use askama::Template;
use polynym_client::Client;
use polynym_presentation::duration;
use polynym_presentation::policy::Policy;
use polynym_proto::v1::{Policies, UpdateTenantRequest};
use prost_types::FieldMask;

use super::conflict;
use super::policy_form::Typed;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render};
use crate::views::Commands;
use crate::views::policies::{PolicyChange, changes};
use crate::visit::Visit;
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/tenants/review.html")]
struct ReviewPage {
    frame: Frame,
    changes: Vec<PolicyChange>,
    /// The fields of the form, to send again.
    fields: Vec<(String, String)>,
    commands: Commands,
}

/// The review of a form.
pub async fn page(visit: &Visit, client: &Client, name: &str, form: &Form, typed: &Typed) -> Page {
    let tenant = conflict::tenant(client).await?;
    let before = tenant.policies.unwrap_or_default();
    Ok(render(&ReviewPage {
        frame: visit.frame(name),
        changes: changes(&before, &typed.applied_to(&before)),
        fields: form.fields().to_vec(),
        commands: commands(name, typed),
    }))
}

/// The calls that make the change.
fn commands(name: &str, typed: &Typed) -> Commands {
    let mut cli = ["tenant", "set", "--tenant", name].map(str::to_owned).to_vec();
    let mut policies = Policies::default();
    for policy in &typed.mask {
        policy.copy(&typed.policies, &mut policies);
        cli.extend(arguments(policy, &typed.policies));
    }
    let request = UpdateTenantRequest {
        tenant: name.to_owned(),
        policies: Some(policies),
        update_mask: Some(FieldMask { paths: typed.paths() }),
        ..Default::default()
    };
    let words: Vec<_> = cli.iter().map(String::as_str).collect();
    Commands::new(&words, "AdminService/UpdateTenant", &request)
}

/// The arguments of `polynym tenant set` for a policy.
fn arguments(policy: &Policy, policies: &Policies) -> [String; 2] {
    let value = policy.value(policies).text(duration::argument);
    match policy.hold() {
        Some(kind) => ["--hold".to_owned(), format!("{kind}={value}")],
        None => [format!("--{}", policy.flag()), value],
    }
}
