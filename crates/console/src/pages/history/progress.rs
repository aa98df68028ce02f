//! The preview of an undoing, which grows while users are read. It ends when the browser leaves.

use std::time::{Duration, Instant};

use polynym_client::{Answers, Client};
use polynym_presentation::blocker::{Blockers, Line};
use polynym_proto::v1::undo_operation_response::Kept;
use polynym_proto::v1::{ListEventsRequest, UndoOperationRequest, UndoOperationResponse};
use uuid::Uuid;

use super::period::PAGE_SIZE;
use crate::change::problem::sentence;
use crate::prelude::*;
use crate::render::{Parts, html, render_in_parts};
use crate::requests::RequestPermit;
use crate::views::audit::{Day, Lines};
use crate::views::person::{People, Person};

/// The users that are shown.
const MAX_SHOWN: usize = 100;
/// The time between two lines of progress.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Template)]
#[template(path = "pages/history/undo.html")]
struct UndoPage {
    frame: Frame,
    operation: String,
    /// The name of the file that it imported; empty if it is not known.
    name: String,
    /// The latest changes of the operation.
    day: Option<Day>,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "pages/history/progress.html")]
struct Progress {
    users: i64,
    reverted: i64,
}

/// The end of the page.
#[derive(Template)]
#[template(path = "pages/history/undone.html")]
struct Undone {
    home: String,
    operation: String,
    /// The id of the request that undoes it.
    request_id: Uuid,
    users: i64,
    reverted: i64,
    kept: Vec<KeptUser>,
    kept_count: usize,
    /// The operations that have to be undone first, once all is read.
    blockers: Vec<Line>,
    /// The reason why it ended early; empty if it did not.
    error: String,
}

/// A user that stays as it is.
struct KeptUser {
    person: Person,
    reason: String,
    message: String,
}

/// An undoing in progress.
struct Run {
    client: Client,
    kept: Vec<Kept>,
    answers: Answers<UndoOperationResponse>,
    undone: Option<Undone>,
    blockers: Blockers,
    shown: Instant,
    _permit: RequestPermit,
}

/// Begins to look what undoing an operation would do, and answers with a page that grows.
pub async fn page(visit: Visit, permit: RequestPermit, tenant: String, operation: String) -> Page {
    visit.require(Role::Admin)?;
    let request = UndoOperationRequest {
        tenant: tenant.clone(),
        operation_id: operation.clone(),
        validate_only: true,
        ..Default::default()
    };
    let cli = ["undo", &operation, "--tenant", &tenant, "--dry-run"];
    let commands = Commands::from_request(&cli, &request);
    let frame = visit.frame(&tenant);
    let client = visit.client(&tenant);
    let day = latest(&client, &operation).await;
    let answers = client.admin().undo_operation(request).await?;
    let undone = Undone {
        home: frame.home(),
        operation: operation.clone(),
        request_id: Uuid::new_v4(),
        users: 0,
        reverted: 0,
        kept: Vec::new(),
        kept_count: 0,
        blockers: Vec::new(),
        error: String::new(),
    };
    let run = Run {
        client,
        kept: Vec::new(),
        answers,
        undone: Some(undone),
        blockers: Blockers::default(),
        shown: Instant::now(),
        _permit: permit,
    };
    let name = visit.import_name(&tenant, &operation);
    Ok(render_in_parts(&UndoPage { frame, operation, name, day, commands }, run))
}

/// The latest changes of an operation, those of one kind in a line.
async fn latest(client: &Client, operation: &str) -> Option<Day> {
    let request = ListEventsRequest {
        operation_id: operation.to_owned(),
        page_size: PAGE_SIZE,
        ..Default::default()
    };
    let answer = client.directory().list_events(request).await.ok()?;
    let mut lines = Lines::default();
    lines.add(&answer, true);
    lines.days(answer.next_page_token.is_empty()).into_iter().next()
}

impl Parts for Run {
    async fn next(&mut self) -> Option<String> {
        loop {
            let undone = self.undone.as_mut()?;
            match self.answers.message().await {
                Ok(Some(answer)) => {
                    answer.kept.iter().for_each(|kept| self.blockers.add(kept));
                    undone.add(&answer);
                    let room = MAX_SHOWN.saturating_sub(self.kept.len());
                    self.kept.extend(answer.kept.into_iter().take(room));
                    if self.shown.elapsed() >= INTERVAL {
                        self.shown = Instant::now();
                        let Undone { users, reverted, .. } = *undone;
                        return html(&Progress { users, reverted }).ok();
                    }
                }
                Ok(None) => return self.end().await,
                Err(error) => {
                    undone.error = sentence(&error);
                    return self.end().await;
                }
            }
        }
    }
}

impl Run {
    /// The end of the page, with the names of the users that stay.
    async fn end(&mut self) -> Option<String> {
        let undone = self.undone.take()?;
        let kept = std::mem::take(&mut self.kept);
        let people = People::read(&self.client, kept.iter().map(|kept| &*kept.user_id)).await;
        let user = |Kept { user_id, reason, message, .. }: Kept| KeptUser {
            person: people.person(&user_id),
            reason,
            message,
        };
        let kept = kept.into_iter().map(user).collect();
        let blockers = std::mem::take(&mut self.blockers).lines();
        html(&Undone { kept, blockers, ..undone }).ok()
    }
}

impl Undone {
    fn add(&mut self, answer: &UndoOperationResponse) {
        (self.users, self.reverted) = (answer.users, answer.reverted);
        self.kept_count += answer.kept.len();
    }
}
