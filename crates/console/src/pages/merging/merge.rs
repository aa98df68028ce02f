//! The preview of a merge, and the merge.

use std::time::SystemTime;

use http::StatusCode;
use polynym_client::Client;
use serde::Deserialize;
use uuid::Uuid;
use v1::ConflictPolicy;

use super::compare::Comparison;
use super::subject::{subject, undo_until, undo_window};
use crate::change::Version;
use crate::context::with_reason;
use crate::prelude::*;
use crate::session::Message;
use crate::views::event::EventView;
use crate::views::person::{Person, merged_name};

#[derive(Template)]
#[template(path = "pages/merging/merge.html")]
struct MergePage {
    frame: Frame,
    compared: Comparison,
    keep: Keep,
    /// The versions of both users that are shown.
    seen: [Version; 2],
    /// Whether a user changed after the person looked, and what.
    is_stale: bool,
    changes: Vec<EventView>,
    undo_until: Option<Time>,
    request_id: Uuid,
    reason: String,
    commands: Commands,
}

impl MergePage {
    /// The path of the users.
    fn users(&self) -> String {
        format!("{}/users", self.frame.home())
    }

    /// The path of this page.
    fn here(&self) -> String {
        let Comparison { primary, secondary, .. } = &self.compared;
        format!("{}/{}/merge/{}", self.users(), primary.id, secondary.id)
    }
}

/// Whose values stay if both users have one.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Those of the user that stays.
    #[default]
    Own,
    /// Those of the user that is merged into it.
    Other,
}

impl Keep {
    const fn policy(self) -> ConflictPolicy {
        match self {
            Self::Own => ConflictPolicy::PrimaryWins,
            Self::Other => ConflictPolicy::SecondaryWins,
        }
    }

    /// The text in forms and addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Other => "other",
        }
    }

    /// The word of the command line.
    const fn argument(self) -> &'static str {
        match self {
            Self::Own => "primary",
            Self::Other => "secondary",
        }
    }
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Parameters {
    #[serde(default)]
    keep: Keep,
}

type Ids = (String, String, String);

/// The preview.
pub async fn page(
    visit: Visit,
    Path((tenant, id, other)): Path<Ids>,
    Query(Parameters { keep }): Query<Parameters>,
) -> Page {
    visit.require(Role::Registrar)?;
    let client = visit.client(&tenant);
    let merged = subject(&client, &other).await?;
    if merged.user.user_id == id && !merged.merged_from.is_empty() {
        let home = visit.frame(&tenant).home();
        return Ok(redirect(&format!("{home}/users/{id}/unmerge/{other}")));
    }
    let page = preview(&visit, &tenant, [&id, &other], keep).await?;
    Ok(render(&page))
}

/// Merges the users, unless one of them has changed since the person looked.
pub async fn apply(visit: Visit, Path((tenant, id, other)): Path<Ids>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let client = visit.client(&tenant);
    let keep = if form.get("keep") == Keep::Other.as_str() { Keep::Other } else { Keep::Own };
    let seen = [Version::from_form(&form, ""), Version::from_form(&form, "_other")];
    let secondary = subject(&client, &other).await?;
    // A repeated form finds the users merged: the API answers it by its request id.
    let is_separate = secondary.merged_from.is_empty();
    if is_separate && secondary.user.etag != seen[1].etag {
        return conflict(&visit, &tenant, [&id, &other], keep, seen, &form).await;
    }
    let request = v1::MergeUsersRequest {
        primary_user_id: id.clone(),
        secondary_user_id: other.clone(),
        conflict_policy: keep.policy().into(),
        etag: seen[0].etag.clone(),
        request_id: form.get("request_id").to_owned(),
        ..Default::default()
    };
    match client.registry().merge_users(with_reason(request, form.get("reason"))?).await {
        Ok(answer) => {
            let name = UserView::of(&secondary.user).title().to_owned();
            let known = Some(name).filter(|_| is_separate);
            let name = match known {
                Some(name) => Some(name),
                None => merged_name(&client, &other).await,
            };
            let path = format!("{}/users/{id}", visit.frame(&tenant).home());
            let link = (format!("{path}/unmerge/{other}"), "Undo the merge");
            let people = vec![named(&id, answer.user.as_ref()), Person::named(&other, name)];
            let message = Message { people, link: Some(link), ..Message::done("merged", "") };
            Ok(visit.done(&path, message))
        }
        Err(error) if error.reason() == "ETAG_MISMATCH" => {
            conflict(&visit, &tenant, [&id, &other], keep, seen, &form).await
        }
        Err(error) => Err(error.into()),
    }
}

/// A user by its title.
pub fn named(id: &str, user: Option<&v1::User>) -> Person {
    Person::named(id, user.map(|user| UserView::of(user).title().to_owned()))
}

/// The preview again, with what changed since the person looked.
async fn conflict(
    visit: &Visit,
    tenant: &str,
    ids: [&str; 2],
    keep: Keep,
    seen: [Version; 2],
    form: &Form,
) -> Page {
    let client = visit.client(tenant);
    let (mut changes, other_changes) = tokio::join!(
        seen[0].changes_since(&client, ids[0]),
        seen[1].changes_since(&client, ids[1])
    );
    changes.extend(other_changes);
    let reason = form.get("reason").to_owned();
    let page = preview(visit, tenant, ids, keep).await?;
    Ok(render_with_status(
        &MergePage { is_stale: true, changes, reason, ..page },
        StatusCode::CONFLICT,
    ))
}

async fn preview(
    visit: &Visit,
    tenant: &str,
    [id, other]: [&str; 2],
    keep: Keep,
) -> Result<MergePage, Failure> {
    let client = visit.client(tenant);
    let (primary, secondary, window) = tokio::try_join!(
        subject(&client, id),
        subject(&client, other),
        undo_window(visit, tenant)
    )?;
    let request = v1::MergeUsersRequest {
        tenant: tenant.to_owned(),
        primary_user_id: id.to_owned(),
        secondary_user_id: other.to_owned(),
        conflict_policy: keep.policy().into(),
        validate_only: true,
        ..Default::default()
    };
    let shown = dry_run(&client, request.clone()).await?;
    let (primary, secondary) = (primary.user, secondary.user);
    Ok(MergePage {
        frame: visit.frame(tenant),
        compared: Comparison::new(&primary, &secondary, &shown),
        keep,
        seen: [Version::of(&primary), Version::of(&secondary)],
        is_stale: false,
        changes: Vec::new(),
        undo_until: undo_until(SystemTime::now(), window),
        request_id: Uuid::new_v4(),
        reason: String::new(),
        commands: commands(&request, keep),
    })
}

async fn dry_run(
    client: &Client,
    request: v1::MergeUsersRequest,
) -> Result<v1::MergePreview, Failure> {
    Ok(client.registry().merge_users(request).await?.preview.unwrap_or_default())
}

fn commands(request: &v1::MergeUsersRequest, keep: Keep) -> Commands {
    let (id, other) = (&request.primary_user_id, &request.secondary_user_id);
    let (keep, tenant) = (keep.argument(), &request.tenant);
    let cli = ["user", "merge", "--dry-run", id, other, "--conflicts", keep, "--tenant", tenant];
    Commands::from_request(&cli, request)
}
