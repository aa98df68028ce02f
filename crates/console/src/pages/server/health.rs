//! The health of the server: its calls, store and events, from its own metrics.

use std::sync::Arc;
use std::time::Instant;

use polynym_client::Error;
use polynym_presentation::duration::largest_unit;
use polynym_proto::v1::ListTenantsRequest;
use serde::Deserialize;

use super::figures::{MethodView, Section, methods, sections};
use super::trends::{Trend, trends};
use crate::console::Shared;
use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/server/health.html")]
struct HealthPage {
    frame: Frame,
    health: Health,
    is_live: bool,
}

#[derive(Template)]
#[template(path = "partials/health.html")]
struct HealthPart {
    health: Health,
}

/// The figures of the page.
struct Health {
    /// The milliseconds of an answer of the store, or why there is none.
    store: Result<u128, String>,
    /// The time that rates cover.
    interval: String,
    version: String,
    sections: Vec<Section>,
    methods: Vec<MethodView>,
    trends: Vec<Trend>,
}

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// `off`: the page does not refresh itself.
    live: String,
    /// The tenant of the page before.
    t: String,
}

/// The health; for a script, the part of the page that changes.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Query(Parameters { live, t }): Query<Parameters>,
) -> Page {
    visit.require(Role::Viewer)?;
    if visit.caller.role < Role::Admin {
        visit.require_all_tenants()?;
    }
    let store = store(&visit).await;
    let measured = shared.samples.measure();
    let health = Health {
        store,
        interval: largest_unit(measured.interval),
        version: measured.figures.version.clone(),
        sections: sections(&measured),
        methods: methods(&measured.figures),
        trends: trends(&measured),
    };
    if visit.context.is_partial {
        return Ok(render(&HealthPart { health }));
    }
    Ok(render(&HealthPage { frame: visit.server_frame(&t), health, is_live: live != "off" }))
}

/// Asks the store for a tenant.
async fn store(visit: &Visit) -> Result<u128, String> {
    let began = Instant::now();
    let request = ListTenantsRequest { page_size: 1, ..Default::default() };
    let answer = visit.client("").admin().list_tenants(request).await;
    answer.map_err(|error: Error| error.message().to_owned())?;
    Ok(began.elapsed().as_millis())
}
