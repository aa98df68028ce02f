//! Commits that succeed while their answers report an error. The reply must be success or unknown,
//! never a failure.

use mongodb::bson::{Bson, Document, doc};

use super::lost_messages::{Fault, Stage, requests};
use crate::caller::{Call, Caller, Reply};
use crate::servers::{Proxy, ReplicaSet, Side};
use crate::stores::{OwnSet, TIMEOUT, print_line};

const COMMIT: &str = "commitTransaction";
/// Errors without a label: Unauthorized, UnknownError, NetworkInterfaceExceededTimeLimit.
const UNLABELLED: [i32; 3] = [13, 8, 202];

/// NoSuchTransaction with a write concern error: the absence may be rolled back, and a server adds
/// no label.
fn absent(mode: impl Into<Bson>) -> Document {
    let concern = doc! { "code": 91, "codeName": "ShutdownInProgress", "errmsg": "injected" };
    let labels = Bson::Array(Vec::new());
    let data = doc! {
        "failCommands": [COMMIT],
        "appName": "faults",
        "errorCode": 251,
        "errorLabels": labels,
        "writeConcernError": concern,
    };
    doc! { "configureFailPoint": "failCommand", "mode": mode.into(), "data": data }
}

/// A store behind a proxy that can hold the answer to a commit.
struct Hidden {
    stage: Stage,
    proxy: Proxy,
}

impl Hidden {
    async fn new() -> Self {
        let set = OwnSet::new().await;
        let proxy = Proxy::start(set.members[0].address()).await;
        let uri = |_: &ReplicaSet, name: &str| {
            format!("mongodb://{}/{name}?directConnection=true&appName=faults", proxy.address())
        };
        let stage = Stage::new(set, uri, TIMEOUT).await;
        Self { stage, proxy }
    }

    /// Sends a mutation, whose commit succeeds. Its answer is lost when `meanwhile` ends, and every
    /// repeated commit fails as in `point`.
    async fn call(
        &self,
        call: &Call,
        request: Option<&str>,
        point: Document,
        meanwhile: impl Future,
    ) -> Reply {
        let mut trap = self.proxy.trap(Side::Reply, COMMIT, 1);
        let answer = self.stage.troubled.call(call, request);
        tokio::pin!(answer);
        tokio::select! {
            reply = &mut answer => panic!("{call:?} was answered before its commit: {reply:?}"),
            () = trap.caught() => {}
        }
        meanwhile.await;
        self.stage.fail(point).await;
        drop(trap);
        let reply = answer.await;
        self.stage.clear_faults().await;
        reply
    }
}

/// The answer to a successful commit is lost. The answers to its repetitions do not hide that.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_does_not_hide_an_unknown_outcome() {
    let mut hidden = Hidden::new().await;
    let mut points: Vec<_> =
        UNLABELLED.map(|code| Fault::Code(code).point(COMMIT, "alwaysOn")).into();
    points.push(absent("alwaysOn"));
    let mut runs = 0;
    for (turn, point) in points.into_iter().enumerate() {
        let of_kind = |kind| requests(false, turn + kind).iter().map(move |id| (kind, *id));
        for (kind, with_request) in (0..4).flat_map(of_kind) {
            let call = hidden.stage.mutation(kind).await;
            let request = with_request.then(|| format!("hidden {runs}"));
            let start = hidden.stage.ledger.start();
            let reply = hidden.call(&call, request.as_deref(), point.clone(), async {}).await;
            assert!(
                matches!(reply, Reply::Done(Some(_))),
                "{point}: {call:?} has happened, its caller heard {reply:?}"
            );
            hidden.stage.ledger.add(&call, reply, &start);
            hidden.stage.look(&call).await;
            runs += 1;
        }
    }
    print_line(&format!(
        "commits with lost answers, and errors after: {runs} runs; {}",
        hidden.stage.end().await
    ));
}

/// Others change the user between the commit and its recovery.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_commit_returns_the_present_user() {
    let hidden = Hidden::new().await;
    let truth = &hidden.stage.truth;
    assert!(matches!(truth.call(&Call::Create(0, vec![0]), None).await, Reply::Done(_)));
    let point = Fault::Code(UNLABELLED[0]).point(COMMIT, "alwaysOn");
    let later = async {
        let reply = truth.call(&Call::Replace(0, 0, 2), None).await;
        assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
    };
    let reply = hidden.call(&Call::Link(0, 1), Some("found"), point, later).await;
    assert_eq!(reply, Reply::Done(Some([1, 2].into_iter().collect())));
    let again = truth.call(&Call::Link(0, 1), Some("found")).await;
    assert_eq!(again, reply, "sent again");
}
