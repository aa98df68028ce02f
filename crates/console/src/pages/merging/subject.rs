//! The users of a merge, and until when it can be undone.

use std::time::{Duration, SystemTime};

use polynym_client::Client;
use polynym_presentation::duration;

use crate::prelude::*;

/// A user, and the id that was asked for if that is of a user merged into it.
pub struct Subject {
    pub user: v1::User,
    pub merged_from: String,
}

/// The user with this id, or the one that it was merged into.
pub async fn subject(client: &Client, id: &str) -> Result<Subject, Failure> {
    let request = v1::GetUserRequest { user_id: id.to_owned(), ..Default::default() };
    let answer = client.directory().get_user(request).await?;
    let user = answer.user.ok_or(Failure::NotFound)?;
    Ok(Subject { user, merged_from: answer.merged_from })
}

/// The time for which a merge can be undone by the tenant's policies. Zero: not at all.
pub async fn undo_window(visit: &Visit, tenant: &str) -> Result<Duration, Failure> {
    let request = v1::GetTenantRequest { tenant: tenant.to_owned() };
    let answer = visit.client(tenant).admin().get_tenant(request).await?;
    Ok(duration::of(answer.tenant.and_then(|tenant| tenant.policies?.undo_window)))
}

/// The time until which a merge at `time` can be undone; none if it cannot.
pub fn undo_until(time: SystemTime, window: Duration) -> Option<Time> {
    let until = time.checked_add(window).filter(|_| !window.is_zero())?;
    Time::of(Some(&until.into()))
}
