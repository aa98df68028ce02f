//! `polynym bulk start`.

use std::io::{IsTerminal, stdin};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::show::{follow, show};
use crate::client::{Session, request_id};
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output::confirm;
use crate::text::attribute::{self, AttributeArg};
use polynym_presentation::action::Action;
use polynym_proto::v1::bulk_action::{self, Attributes};
use polynym_proto::v1::{BulkAction, StartBulkChangeRequest};

pub const START: &str = "\
Examples:
  polynym bulk start disable --filter 'attributes.team = search' --dry-run --follow
  polynym bulk start delete --filter 'state = DISABLED AND update_time < 2025-01-01T00:00:00Z' --yes
  polynym bulk start set --filter '' --attribute plan=free --remove-attribute trial --yes

A filter is that of `polynym user search`; an empty one matches all users. What it matches at each
user's turn counts. The printed id is also the operation id in the history of the users.";

/// The action that changes attributes.
const SET: &str = "set";

#[derive(Args)]
pub struct Start {
    /// The change of each user.
    #[arg(value_name = "ACTION", value_parser = actions())]
    action: String,
    /// The filter of the users to change.
    #[arg(long, value_name = "FILTER")]
    filter: String,
    /// An attribute to set; can be repeated. TYPE: string, int, double, bool, time or list.
    #[arg(long = "attribute", value_name = "NAME[:TYPE]=VALUE", value_parser = attribute::parse)]
    attributes: Vec<AttributeArg>,
    /// An attribute to remove; can be repeated.
    #[arg(long = "remove-attribute", value_name = "NAME")]
    remove: Vec<String>,
    /// Count what would happen without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// Show the progress until the bulk change ends.
    #[arg(long)]
    follow: bool,
    /// Do not ask for confirmation at a terminal.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    settings: Flags<ChangeClient>,
}

/// The actions with their meanings.
fn actions() -> PossibleValuesParser {
    let attributes = (SET, "Set and remove attributes of the users".to_owned());
    let all = Action::bulk_labels().chain([attributes]);
    all.map(|(name, meaning)| PossibleValue::new(name).help(meaning)).collect::<Vec<_>>().into()
}

pub async fn start(command: Start) -> Result<(), Failure> {
    let action = action(&command)?;
    if !command.dry_run && !command.yes && stdin().is_terminal() {
        let question = "Change the users that the filter matches? Type yes: ";
        confirm::require_answer(question, "yes", "nothing was changed")?;
    }
    let session = Session::open_operation(&command.settings, "bulk").await?;
    let request = StartBulkChangeRequest {
        tenant: session.tenant(),
        bulk_id: session.operation_id().to_owned(),
        filter: command.filter,
        users: None,
        action: Some(BulkAction { action: Some(action) }),
        validate_only: command.dry_run,
        request_id: request_id(None),
    };
    let answer = session.answer(session.registry().start_bulk_change(request).await)?;
    let started = answer.bulk_change.unwrap_or_default();
    if command.follow { follow(&session, started).await } else { show(&session, &started) }
}

fn action(command: &Start) -> Result<bulk_action::Action, Failure> {
    let has_attributes = !command.attributes.is_empty() || !command.remove.is_empty();
    if has_attributes != (command.action == SET) {
        let rule = "`set`, and no other action, needs --attribute or --remove-attribute";
        return Err(Failure::Usage(rule.to_owned()));
    }
    let attributes = || {
        bulk_action::Action::Attributes(Attributes {
            set: command.attributes.iter().map(|a| (a.name.clone(), a.value.clone())).collect(),
            remove: command.remove.clone(),
        })
    };
    Ok(Action::bulk_named(&command.action).unwrap_or_else(attributes))
}
