//! `polynym find`.

use clap::Args;

use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::text::identifier::locale_region;
use crate::text::user_table;
use polynym_presentation::find;
use polynym_proto::v1::{FindUsersRequest, FoundUser};

pub const EXAMPLES: &str = "\
Examples:
  polynym find 'joe smith'
  polynym find 'Ann Lee <ann@example.com>'
  polynym find --region DE '030 1234567'
  polynym find 2671
  polynym find mueller --limit 0 --json";

/// The maximum users of one call.
const PAGE_SIZE: usize = 50;

#[derive(Args)]
pub struct Find {
    /// An identifier or a list of them, an id, words of the name, the end of a phone number, the
    /// start of an email address, or a whole value of an attribute that was defined with
    /// `polynym attribute define --find`.
    #[arg(value_name = "TEXT")]
    text: String,
    /// The country of national phone numbers, such as DE, before those of the tenant; by default
    /// that of the locale.
    #[arg(long, value_name = "COUNTRY")]
    region: Option<String>,
    /// The maximum number of users; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Continue an earlier command, with the token that it printed.
    #[arg(long, value_name = "TOKEN", default_value = "")]
    page_token: String,
    #[command(flatten)]
    settings: Flags<Client>,
}

/// Requests pages until enough users are shown.
pub async fn run(command: Find) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut left = if command.limit == 0 { usize::MAX } else { command.limit };
    let mut request = FindUsersRequest {
        tenant: session.tenant(),
        text: command.text,
        region: command.region.map_or_else(locale_region, |region| region.to_ascii_uppercase()),
        page_token: command.page_token,
        ..FindUsersRequest::default()
    };
    let (mut found, mut tried, mut suggestions) = (false, Vec::new(), Vec::new());
    loop {
        request.page_size = left.min(PAGE_SIZE) as i32;
        let page = session.answer(session.directory().find_users(request.clone()).await)?;
        print(&session, &page.matches)?;
        output::warn_unreadable(&page.unreadable_user_ids);
        found |= !page.matches.is_empty();
        left = left.saturating_sub(page.matches.len());
        tried.extend(page.tried);
        suggestions.extend(page.suggestions);
        request.page_token = page.next_page_token;
        if left == 0 || request.page_token.is_empty() {
            break;
        }
    }
    if !found && request.page_token.is_empty() {
        let tried = in_words(tried.iter().map(find::reading), "; ");
        let tried = Some(tried).filter(|tried| !tried.is_empty());
        eprintln!(
            "no user found{}",
            tried.map(|tried| format!("; tried {tried}")).unwrap_or_default()
        );
    }
    if !suggestions.is_empty() {
        eprintln!("did you mean {}?", printable(&suggestions.join(", ")));
    }
    if !request.page_token.is_empty() {
        let token = printable(&request.page_token);
        eprintln!("there may be more: continue with --page-token {token}");
    }
    Ok(())
}

fn print(session: &Session, found: &[FoundUser]) -> Result<(), Failure> {
    if session.json() {
        return found.iter().try_for_each(output::print_message);
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut table = output::table(["user", "name", "state", "identities", "found by"]);
    for found in found {
        let Some(user) = &found.user else { continue };
        let mut row = user_table::summary(user).to_vec();
        row.push(in_words(find::reasons(found).into_iter(), "\n"));
        table.add_row(row);
    }
    output::print_table(&table)
}

fn in_words(texts: impl Iterator<Item = String>, separator: &str) -> String {
    texts.map(|text| printable(&text).into_owned()).collect::<Vec<_>>().join(separator)
}
