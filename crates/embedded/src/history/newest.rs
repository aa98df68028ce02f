//! The events of a tenant's users, the newest first.

use std::ops::Range;

use locality_uuid::LocalityId;

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, item_result};
use crate::schema::event::StoredEvent;
use polynym_directory::{EventPosition, EventsPart, PageLimit, Tenant, Timestamp};
use polynym_store_common::unreadable::report_damaged_history;

impl Snapshot {
    /// See [`Histories::newest_events`](polynym_directory::stores::Histories::newest_events). The
    /// number of a position is that among the events of all tenants.
    pub fn newest_events(
        &self,
        tenant: &Tenant,
        times: &Range<Timestamp>,
        before: Option<EventPosition>,
        mut limit: PageLimit,
    ) -> Result<EventsPart, Fault> {
        let (begin, end) = (times.start.as_millis(), times.end.as_millis());
        let (end, number) = before.map_or((end, 0), |place| (place.time.as_millis(), place.number));
        let (name, mut part) = (tenant.as_str(), EventsPart::default());
        if begin > end {
            return Ok(part);
        }
        let places = self.journal.order.range((name, begin, 0)..(name, end, number))?;
        for place in places.rev() {
            let (_, time, number) = place?.0.value();
            let Some(row) = self.journal.events.get(number)? else { continue };
            if !limit.take(row.value().len()) {
                return Ok(part);
            }
            let (time, user) = (Timestamp::from_millis(time), LocalityId::from([0; 16]));
            let position = EventPosition { time, user, number };
            part.next = Some(position);
            // One without a user is found by `store verify`.
            let Ok(stored) = item_result(StoredEvent::read(row.value()))? else { continue };
            match stored.decode() {
                Ok(event) if event.tenant == *tenant => part.events.push((position, event)),
                Ok(_) => {}
                Err(fault) => {
                    report_damaged_history(&fault);
                    part.unreadable.push(stored.user);
                }
            }
        }
        part.next = None;
        Ok(part)
    }
}
