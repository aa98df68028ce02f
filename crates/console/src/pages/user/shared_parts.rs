//! What the pages of a user share: parts of lists and searches.

use std::time::SystemTime;

use locality_uuid::LocalityId;
use polynym_client::Client;
use polynym_presentation::duration;
use serde::Deserialize;

use crate::prelude::*;

/// The rows of a table.
pub const ROWS: usize = 25;

/// A part of a list.
pub struct Part<T> {
    pub rows: Vec<T>,
    pub total: usize,
    /// The number of the first row, from 0.
    from: usize,
}

impl<T> Part<T> {
    /// The rows from a number on.
    pub fn new(all: Vec<T>, from: usize) -> Self {
        let total = all.len();
        let from = if from < total { from } else { 0 };
        Self { rows: all.into_iter().skip(from).take(ROWS).collect(), total, from }
    }

    /// The first row of the part before.
    pub fn previous(&self) -> Option<usize> {
        (self.from > 0).then(|| self.from.saturating_sub(ROWS))
    }

    /// The first row of the next part.
    pub fn next(&self) -> Option<usize> {
        Some(self.from + ROWS).filter(|next| *next < self.total)
    }
}

/// The query of a page that begins from a search.
#[derive(Default, Deserialize)]
pub struct Origin {
    /// The short id of the search.
    #[serde(default)]
    search: String,
}

impl Origin {
    /// The text of the search; empty if the server does not remember it.
    pub fn text(&self, visit: &Visit) -> String {
        let id = self.search.parse().ok();
        id.and_then(|id| visit.session.queries.get(id)).unwrap_or_default()
    }
}

/// The id of a user in an address.
///
/// # Errors
/// It is none.
pub fn user_id(text: &str) -> Result<LocalityId, Failure> {
    text.parse().map_err(|_| Failure::NotFound)
}

/// The policies of a tenant; empty if they cannot be read.
pub async fn policies(client: &Client) -> v1::Policies {
    let answer = client.admin().get_tenant(v1::GetTenantRequest::default()).await;
    let tenant = answer.ok().and_then(|answer| answer.tenant);
    tenant.and_then(|tenant| tenant.policies).unwrap_or_default()
}

/// Until when users that are deleted now can be restored; none if they may be purged at once.
pub async fn restorable_until(client: &Client) -> Option<Time> {
    let window = duration::of(policies(client).await.restore_window);
    let until = SystemTime::now().checked_add(window).filter(|_| !window.is_zero())?;
    Time::of(Some(&until.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_have_parts() {
        let all: Vec<_> = (0..60).collect();
        let first = Part::new(all.clone(), 0);
        assert_eq!((first.rows.len(), first.previous(), first.next()), (25, None, Some(25)));
        let last = Part::new(all.clone(), 50);
        assert_eq!((last.rows.len(), last.previous(), last.next()), (10, Some(25), None));
        assert_eq!(Part::new(all, 999).rows[0], 0);
    }
}
