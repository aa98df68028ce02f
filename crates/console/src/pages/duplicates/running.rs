//! A search that runs while its page arrives: its progress line by line, then its pairs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use polynym_client::{Answers, Client, Error, Kind};
use polynym_proto::v1::FindDuplicatesResponse;
use tokio::sync::oneshot;

use super::list::{List, ResultsPage, request};
use crate::change::problem::sentence;
use crate::console::Shared;
use crate::prelude::*;
use crate::render::{Parts, html, render_in_parts};
use crate::requests::RequestPermit;
use crate::session::{Begun, Session};
use crate::short_id::ShortId;
use crate::views::duplicates::Found;

/// How often a search is begun while the session's former one ends, and the time between.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A search that runs.
pub struct Search {
    answers: Answers<FindDuplicatesResponse>,
    /// Resolves when another search of the session begins.
    ended: oneshot::Receiver<()>,
}

/// Begins a search, and ends another one of the session.
pub async fn begin(visit: &Visit, tenant: &str, min_score: i32) -> Result<Search, Error> {
    let Begun { ended, has_ended_another } = visit.session.search.begin();
    let admin = visit.client(tenant).admin();
    let mut attempts = if has_ended_another { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match admin.find_duplicates(request(tenant, min_score)).await {
            Ok(answers) => return Ok(Search { answers, ended }),
            Err(error) if attempts == 0 || error.kind() != Kind::ResourceExhausted => {
                return Err(error);
            }
            // The server ends a search within a moment of its caller's leaving.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

impl Search {
    /// The page, part by part. The search ends with it, also if the browser leaves.
    pub fn respond(
        self,
        shared: Arc<Shared>,
        visit: &Visit,
        id: ShortId,
        page: &ResultsPage,
    ) -> Page {
        let running = Running {
            _permit: shared.requests.of_session(&visit.session, &visit.caller)?,
            search: self,
            shared,
            session: visit.session.clone(),
            id,
            min_score: page.min_score,
            client: visit.client(&page.frame.tenant),
            frame: visit.frame(&page.frame.tenant),
            found: Some(Found::default()),
        };
        Ok(render_in_parts(page, running))
    }
}

struct Running {
    search: Search,
    shared: Arc<Shared>,
    session: Arc<Session>,
    id: ShortId,
    min_score: i32,
    client: Client,
    frame: Frame,
    /// None at the end.
    found: Option<Found>,
    _permit: RequestPermit,
}

impl Parts for Running {
    /// A line of progress, or the end.
    async fn next(&mut self) -> Option<String> {
        let mut found = self.found.take()?;
        loop {
            let answer = tokio::select! {
                answer = self.search.answers.message() => answer,
                _ = &mut self.search.ended => {
                    return Some(alert("Another search of your session has ended this one."));
                }
            };
            match answer {
                Ok(Some(answer)) => {
                    answer.pair.iter().for_each(|pair| found.add(pair));
                    let Some(progress) = answer.progress else { continue };
                    found.progress = progress;
                    self.found = Some(found);
                    let part = Compared { users: progress.users, pairs: progress.compared };
                    return Some(html(&part).unwrap_or_default() + "\n");
                }
                Ok(None) => return Some(self.end(found).await),
                Err(error) => return Some(alert(&sentence(&error))),
            }
        }
    }
}

impl Running {
    /// Keeps what was found, and shows its first page.
    async fn end(&self, mut found: Found) -> String {
        found.time = SystemTime::now();
        let (search, kept) = ((self.id, self.min_score), Arc::new(found.clone()));
        let list = List::read(&self.client, &self.frame, search, kept, &Trail::default()).await;
        self.shared.sessions.finds.keep(&self.session, self.id, found);
        let list = html(&list).unwrap_or_else(|error| alert(&error.to_string()));
        let done = html(&Done).unwrap_or_default();
        format!("{done}\n</div>\n{list}\n<div>")
    }
}

#[derive(Template)]
#[template(source = "<p>{{ users }} users read, {{ pairs }} pairs compared …</p>", ext = "html")]
struct Compared {
    users: i64,
    pairs: i64,
}

#[derive(Template)]
#[template(source = "<p>The search is done.</p>", ext = "html")]
struct Done;

#[derive(Template)]
#[template(path = "partials/ended.html")]
struct Alert<'m> {
    message: &'m str,
}

fn alert(message: &str) -> String {
    html(&Alert { message }).unwrap_or_default()
}
