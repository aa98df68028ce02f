//! The calls that list the newest changes of a tenant, and the checks of their answers.

use tonic::Status;

use super::caller::Caller;
use super::work::{Verdict, Work};
use polynym_proto::v1::{ListEventsRequest, ListEventsResponse};

const LIST: &str = "/polynym.v1.DirectoryService/ListEvents";
/// The changes of a page, as in the console.
const PAGE_SIZE: i32 = 25;

/// Lists the newest changes of all users.
pub struct Audit(pub Caller);

impl Work for Audit {
    async fn call(&mut self) -> Result<Verdict, Status> {
        let tenant = self.0.tenant();
        let request = ListEventsRequest { tenant, page_size: PAGE_SIZE, ..Default::default() };
        let page: ListEventsResponse = self.0.unary(LIST, request).await?;
        let times = || page.events.iter().filter_map(|event| event.time);
        let newest_first = times()
            .zip(times().skip(1))
            .all(|(newer, older)| (newer.seconds, newer.nanos) >= (older.seconds, older.nanos));
        Ok(Verdict::correct_if(newest_first && !page.events.is_empty()))
    }
}
