//! Every mutation, sent a second time: with and without its request and its etag, at once and after
//! what may have happened in between. The table says what each is answered.

mod scene;

use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use polynym_directory::{Mutation, MutationKind, MutationReport, Outcome};

use super::Failure;
use super::assertions::{ensure, equal};
use super::fixture::{Fixture, request};
use scene::{Scene, Sent, Then};

/// The answer to a repeated request, for each [`Then`]: `=` the present state, and nothing is
/// written; `+` it happens once more; `-` no such case; else the name of the error.
type Answers = [&'static str; 4];

const REMEMBERED: Answers = ["=", "=", "=", "UserNotFound"];
const ABOUT_NOBODY: Answers = ["=", "=", "=", "="];
const AGAIN: Answers = ["=", "+", "UserMerged", "UserNotFound"];
const STALE: Answers = ["EtagMismatch", "EtagMismatch", "UserMerged", "UserNotFound"];
const NONE: Answers = ["-"; 4];

/// The answers with the request, with or without an etag; without a request and an etag; with an
/// etag alone.
const TABLE: [(Sent, [Answers; 3]); 16] = [
    (Sent::Create, [REMEMBERED, ["IdentityTaken", "+", "IdentityTaken", "+"], NONE]),
    (Sent::Update, [REMEMBERED, AGAIN, STALE]),
    (Sent::Link, [REMEMBERED, AGAIN, STALE]),
    (Sent::Unlink, [REMEMBERED, ["NotOwned", "NotOwned", "UserMerged", "UserNotFound"], STALE]),
    (Sent::Replace, [REMEMBERED, ["NotOwned", "+", "UserMerged", "UserNotFound"], STALE]),
    (Sent::Verify, [REMEMBERED, AGAIN, STALE]),
    (Sent::Disable, [REMEMBERED, AGAIN, STALE]),
    (Sent::Enable, [REMEMBERED, AGAIN, STALE]),
    (
        Sent::Delete,
        [
            REMEMBERED,
            ["UserNotFound", "+", "UserMerged", "UserNotFound"],
            ["UserNotFound", "EtagMismatch", "UserMerged", "UserNotFound"],
        ],
    ),
    (
        Sent::Undelete,
        [
            REMEMBERED,
            ["UserNotDeleted", "+", "UserMerged", "UserNotFound"],
            ["UserNotDeleted", "EtagMismatch", "UserMerged", "UserNotFound"],
        ],
    ),
    (
        Sent::Purge,
        [
            ["=", "=", "-", "-"],
            ["UserNotFound", "UserNotFound", "-", "-"],
            ["UserNotFound", "UserNotFound", "-", "-"],
        ],
    ),
    (Sent::Merge, [REMEMBERED, ["UserMerged", "+", "UserMerged", "UserNotFound"], STALE]),
    (
        Sent::Unmerge,
        [REMEMBERED, ["NotMerged", "+", "NotMerged", "UserNotFound"], ["EtagMismatch"; 4]],
    ),
    (Sent::Release, [ABOUT_NOBODY, ["NotHeld", "+", "NotHeld", "NotHeld"], NONE]),
    (Sent::SetTenant, [ABOUT_NOBODY, ["=", "+", "=", "="], ["EtagMismatch"; 4]]),
    (
        Sent::DeleteTenant,
        [ABOUT_NOBODY, ["=", "+", "=", "="], ["EtagMismatch", "+", "EtagMismatch", "EtagMismatch"]],
    ),
];

/// Cases that run concurrently, each in a tenant of its own.
const AT_ONCE: usize = 16;

pub async fn what_is_sent_again_at_once_happens_once(f: Fixture) -> Result<(), Failure> {
    all(&f, 0, Then::Nothing).await
}

pub async fn what_is_sent_again_after_a_later_change_happens_once(
    f: Fixture,
) -> Result<(), Failure> {
    all(&f, 1, Then::Later).await
}

pub async fn what_is_sent_again_after_a_merge_happens_once(f: Fixture) -> Result<(), Failure> {
    all(&f, 2, Then::Merge).await
}

pub async fn what_is_sent_again_after_a_purge_happens_once(f: Fixture) -> Result<(), Failure> {
    all(&f, 3, Then::Purge).await
}

/// One line of the table, in one tenant.
struct Case {
    sent: Sent,
    with_request: bool,
    with_etag: bool,
    then: Then,
    answer: &'static str,
}

async fn all(f: &Fixture, column: usize, then: Then) -> Result<(), Failure> {
    let mut cases = Vec::new();
    for (sent, [request, neither, etag]) in TABLE {
        let forms = [
            (true, true, request),
            (true, false, request),
            (false, false, neither),
            (false, true, etag),
        ];
        for (with_request, with_etag, answers) in forms {
            let case = Case { sent, with_request, with_etag, then, answer: answers[column] };
            if case.answer != "-" {
                cases.push(case.run(f, cases.len()).boxed());
            }
        }
    }

    let outcomes: Vec<Result<(), Failure>> =
        stream::iter(cases).buffer_unordered(AT_ONCE).collect().await;
    outcomes.into_iter().collect()
}

impl Case {
    async fn run(self, f: &Fixture, n: usize) -> Result<(), Failure> {
        let Self { sent, with_request, with_etag, then, .. } = self;
        let what = format!("{sent:?}, request: {with_request}, etag: {with_etag}, then: {then:?}");
        self.twice(f, n).await.map_err(|failure| format!("{what}: {failure}").into())
    }

    async fn twice(self, f: &Fixture, n: usize) -> Result<(), Failure> {
        let mut scene = Scene::new(f, &format!("tenant-{n}"), self.sent).await?;
        let mutation = scene.sent(self.sent).await?;
        let etag = mutation.etag.clone().filter(|_| self.with_etag);
        let key = format!("{},{:?}", mutation.tenant, self.sent);
        let request = request(&key, 1).filter(|_| self.with_request);
        let mutation = Mutation { etag, request, ..mutation };
        let first = f.store.mutations.mutate(mutation.clone()).await?;
        scene.note(&first);
        scene.then(self.sent, self.then).await?;
        let before = scene.all().await?;
        let kind = match mutation.kind {
            MutationKind::User(_, change) => MutationKind::User(scene.user_id(self.sent), change),
            kind => kind,
        };
        let again = f.store.mutations.mutate(Mutation { kind, ..mutation }).await;
        match (self.answer, again) {
            ("=", Ok(again)) => {
                equal(&again, &now(&scene, self.sent).await?, "the second answer")?;
                let is_first = again == first || self.then != Then::Nothing;
                ensure(is_first, format!("not as at first: {first:?}, {again:?}"))?;
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

        equal(&scene.all().await?, &before, "what there is after the second time")
    }
}

/// The answer about things as they are now.
async fn now(scene: &Scene<'_>, sent: Sent) -> Result<Outcome, Failure> {
    let user = match sent {
        Sent::Release | Sent::SetTenant | Sent::DeleteTenant | Sent::Purge => None,
        _ => scene.subject(sent).await?,
    };
    let report = match sent {
        Sent::Purge => MutationReport::Purged(vec![scene.user_id(sent)]),
        Sent::Unmerge => MutationReport::NotRestored(Vec::new()),
        Sent::SetTenant | Sent::DeleteTenant => {
            MutationReport::Tenant(Box::new(scene.tenant().await?))
        }
        _ => MutationReport::Nothing,
    };

    Ok(Outcome { user, report, takeovers: Vec::new() })
}
