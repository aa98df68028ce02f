//! The actions on an uploaded file.

use std::sync::Arc;

use http::HeaderMap;
use uuid::Uuid;

use super::session_files::{path, upload};
use super::{files, values};
use crate::imports::{self, ImportOptions, JobKind, KeptMappings, Plan, Snapshot, Upload};
use crate::prelude::*;
use crate::short_id::ShortId;

/// Reads the file again, by the settings of the form.
pub async fn read(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let definitions = files::definitions(&visit, &tenant).await?;
    let settings = upload.snapshot().settings.with(&form);
    let begun = visit.session.uploads.begin(&upload, JobKind::Read, form.get("request_id"))?;
    if let Some(job) = begun {
        let kept = KeptMappings::default();
        tokio::spawn(imports::inspect(upload.clone(), job, settings, definitions, kept));
    }
    Ok(redirect(&path(&visit, &upload)))
}

/// Begins a dry run. The browser keeps the columns for the mended file.
pub async fn dry_run(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let sent = send(&visit, &upload, JobKind::DryRun, ImportOptions::of(&form), &form).await?;
    if !upload.is_table {
        return Ok(sent);
    }
    let state = upload.snapshot();
    let mut kept = KeptMappings::read(&headers, &visit.caller.name);
    kept.keep_last(&state.names, &state.settings.map_file(&state.names));
    Ok(values::with_kept(sent, &visit, &tenant, &kept))
}

/// Begins the import that the last dry run showed.
pub async fn import(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    let is_shown = form.get("dry_run") == state_id(&state);
    let request_id = form.get("request_id");
    let is_repeated = state.job.is_some_and(|job| job.request_id == request_id);
    let shown = state.dry_run.filter(|_| is_shown);
    let options = match shown {
        Some(dry_run) => dry_run.options.clone(),
        None if is_repeated => return Ok(redirect(&path(&visit, &upload))),
        None => {
            let message = "The file was read in another way since: make a dry run again.";
            return Err(Failure::Form(message.to_owned()));
        }
    };
    send(&visit, &upload, JobKind::Import, options, &form).await
}

/// The id of the dry run that is shown.
pub fn state_id(state: &Snapshot) -> String {
    state.dry_run.as_ref().map_or_else(String::new, |dry_run| dry_run.operation_id.clone())
}

async fn send(
    visit: &Visit,
    upload: &Arc<Upload>,
    kind: JobKind,
    options: ImportOptions,
    form: &Form,
) -> Page {
    let state = upload.snapshot();
    if !matches!(state.reading, Some(Ok(_))) {
        return Err(Failure::Form("The file is not read yet: choose its columns.".to_owned()));
    }
    let definitions = files::definitions(visit, &upload.tenant).await?;
    let given = match upload.is_table {
        true => {
            let mut given = state.settings.map_file(&state.names).given().map_err(Failure::Form)?;
            given.options.definitions = definitions;
            Some(given)
        }
        false => None,
    };
    let uploads = &visit.session.uploads;
    let plan = Plan {
        client: visit.client(&upload.tenant),
        options,
        given,
        rejects: uploads.rejects_file().map_err(Failure::Form)?,
        operation_id: format!("import-{}", Uuid::now_v7()),
    };
    if let Some(job) = uploads.begin(upload, kind, form.get("request_id"))? {
        upload.update(|state| {
            state.import = None;
            if kind == JobKind::DryRun {
                state.dry_run = None;
            }
        });
        tokio::spawn(imports::transfer(upload.clone(), job, plan));
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
