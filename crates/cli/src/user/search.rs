//! `polynym user search` and `polynym user list`.

use clap::Args;

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::filter_error::with_excerpt;
use crate::text::user_table;
use polynym_proto::v1::{SearchPlan, SearchUsersRequest, SearchUsersResponse, User};

pub const SEARCH: &str = "\
Examples:
  polynym user search 'attributes.team = \"search\" AND state = ACTIVE'
  polynym user search 'display_name:\"maria mül*\"' --limit 0 --json
  polynym user search 'identities.email = \"*@firma.example\" create_time >= 2024-05-01'
  polynym user search 'attributes.level >= 3' --explain
  polynym user search 'identities.email:* NOT attributes.\"Favorite Player\":*'

`display_name:\"...\"` finds names that have these words, without accents and case, in any order:
all of them, whole, or with a * their starts. A * at the start of a value stands for anything before
it.

Fields: attributes.NAME, display_name, state, create_time, update_time, and identities.email,
.handle, .phone, .social and .url. Operators: = != < <= > >= and :* for a field that is present.
A * at the end of a value matches a prefix. OR binds tighter than AND.

`display_name:\"...\"` finds names that have all of these words, without accents and case, in any
order; a * after the last one finds its start. A * at the start of a value stands
for anything before it.";

pub const LIST: &str = "\
Examples:
  polynym user list
  polynym user list --order-by display_name --limit 0 --json";

/// The maximum users of one call.
const PAGE_SIZE: usize = 200;

#[derive(Args)]
pub struct Search {
    /// The filter: conditions joined by AND, OR and NOT.
    #[arg(value_name = "FILTER")]
    filter: String,
    /// Show the query plan. Needs the role admin.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    list: List,
}

#[derive(Args)]
pub struct List {
    /// The field to sort by: display_name, create_time or attributes.NAME.
    #[arg(long, value_name = "FIELD", default_value = "")]
    order_by: String,
    /// The maximum number of users; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Continue an earlier command, with the token that it printed.
    #[arg(long, value_name = "TOKEN", default_value = "")]
    page_token: String,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn search(command: Search) -> Result<(), Failure> {
    run(command.list, command.filter, command.explain).await
}

pub async fn list(command: List) -> Result<(), Failure> {
    run(command, String::new(), false).await
}

/// Requests pages until enough users are shown.
async fn run(command: List, filter: String, explain: bool) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut left = if command.limit == 0 { usize::MAX } else { command.limit };
    let mut request = SearchUsersRequest {
        tenant: session.tenant(),
        filter,
        order_by: command.order_by,
        page_token: command.page_token,
        explain,
        ..SearchUsersRequest::default()
    };
    let (mut plan, mut found, mut hint) = (None::<SearchPlan>, false, String::new());
    loop {
        request.page_size = left.min(PAGE_SIZE) as i32;
        let message = request.clone();
        let outcome = session.directory().search_users(message).await;
        let answer =
            session.answer(outcome.map_err(|error| with_excerpt(error, &request.filter)))?;
        print(&session, &answer.users)?;
        output::warn_unreadable(&answer.unreadable_user_ids);
        found |= !answer.users.is_empty();
        hint = if hint.is_empty() { answer.hint } else { hint };
        left = left.saturating_sub(answer.users.len());
        plan = match (plan, answer.plan) {
            (Some(sum), Some(next)) => Some(with_counts(sum, &next)),
            (sum, next) => sum.or(next),
        };
        request.page_token = answer.next_page_token;
        if left == 0 || request.page_token.is_empty() {
            break;
        }
    }

    if let Some(plan) = plan {
        print_plan(&session, plan)?;
    }
    if !request.page_token.is_empty() {
        eprintln!(
            "there may be more: continue with --page-token {}",
            printable(&request.page_token)
        );
    } else if !found {
        eprintln!("{}", no_match(&hint));
    }
    Ok(())
}

/// The line for a search without a match.
pub fn no_match(hint: &str) -> String {
    match hint {
        "" => "no user matches".to_owned(),
        hint => format!("no user matches: {}", printable(hint)),
    }
}

/// The plan with the counts of the next page added.
fn with_counts(plan: SearchPlan, next: &SearchPlan) -> SearchPlan {
    SearchPlan {
        users_read: plan.users_read + next.users_read,
        users_matched: plan.users_matched + next.users_matched,
        ..plan
    }
}

fn print(session: &Session, users: &[User]) -> Result<(), Failure> {
    if session.json() {
        return users.iter().try_for_each(output::print_message);
    }
    if users.is_empty() {
        return Ok(());
    }

    let mut table = output::table(["user", "name", "state", "identities"]);
    for user in users {
        table.add_row(user_table::summary(user));
    }
    output::print_table(&table)
}

fn print_plan(session: &Session, plan: SearchPlan) -> Result<(), Failure> {
    if session.json() {
        let answer = SearchUsersResponse { plan: Some(plan), ..SearchUsersResponse::default() };
        return output::print_message(&answer);
    }
    let mut table = output::table(["plan", ""]);
    table.add_row(["lead", &printable(&plan.lead)]);
    table.add_row(["order", &printable(&plan.order)]);
    for probe in &plan.probes {
        let entries = format!("{}: {} entries", printable(&probe.lead), probe.entries);
        table.add_row(["weighed", &entries]);
    }
    table.add_row(["users read", &plan.users_read.to_string()]);
    table.add_row(["users matched", &plan.users_matched.to_string()]);
    output::print_table(&table)
}
