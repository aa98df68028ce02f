//! The actions on an uploaded file.

use std::sync::Arc;

use http::HeaderMap;
use uuid::Uuid;

use super::session_files::{path, upload};
use super::typed::{Typed, address, read_again, request_id};
use super::{files, mending, values};
use crate::imports::{self, JobKind, KeptMappings, Plan, Snapshot, Upload};
use crate::prelude::*;
use crate::short_id::ShortId;

/// Said of an import whose form has other columns or options than the dry run that it shows.
const CHECK_AGAIN: &str = "You changed how the file is imported, so nothing was imported yet: this \
                           is the dry run by these columns and options.";

/// Reads the file again, by the settings of the form.
pub async fn read(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    mending::keep(&visit, &upload, &state, &form).await?;
    let Typed { settings, error, is_read_anew, .. } = Typed::of(&state, &form);
    if form.has("from") && !is_read_anew && error.is_empty() {
        return Ok(redirect(&address(&visit, &upload, &form)));
    }
    read_again(&visit, &upload, &form, "read", (settings, error)).await
}

/// Begins a dry run. The browser keeps the columns for the mended file.
pub async fn dry_run(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    check(&visit, &headers, &upload, &form, "").await
}

/// Makes a dry run by what a form has. `warning` is what its page says.
async fn check(
    visit: &Visit,
    headers: &HeaderMap,
    upload: &Arc<Upload>,
    form: &Form,
    warning: &str,
) -> Page {
    let state = upload.snapshot();
    let typed = Typed::of(&state, form);
    mending::keep(visit, upload, &state, form).await?;
    if !typed.error.is_empty() {
        return read_again(visit, upload, form, "dry", (typed.settings, typed.error)).await;
    }
    let settings = typed.settings.clone();
    let sent = send(visit, upload, JobKind::DryRun, typed, &request_id(form, "dry")).await?;
    upload.update(|state| state.warning = warning.to_owned());
    if !upload.is_table || settings.columns.is_empty() {
        return Ok(sent);
    }
    let mut kept = KeptMappings::read(headers, &visit.caller.name);
    kept.keep_last(&state.names, &settings.map_file(&state.names));
    Ok(values::with_kept(sent, visit, &upload.tenant, &kept))
}

/// Begins the import that the last dry run showed. A form with other columns or options makes a dry
/// run by them first.
pub async fn import(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    let is_shown = form.get("dry_run") == state_id(&state);
    let id = request_id(&form, "run");
    let is_repeated = !id.is_empty() && state.job.as_ref().is_some_and(|job| job.request_id == id);
    let shown = state.dry_run.clone().filter(|_| is_shown);
    let options = match shown {
        Some(dry_run) => dry_run.options.clone(),
        None if is_repeated => return Ok(redirect(&path(&visit, &upload))),
        None => {
            let message = "The file was read in another way since: make a dry run again.";
            return Err(Failure::Form(message.to_owned()));
        }
    };
    let typed = Typed::of(&state, &form);
    if typed.is_read_anew || typed.options != options || !typed.error.is_empty() {
        return check(&visit, &headers, &upload, &form, CHECK_AGAIN).await;
    }
    mending::keep(&visit, &upload, &state, &form).await?;
    send(&visit, &upload, JobKind::Import, typed, &id).await
}

/// The id of the dry run that is shown.
pub fn state_id(state: &Snapshot) -> String {
    state.dry_run.as_ref().map_or_else(String::new, |dry_run| dry_run.operation_id.clone())
}

async fn send(
    visit: &Visit,
    upload: &Arc<Upload>,
    kind: JobKind,
    typed: Typed,
    request_id: &str,
) -> Page {
    let state = upload.snapshot();
    if !matches!(state.reading, Some(Ok(_))) {
        return Err(Failure::Form("The file is not read yet: choose its columns.".to_owned()));
    }
    let definitions = files::definitions(visit, &upload.tenant).await?;
    let is_read_first = upload.is_table && typed.is_read_anew;
    let given = match upload.is_table && !is_read_first {
        true => {
            let mut given = state.settings.map_file(&state.names).given().map_err(Failure::Form)?;
            given.options.definitions.clone_from(&definitions);
            Some(given)
        }
        false => None,
    };
    let uploads = &visit.session.uploads;
    let plan = Plan {
        client: visit.client(&upload.tenant),
        options: typed.options,
        given,
        rejects: uploads.rejects_file().map_err(Failure::Form)?,
        operation_id: format!("import-{}", Uuid::now_v7()),
    };
    if let Some(job) = uploads.begin(upload, kind, request_id)? {
        upload.update(|state| {
            state.import = None;
            if kind == JobKind::DryRun {
                state.dry_run = None;
            }
        });
        let upload = upload.clone();
        if is_read_first {
            let work = imports::read_and_check(upload, job, typed.settings, definitions, plan);
            tokio::spawn(work);
        } else {
            tokio::spawn(imports::transfer(upload, job, plan));
        }
    }
    Ok(redirect(&path(visit, upload)))
}

/// Stops the work on a file.
pub async fn stop(visit: Visit, Path((tenant, number)): Path<(String, ShortId)>, _: Form) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    upload.stop();
    Ok(redirect(&path(&visit, &upload)))
}

/// Removes a file.
pub async fn remove(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    _: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    visit.session.uploads.remove(upload.number);
    Ok(redirect(&format!("{}/import", visit.frame(&tenant).home())))
}
