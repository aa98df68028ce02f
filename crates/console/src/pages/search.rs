//! The search box: what a text means, whose identifier it is, and the users that a filter matches.

mod background;
mod columns;
mod desk;
mod export;
mod filter_parts;
mod found;
pub mod home;
mod new_conditions;
mod order;
mod refine;
mod refusal;
mod saved;
mod values;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::{HeaderMap, Response, StatusCode};
use polynym_client::Client;
use serde::Deserialize;
use v1::{ResolveIdentityRequest, SearchUsersRequest};

use self::background::Background;
use self::columns::{Cell, Columns, Row};
use self::found::IdentityResult;
use self::order::{Heading, Order, Ordered, headings};
use self::refine::{Refinement, Refused};
use self::refusal::Refusal;
use self::saved::SavedSearches;
use crate::console::Shared;
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::listed::{self, Listed};
use crate::views::reading::{self, Reading, filter_of};

/// The users that are shown while somebody types.
const SUGGESTIONS: i32 = 8;

#[derive(Template)]
#[template(path = "pages/results.html")]
struct ResultsPage {
    frame: Frame,
    text: String,
    id: ShortId,
    order: Order,
    results: Results,
    /// Why the text was refused, if it was.
    refusal: Option<Refusal>,
    refinement: Option<Refinement>,
    /// The name under which the search is saved; empty if it is not.
    saved_as: String,
    pager: Pager,
    headings: Vec<Heading>,
    /// Whether a column has accounts, which a table leaves out.
    has_accounts: bool,
    background: Option<Background>,
    /// The owner's time that was asked for.
    as_of: String,
    commands: Option<Commands>,
}

impl ResultsPage {
    /// Whether these are all users.
    fn is_all(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The address of a page about this list, in its order.
    fn page(&self, name: &str) -> String {
        self.order.address(&format!("{}/search/{}/{name}", self.frame.home(), self.id))
    }
}

#[derive(Template)]
#[template(path = "partials/suggestions.html")]
struct Suggestions {
    frame: Frame,
    results: Results,
}

/// The results of a search.
#[derive(Default)]
struct Results {
    /// How an identifier was read; empty for other texts.
    description: String,
    /// The ways in which the text was read.
    tried: Vec<String>,
    /// The list of identifiers that the text is, if it is one.
    listed: Option<Listed>,
    identity: Option<IdentityResult>,
    /// Whether the first row is the owner of the identifier.
    has_owner: bool,
    rows: Vec<Row>,
    /// The reason why no user matches.
    hint: String,
    /// The number of users that cannot be read.
    unreadable: usize,
    /// The token of the next page.
    next: String,
    /// The users of all pages, if they are counted.
    count: Option<v1::UserCount>,
    /// Words of names that the text may have been meant to have.
    suggestions: Vec<String>,
    /// Whether there may be users beyond the page, which is the only one.
    is_cut: bool,
    /// Whether the tenant finds users by an attribute.
    finds_by_attribute: bool,
    /// The filter for the words of the text, as which they can be exported and changed.
    filter: String,
    /// Whether a filter led to the users.
    is_filter: bool,
}

/// The query of a list.
#[derive(Default, Deserialize)]
pub struct Position {
    #[serde(default)]
    after: Trail,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    as_of: String,
}

/// The pages of searches, below the path of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/search", post(submit))
        .route("/search/{id}", get(results))
        .route("/search/{id}/columns", get(columns::page).post(columns::set))
        .route("/search/{id}/export", get(export::file))
        .route("/search/{id}/filter", post(add))
        .route("/search/{id}/values", post(values::suggest))
        .route("/search/{id}/save", post(saved::save))
        .route("/saved/{saved}", get(saved::open))
        .route("/saved/{saved}/remove", post(saved::remove))
        .route("/search/{id}/without/{part}", get(refine::remove))
}

/// Leads to the first tenant that the caller may work in; to the list if the credential names none.
pub async fn first(State(shared): State<Arc<Shared>>, visit: Visit) -> Page {
    let tenants = &visit.caller.tenants;
    let named = tenants.patterns().iter().map(String::as_str).find(|name| !name.ends_with('*'));
    let default = Some("default").filter(|name| tenants.contains(name));
    Ok(redirect(&match default.or(named) {
        Some(tenant) => format!("{}/t/{tenant}/", shared.base),
        None => format!("{}/tenants", shared.base),
    }))
}

/// Keeps a search under a short id, and leads to its results. While somebody types, shows the best
/// ones at once.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    let text = &form.get("q").replace(char::is_control, " ");
    let frame = visit.frame(&tenant);
    if visit.context.is_partial && text.is_empty() {
        return Ok(render(&Suggestions { frame, results: Results::default() }));
    }
    if visit.context.is_partial {
        let list = List { size: SUGGESTIONS, ..List::default() };
        let results = find(&visit, &tenant, text, list).await.unwrap_or_else(|failure| Results {
            hint: Refusal::of(&failure).map(|refusal| refusal.message).unwrap_or_default(),
            ..Results::default()
        });
        return Ok(render(&Suggestions { frame, results }));
    }
    if text.is_empty() && !visit.frame(&tenant).may_view() {
        return Ok(redirect(&format!("{}/", frame.home())));
    }
    if let Reading::Id(user_id) = reading::read(text, &visit.context.region) {
        let path = format!("{}/users/{user_id}", frame.home());
        let request = v1::GetUserRequest { user_id, ..Default::default() };
        if visit.client(&tenant).directory().get_user(request).await.is_ok() {
            return Ok(redirect(&path));
        }
    }
    let id = visit.session.queries.add(text);
    Ok(redirect(&format!("{}/search/{id}", frame.home())))
}

/// The results of a search.
pub async fn results(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(position): Query<Position>,
) -> Page {
    show(&visit, &headers, (tenant, id), position, None).await
}

/// Leads to the list with further conditions, or shows the form that was refused.
async fn add(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Ordered { order }): Query<Ordered>,
    form: Form,
) -> Page {
    match refine::add(&visit, &tenant, (id, order), form).await? {
        Ok(response) => Ok(response),
        Err(refused) => {
            let position = Position { order, ..Position::default() };
            show(&visit, &headers, (tenant, id), position, Some(refused)).await
        }
    }
}

/// The page of a search. It may have a form that was refused.
async fn show(
    visit: &Visit,
    headers: &HeaderMap,
    (tenant, id): (String, ShortId),
    Position { after, order, as_of }: Position,
    refused: Option<Refused>,
) -> Result<Response<Body>, Failure> {
    let text = visit.session.queries.get(id).ok_or(Failure::SearchGone)?;
    let columns = Columns::of(headers);
    let has_accounts = columns.has_accounts();
    let list = list(&columns, after.token(), order);
    let is_wrong = refused.is_some();
    let (results, background, refinement) = tokio::join!(
        find(visit, &tenant, &text, list),
        background(visit, &tenant, &text, &as_of),
        refine::of(visit, &tenant, &text, (id, order), refused),
    );
    let (results, refusal) = match results {
        Ok(results) => (results, None),
        Err(failure) => (Results::default(), Some(Refusal::of(&failure).ok_or(failure)?)),
    };
    let background = background?;
    let is_wrong = is_wrong || background.as_ref().is_some_and(Background::is_wrong);
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let status = refusal.as_ref().map_or(status, |refusal| refusal.status);
    let commands = commands(visit, &tenant, &text).filter(|_| refusal.is_none());
    let saved_as = SavedSearches::of(headers).name_of(&visit.caller.name, &text);
    let frame = visit.frame(&tenant);
    let address = format!("{}/search/{id}", frame.home());
    let headings = headings(&columns, order, results.is_filter.then_some(&*address));
    let pager = after
        .pager(&order.address(&address), results.rows.len(), &results.next)
        .of_first(results.is_cut)
        .with_count(results.count.as_ref());
    let page = ResultsPage {
        frame,
        pager,
        text,
        id,
        order,
        results,
        refusal,
        refinement,
        saved_as,
        headings,
        has_accounts,
        background,
        as_of,
        commands,
    };
    Ok(render_with_status(&page, status))
}

/// The list that a page asks for.
fn list(columns: &Columns, after: &str, order: Order) -> List {
    let (size, columns) = (columns.size, columns.clone());
    List { size, after: after.to_owned(), order, counts: true, columns }
}

/// What is behind a text that names an identifier.
async fn background(
    visit: &Visit,
    tenant: &str,
    text: &str,
    as_of: &str,
) -> Result<Option<Background>, Failure> {
    let Reading::Identifier(typed) = reading::read(text, &visit.context.region) else {
        return Ok(None);
    };
    let may_view = visit.caller.role >= Role::Viewer;
    background::gather(&visit.client(tenant), &typed, may_view, as_of).await.map(Some)
}

/// The part of a list to read, with its columns.
#[derive(Default)]
struct List {
    size: i32,
    after: String,
    order: Order,
    /// Whether to count the users of a filter.
    counts: bool,
    columns: Columns,
}

async fn find(visit: &Visit, tenant: &str, text: &str, list: List) -> Result<Results, Failure> {
    let (client, region) = (visit.client(tenant), &visit.context.region);
    let is_refused = visit.caller.role < Role::Viewer;
    match reading::read(text, region) {
        Reading::Filter(_) if is_refused => Err(Failure::RoleTooLow(Role::Viewer)),
        Reading::Filter(filter) => matching(&client, filter, list).await,
        Reading::Words(words) if words.is_empty() && is_refused => {
            Err(Failure::RoleTooLow(Role::Viewer))
        }
        Reading::Words(words) if words.is_empty() => matching(&client, words, list).await,
        Reading::Words(words) if listed::is_list(&words, region) => {
            found::listed(&client, found::request(text, region), list).await
        }
        Reading::Words(words) => {
            let results = found::users(&client, found::request(text, region), list).await?;
            Ok(Results { filter: filter_of(&words), ..results })
        }
        Reading::Id(_) => found::users(&client, found::request(text, region), list).await,
        Reading::Identifier(typed) => {
            let request = found::request(text, region);
            let results = found::identified(&client, request, &typed, list).await?;
            Ok(Results { description: typed.description, ..results })
        }
    }
}

/// The users that a filter matches.
async fn matching(client: &Client, filter: String, list: List) -> Result<Results, Failure> {
    let request = SearchUsersRequest {
        filter,
        order_by: list.order.field().to_owned(),
        page_size: list.size,
        page_token: list.after,
        read_mask: Some(list.columns.read_mask()),
        count: list.counts,
        ..Default::default()
    };
    let page = client.directory().search_users(request).await?;
    Ok(Results {
        rows: page.users.iter().map(|user| list.columns.row(user)).collect(),
        hint: page.hint,
        unreadable: page.unreadable_user_ids.len(),
        next: page.next_page_token,
        count: page.user_count,
        is_filter: true,
        ..Results::default()
    })
}

/// The calls that do the same.
fn commands(visit: &Visit, tenant: &str, text: &str) -> Option<Commands> {
    let tenant = tenant.to_owned();
    match reading::read(text, &visit.context.region) {
        Reading::Id(_) => None,
        Reading::Identifier(typed) => {
            let cli = ["resolve", &typed.text, "--tenant", &tenant];
            let identifier = Some(typed.message.clone());
            let request = ResolveIdentityRequest {
                tenant: tenant.clone(),
                identifier,
                show_disabled: true,
                ..Default::default()
            };
            Some(Commands::from_request(&cli, &request))
        }
        Reading::Filter(filter) => Some(search_commands(tenant, filter)),
        Reading::Words(words) if words.is_empty() => Some(search_commands(tenant, words)),
        Reading::Words(words) => {
            let region = &visit.context.region;
            let cli = ["find", "--region", region, "--tenant", &tenant, "--", &words];
            let request =
                v1::FindUsersRequest { tenant: tenant.clone(), ..found::request(&words, region) };
            Some(Commands::from_request(&cli, &request))
        }
    }
}

fn search_commands(tenant: String, filter: String) -> Commands {
    let cli = ["user", "search", &filter, "--tenant", &tenant];
    let request =
        SearchUsersRequest { tenant: tenant.clone(), filter: filter.clone(), ..Default::default() };
    Commands::from_request(&cli, &request)
}
