//! Deliveries of notices to the inboxes of one store.

use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{Delivery, InboxLimits, Notice, NoticeContent, Timestamp};

const LIMITS: InboxLimits = InboxLimits { retention: Duration::from_secs(1_000_000), count: 130 };

/// 2030-01-01T00:00:00Z. MongoDB removes expired notices by its own clock.
pub const START: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// A delivery of a notice with this send time to one user.
pub fn delivery(id: LocalityId, send_time: Timestamp, user: LocalityId) -> Delivery {
    let content = NoticeContent { subject: "x".to_owned(), ..Default::default() };
    let notice = Notice { id, send_time, expire_time: None, content };
    Delivery { notice, users: vec![user], limits: LIMITS, clock_uncertain: false }
}
