//! Those who are signed in to this server, and the end of their sessions.

use std::sync::Arc;

use polynym_access::Caller;
use prost_types::Timestamp;
use uuid::Uuid;

use super::access::require_admin;
use super::list::Parameters;
use crate::console::Shared;
use crate::prelude::*;
use crate::session::{Message, Session};

/// The sessions of a page.
const PAGE_SIZE: usize = 25;

#[derive(Template)]
#[template(path = "pages/server/sessions.html")]
struct SessionsPage {
    frame: Frame,
    sessions: Vec<SessionView>,
    pager: Pager,
}

/// A session, without what opens it.
struct SessionView {
    public_id: Uuid,
    name: String,
    role: String,
    began: Option<Time>,
    last_used: Option<Time>,
    /// Empty if it is not known.
    address: String,
    /// Whether it is that of the reader.
    is_own: bool,
}

/// The sessions, from the newest.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Query(Parameters { after, t }): Query<Parameters>,
) -> Page {
    require_admin(&visit)?;
    let before = after.token().parse().unwrap_or(u64::MAX);
    let open = shared.sessions.list(&shared.access);
    let mut rest = open.iter().filter(|(session, _)| session.origin.number < before);
    let shown: Vec<_> = rest.by_ref().take(PAGE_SIZE).collect();
    let last = shown.last().filter(|_| rest.next().is_some());
    let next = last.map_or_else(String::new, |(session, _)| session.origin.number.to_string());
    let frame = visit.server_frame(&t);
    let view = |(session, caller): &&(Arc<_>, Arc<_>)| view(&visit, session, caller);
    Ok(render(&SessionsPage {
        pager: after.pager(&frame.server_page("callers/sessions", &[]), shown.len(), &next),
        frame,
        sessions: shown.iter().map(view).collect(),
    }))
}

fn view(visit: &Visit, session: &Session, caller: &Caller) -> SessionView {
    let time = |time| Time::of(Some(&Timestamp::from(time)));
    let address = session.origin.address.map(|address| address.ip().to_canonical().to_string());
    SessionView {
        public_id: session.origin.public_id,
        name: caller.name.clone(),
        role: caller.role.to_string(),
        began: time(session.origin.time),
        last_used: time(session.last_used()),
        address: address.unwrap_or_default(),
        is_own: session.id() == visit.session.id(),
    }
}

/// Ends a session. One that has ended before is no error.
pub async fn end(State(shared): State<Arc<Shared>>, visit: Visit, form: Form) -> Page {
    require_admin(&visit)?;
    let id = Uuid::parse_str(form.get("session"));
    let id = id.map_err(|_| Failure::Form("The form names no session.".to_owned()))?;
    if let Some(ended) = shared.sessions.close_public(id) {
        tracing::info!(caller = visit.caller.name, name = ended.caller_name(), "ended a session");
    }
    let frame = visit.server_frame(form.get("t"));
    let list = frame.server_page("callers/sessions", &[]);
    Ok(visit.done(&list, Message::done("ended", "The session has ended.")))
}
