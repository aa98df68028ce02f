//! Usage: counters of calls and look-ups over time, as bars with their table.

mod counts;
mod plot;
mod query;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use polynym_proto::v1::GetUsageRequest;

use crate::console::Shared;
use crate::prelude::*;
use counts::Counts;
use query::{Choice, Parameters};

/// The pages of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new().route("/usage", get(page))
}

#[derive(Template)]
#[template(path = "pages/usage/usage.html")]
struct UsagePage {
    frame: Frame,
    choice: Choice,
    counts: Counts,
    /// The plot as SVG: of our own making, with escaped texts.
    plot: String,
    /// The reason why there is no plot; may be empty.
    error: String,
    commands: Commands,
}

/// The usage of a period.
async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(parameters): Query<Parameters>,
) -> Page {
    visit.require(Role::Admin)?;
    let choice = Choice::new(parameters);
    let (from, to) = choice.bounds();
    let request = GetUsageRequest {
        tenant: tenant.clone(),
        metrics: vec![choice.by.metrics().to_owned()],
        from: Some(from),
        to: Some(to),
        resolution: choice.resolution().into(),
        ..Default::default()
    };
    let answer = visit.client(&tenant).admin().get_usage(request.clone()).await;
    let (counts, error) = match answer {
        Ok(answer) => (Counts::of(&answer, choice.by), String::new()),
        Err(error) if error.reason() == "LIMIT_EXCEEDED" => {
            let advice = "choose longer intervals or a shorter period";
            (Counts::default(), format!("There are too many counters for one plot: {advice}."))
        }
        Err(error) => return Err(error.into()),
    };
    let plot = plot::svg(&counts);
    let status = if error.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let commands = commands(&choice, &tenant, &request);
    let frame = visit.frame(&tenant);
    Ok(render_with_status(&UsagePage { frame, choice, counts, plot, error, commands }, status))
}

/// The calls that return the same counters.
fn commands(choice: &Choice, tenant: &str, request: &GetUsageRequest) -> Commands {
    let since = format!("{}s", choice.period.seconds);
    let mut cli =
        vec!["usage", "--tenant", tenant, "--since", &since, "--metric", choice.by.metrics()];
    if !choice.interval.is_empty() {
        cli.extend(["--resolution", choice.interval]);
    }
    if choice.by == query::By::Caller {
        cli.push("--by-caller");
    }
    Commands::from_request(&cli, request)
}
