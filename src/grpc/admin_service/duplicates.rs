//! FindDuplicates: a stream of progress and pairs. The search continues as the caller reads them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tonic::Status;

use crate::grpc::status::status;
use polynym_directory::{
    Directory, DuplicateEvent, DuplicateEvidence as Evidence, DuplicateOptions, DuplicateProgress,
    DuplicateReason as Reason, Tenant, duplicates::pairs::DescribedPair,
};
use polynym_identifier::Kind;
use polynym_proto::v1;
use v1::FindDuplicatesResponse as Message;
use v1::find_duplicates_response::{Evidence as EvidenceMessage, Pair, Progress};

pub type Responses = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Searches a tenant for duplicates.
pub async fn find(
    directory: &Arc<Directory>,
    tenant: Tenant,
    request: &v1::FindDuplicatesRequest,
) -> Result<Responses, Status> {
    let options = DuplicateOptions { min_score: request.min_score, max_pairs: request.max_pairs };
    let search = directory.find_duplicates(tenant, options).await.map_err(status)?;
    let messages = stream::try_unfold(search, |mut search| async move {
        // Without a yield, messages that are ready at once are sent together.
        tokio::task::yield_now().await;
        let event = search.next().await.map_err(status)?;
        Ok(event.map(|event| (message(&event), search)))
    });
    Ok(Box::pin(messages))
}

fn message(event: &DuplicateEvent) -> Message {
    match event {
        DuplicateEvent::Progress(progress) => {
            Message { progress: Some(progress_message(*progress)), pair: None }
        }
        DuplicateEvent::Pair(pair) => Message { progress: None, pair: Some(pair_message(pair)) },
    }
}

const fn progress_message(progress: DuplicateProgress) -> Progress {
    let DuplicateProgress { users, unreadable, compared, capped } = progress;
    Progress {
        users: users as i64,
        compared: compared as i64,
        capped: capped as i64,
        unreadable: unreadable as i64,
    }
}

fn pair_message(described: &DescribedPair) -> Pair {
    let DescribedPair { pair, display_names, values } = described;
    let [user_id_a, user_id_b] = pair.users.map(|id| id.to_string());
    let [display_name_a, display_name_b] = display_names.clone();
    let evidence = pair.found.evidence.iter().zip(values);
    let evidence = evidence.map(|(evidence, values)| evidence_message(evidence, values)).collect();
    let score = pair.found.score.into();
    Pair { user_id_a, user_id_b, score, evidence, display_name_a, display_name_b }
}

fn evidence_message(evidence: &Evidence, [value_a, value_b]: &[String; 2]) -> EvidenceMessage {
    EvidenceMessage {
        value_a: value_a.clone(),
        value_b: value_b.clone(),
        reason: reason(evidence.reason).into(),
        kind: evidence.kind.map_or("", Kind::as_str).to_owned(),
        score: evidence.score.into(),
    }
}

const fn reason(reason: Reason) -> v1::DuplicateReason {
    match reason {
        Reason::SameMailbox => v1::DuplicateReason::SameMailbox,
        Reason::SimilarEmail => v1::DuplicateReason::SimilarEmail,
        Reason::IdentityInAttribute => v1::DuplicateReason::IdentityInAttribute,
        Reason::SameAttribute => v1::DuplicateReason::SameAttribute,
        Reason::HeldIdentity => v1::DuplicateReason::HeldIdentity,
        Reason::LookalikeHandle => v1::DuplicateReason::LookalikeHandle,
        Reason::NearHandle => v1::DuplicateReason::NearHandle,
        Reason::SameName => v1::DuplicateReason::SameName,
        Reason::SameNameAndAttribute => v1::DuplicateReason::SameNameAndAttribute,
    }
}
