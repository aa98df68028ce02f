//! Repeats every mutation: with and without a request and an etag, immediately and after another
//! mutation. The table lists the expected answers.

mod scene;

use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use polynym_directory::{Mutation, MutationKind, MutationReport, Outcome};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, request};
use scene::{Between, Method, Scene};

/// The expected answer to a repeat, for each [`Between`]: `=` the current state, without a write;
/// `+` success as a new mutation; `-` no such case; otherwise the name of the error.
type Answers = [&'static str; 4];

const REMEMBERED: Answers = ["=", "=", "=", "UserNotFound"];
const WITHOUT_USER: Answers = ["=", "=", "=", "="];
const REAPPLIED: Answers = ["=", "+", "UserMerged", "UserNotFound"];
const STALE: Answers = ["EtagMismatch", "EtagMismatch", "UserMerged", "UserNotFound"];
const NO_CASE: Answers = ["-"; 4];

/// The answers to a repeat with a request, without request and etag, and with an etag alone.
const TABLE: [(Method, [Answers; 3]); 16] = [
    (Method::Create, [REMEMBERED, ["IdentityTaken", "+", "IdentityTaken", "+"], NO_CASE]),
    (Method::Update, [REMEMBERED, REAPPLIED, STALE]),
    (Method::Link, [REMEMBERED, REAPPLIED, STALE]),
    (Method::Unlink, [REMEMBERED, ["NotOwned", "NotOwned", "UserMerged", "UserNotFound"], STALE]),
    (Method::Replace, [REMEMBERED, ["NotOwned", "+", "UserMerged", "UserNotFound"], STALE]),
    (Method::Verify, [REMEMBERED, REAPPLIED, STALE]),
    (Method::Disable, [REMEMBERED, REAPPLIED, STALE]),
    (Method::Enable, [REMEMBERED, REAPPLIED, STALE]),
    (
        Method::Delete,
        [
            REMEMBERED,
            ["UserNotFound", "+", "UserMerged", "UserNotFound"],
            ["UserNotFound", "EtagMismatch", "UserMerged", "UserNotFound"],
        ],
    ),
    (
        Method::Undelete,
        [
            REMEMBERED,
            ["UserNotDeleted", "+", "UserMerged", "UserNotFound"],
            ["UserNotDeleted", "EtagMismatch", "UserMerged", "UserNotFound"],
        ],
    ),
    (
        Method::Purge,
        [
            ["=", "=", "-", "-"],
            ["UserNotFound", "UserNotFound", "-", "-"],
            ["UserNotFound", "UserNotFound", "-", "-"],
        ],
    ),
    (Method::Merge, [REMEMBERED, ["UserMerged", "+", "UserMerged", "UserNotFound"], STALE]),
    (
        Method::Unmerge,
        [REMEMBERED, ["NotMerged", "+", "NotMerged", "UserNotFound"], ["EtagMismatch"; 4]],
    ),
    (Method::Release, [WITHOUT_USER, ["NotHeld", "+", "NotHeld", "NotHeld"], NO_CASE]),
    (Method::SetTenant, [WITHOUT_USER, ["=", "+", "=", "="], ["EtagMismatch"; 4]]),
    (
        Method::DeleteTenant,
        [WITHOUT_USER, ["=", "+", "=", "="], ["EtagMismatch", "+", "EtagMismatch", "EtagMismatch"]],
    ),
];

/// The number of concurrent cases, each in a tenant of its own.
const CONCURRENT_CASES: usize = 16;

pub async fn an_immediate_repeat_happens_once(f: Fixture) -> Result<(), Failure> {
    run_column(&f, 0, Between::Nothing).await
}

pub async fn a_repeat_after_an_undo_happens_once(f: Fixture) -> Result<(), Failure> {
    run_column(&f, 1, Between::Undo).await
}

pub async fn a_repeat_after_a_merge_happens_once(f: Fixture) -> Result<(), Failure> {
    run_column(&f, 2, Between::Merge).await
}

pub async fn a_repeat_after_a_purge_happens_once(f: Fixture) -> Result<(), Failure> {
    run_column(&f, 3, Between::Purge).await
}

/// One cell of the table, run in a tenant of its own.
struct Case {
    method: Method,
    with_request: bool,
    with_etag: bool,
    between: Between,
    answer: &'static str,
}

async fn run_column(f: &Fixture, column: usize, between: Between) -> Result<(), Failure> {
    let mut cases = Vec::new();
    for (method, [request, neither, etag]) in TABLE {
        let forms = [
            (true, true, request),
            (true, false, request),
            (false, false, neither),
            (false, true, etag),
        ];
        for (with_request, with_etag, answers) in forms {
            let case = Case { method, with_request, with_etag, between, answer: answers[column] };
            if case.answer != "-" {
                cases.push(case.run(f, cases.len()).boxed());
            }
        }
    }

    let outcomes: Vec<Result<(), Failure>> =
        stream::iter(cases).buffer_unordered(CONCURRENT_CASES).collect().await;
    outcomes.into_iter().collect()
}

impl Case {
    async fn run(self, f: &Fixture, n: usize) -> Result<(), Failure> {
        let Self { method, with_request, with_etag, between, .. } = self;
        let label =
            format!("{method:?}, request: {with_request}, etag: {with_etag}, between: {between:?}");
        self.repeat(f, n).await.map_err(|failure| format!("{label}: {failure}").into())
    }

    async fn repeat(self, f: &Fixture, n: usize) -> Result<(), Failure> {
        let mut scene = Scene::new(f, &format!("tenant-{n}"), self.method).await?;
        let mutation = scene.mutation(self.method).await?;
        let etag = mutation.etag.clone().filter(|_| self.with_etag);
        let key = format!("{},{:?}", mutation.tenant, self.method);
        let request = request(&key, 1).filter(|_| self.with_request);
        let mutation = Mutation { etag, request, ..mutation };
        let first = f.apply(mutation.clone()).await?;
        scene.record(&first);
        scene.mutate_between(self.method, self.between).await?;
        let before = scene.content().await?;
        let kind = match mutation.kind {
            MutationKind::User(_, change) => MutationKind::User(scene.user_id(self.method), change),
            kind => kind,
        };
        let again = f.apply(Mutation { kind, ..mutation }).await;
        match (self.answer, again) {
            ("=", Ok(again)) => {
                equal(&again, &current_outcome(&scene, self.method).await?, "the second answer")?;
                let is_first = again == first || self.between != Between::Nothing;
                ensure(is_first, format!("the answers differ: {first:?}, {again:?}"))?;
            }
            ("+", Ok(_)) => return Ok(()),
            (answer, Ok(again)) => {
                return Err(format!("accepted instead of refused with {answer}: {again:?}").into());
            }
            (answer, Err(error)) => {
                let text = format!("{error:?}");
                ensure(
                    text.starts_with(answer),
                    format!("the refusal is {text}, wanted {answer}"),
                )?;
            }
        }

        equal(&scene.content().await?, &before, "the tenant after the repeat")
    }
}

/// The outcome that shows the current state.
async fn current_outcome(scene: &Scene<'_>, method: Method) -> Result<Outcome, Failure> {
    let user = match method {
        Method::Release | Method::SetTenant | Method::DeleteTenant | Method::Purge => None,
        _ => scene.subject(method).await?,
    };
    let report = match method {
        Method::Purge => MutationReport::Purged(vec![scene.user_id(method)]),
        Method::Unmerge => MutationReport::NotRestored(Vec::new()),
        Method::SetTenant | Method::DeleteTenant => {
            MutationReport::Tenant(Box::new(scene.tenant().await?))
        }
        _ => MutationReport::Nothing,
    };

    Ok(Outcome { user, report, takeovers: Vec::new(), foreseen: Vec::new() })
}
