//! Commits that are carried out while their answers say something else. What is in the store
//! decides what a caller may be told: the mutation has happened, so it is done or unknown, and
//! never a failure.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};

use super::lost::{Fault, Stage};
use crate::caller::{Call, Caller, Reply};
use crate::place::{OwnSet, print_line};
use crate::servers::{Proxy, ReplicaSet, Side};

const COMMIT: &str = "commitTransaction";
/// Errors without a label: Unauthorized, UnknownError, NetworkInterfaceExceededTimeLimit.
const UNLABELLED: [i32; 3] = [13, 8, 202];

/// NoSuchTransaction with a write concern error beside it: the absence may be rolled back, and a
/// server gives no label.
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

/// A store behind a proxy that can keep the answer to a commit.
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
        let stage = Stage::new(set, uri, Duration::from_secs(2)).await;
        Self { stage, proxy }
    }

    /// Sends a mutation, whose commit is carried out. Its answer is lost once `meanwhile` is over,
    /// and every further commit ends as `point` has it.
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
            reply = &mut answer => panic!("{call:?} had an answer before its commit: {reply:?}"),
            () = trap.caught() => {}
        }
        meanwhile.await;
        self.stage.fail(point).await;
        drop(trap);
        let reply = answer.await;
        self.stage.heal().await;
        reply
    }
}

/// The first commit is carried out and its answer lost. What the further ones are told hides
/// neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_does_not_hide_that_the_first_is_unknown() {
    let mut hidden = Hidden::new().await;
    let mut points: Vec<_> =
        UNLABELLED.map(|code| Fault::Code(code).point(COMMIT, "alwaysOn")).into();
    points.push(absent("alwaysOn"));
    let mut runs = 0;
    for point in points {
        for (kind, with_request) in (0..4).flat_map(|kind| [(kind, false), (kind, true)]) {
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

/// Others change the user between the commit and the moment at which it is found.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_to_have_happened_is_answered_with_the_user_as_it_is_now() {
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
