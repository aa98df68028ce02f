//! The files of a session.

use std::sync::{Arc, Mutex, PoisonError};

use super::job::{Job, JobKind};
use super::pool::Space;
use super::temp_file::KeptFile;
use super::upload::{Upload, UploadNames};
use crate::failure::Failure;
use crate::short_id::{ShortId, new_id};

/// The maximum number of files of a session.
pub const MAX_FILES: usize = 20;
/// The maximum bytes of a file.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// The maximum bytes of the rejects of an import.
const MAX_REJECT_BYTES: u64 = 64 << 20;

/// The files of a session. They go with it.
pub struct Uploads {
    caller: String,
    space: Arc<Space>,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    /// The ids of the requests whose files arrive.
    arriving: Vec<String>,
    open: Vec<Arc<Upload>>,
}

/// The room for a file that arrives, until it is dropped.
pub struct Slot<'u> {
    uploads: &'u Arc<Uploads>,
    request_id: String,
    pub file: Arc<KeptFile>,
}

impl Uploads {
    /// No files of a caller.
    pub fn new(caller: &str, space: Arc<Space>) -> Arc<Self> {
        Arc::new(Self { caller: caller.to_owned(), space, files: Mutex::default() })
    }

    /// The files of a tenant.
    pub fn of_tenant(&self, tenant: &str) -> Vec<Arc<Upload>> {
        let guard = self.lock();
        guard.open.iter().filter(|upload| upload.tenant == tenant).cloned().collect()
    }

    /// The number of all files.
    pub fn count(&self) -> usize {
        let guard = self.lock();
        guard.open.len() + guard.arriving.len()
    }

    /// Whether work on a file goes on.
    pub fn is_working(&self) -> bool {
        self.lock().open.iter().any(|upload| upload.running().is_some())
    }

    /// The file with this number.
    pub fn get(&self, tenant: &str, number: ShortId) -> Option<Arc<Upload>> {
        self.of_tenant(tenant).into_iter().find(|upload| upload.number == number)
    }

    /// The name of the file that an operation imported, if it is one of these.
    pub fn import_name(&self, tenant: &str, operation: &str) -> Option<String> {
        let is_own = |upload: &&Arc<Upload>| {
            upload.snapshot().import.is_some_and(|import| import.operation_id == operation)
        };
        self.of_tenant(tenant).iter().find(is_own).map(|upload| upload.name.clone())
    }

    /// The file that a request uploaded.
    pub fn of_request(&self, tenant: &str, request_id: &str) -> Option<Arc<Upload>> {
        let own = self.of_tenant(tenant).into_iter();
        own.filter(|_| !request_id.is_empty()).find(|upload| upload.request_id == request_id)
    }

    /// Room for a file that arrives.
    ///
    /// # Errors
    /// The session has too many files, the request is repeated, or the disk cannot be used.
    pub fn receive(self: &Arc<Self>, request_id: &str) -> Result<Slot<'_>, Failure> {
        let taken = self.space.bytes.take(&self.caller, 0).ok_or_else(no_space)?;
        let file = KeptFile::new(taken, MAX_FILE_BYTES).map_err(|error| disk(&error))?;
        let mut guard = self.lock();
        if guard.arriving.iter().any(|known| known == request_id) {
            return Err(Failure::Form("This file is being uploaded already.".to_owned()));
        }
        if guard.open.len() + guard.arriving.len() >= MAX_FILES {
            return Err(Failure::Form(format!(
                "A session has at most {MAX_FILES} files: remove one first."
            )));
        }
        guard.arriving.push(request_id.to_owned());
        let request_id = request_id.to_owned();
        Ok(Slot { uploads: self, request_id, file: Arc::new(file) })
    }

    /// Removes a file, and stops the work on it.
    pub fn remove(&self, number: ShortId) {
        let mut guard = self.lock();
        if let Some(n) = guard.open.iter().position(|upload| upload.number == number) {
            guard.open.remove(n).stop();
        }
    }

    /// Begins work on a file; none if the same request has begun it already.
    ///
    /// # Errors
    /// The file was removed, other work runs, or too much of it on this server.
    pub fn begin(
        &self,
        upload: &Upload,
        kind: JobKind,
        request_id: &str,
    ) -> Result<Option<Arc<Job>>, Failure> {
        let guard = self.lock();
        // It may have been removed since the request found it.
        if !guard.open.iter().any(|open| open.number == upload.number) {
            return Err(Failure::FileGone);
        }
        let last = upload.snapshot().job;
        let is_repeated = |job: &Arc<Job>| !request_id.is_empty() && job.request_id == request_id;
        if last.as_ref().is_some_and(is_repeated) {
            return Ok(None);
        }
        let failure = |text: &str| Err(Failure::Form(text.to_owned()));
        if upload.running().is_some() {
            return failure("Work on this file goes on: wait until it ends, or stop it.");
        }
        if kind != JobKind::Read && guard.open.iter().any(|other| other.is_sent()) {
            return failure("An import of yours goes on: wait until it ends, or stop it.");
        }
        let Some(permit) = self.space.jobs.take(&self.caller, 1) else {
            return failure("The server reads and imports other files: try again in a minute.");
        };
        let job = Arc::new(Job::new(kind, request_id, upload.file.bytes(), permit));
        upload.update(|state| {
            state.job = Some(job.clone());
            state.warning.clear();
        });
        Ok(Some(job))
    }

    /// An empty file for rejects.
    ///
    /// # Errors
    /// The disk cannot be used: in words.
    pub fn rejects_file(&self) -> Result<Arc<KeptFile>, String> {
        let taken = self.space.bytes.take(&self.caller, 0);
        let taken = taken.ok_or("the server has no room for rejects")?;
        let file = KeptFile::new(taken, MAX_REJECT_BYTES).map_err(|error| error.to_string())?;
        Ok(Arc::new(file))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for upload in &self.files.get_mut().unwrap_or_else(PoisonError::into_inner).open {
            upload.stop();
        }
    }
}

impl Slot<'_> {
    /// Appends to the file.
    ///
    /// # Errors
    /// It is too large, or the caller's files together are.
    pub async fn append(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let file = self.file.clone();
        let appended = tokio::task::spawn_blocking(move || file.append(&bytes)).await;
        let fits = appended.map_err(|error| disk(&error))?.map_err(|error| disk(&error))?;
        if fits { Ok(()) } else { Err(no_space()) }
    }

    /// Keeps the file, which is whole, for a day.
    pub fn keep(self, own: UploadNames) -> Arc<Upload> {
        let mut guard = self.uploads.lock();
        let upload = Arc::new(Upload::new(new_id(), self.file.clone(), own));
        guard.open.push(upload.clone());
        drop(guard);
        let (uploads, number) = (Arc::downgrade(self.uploads), upload.number);
        let max_age = self.uploads.space.max_age;
        let removal = tokio::spawn(async move {
            tokio::time::sleep(max_age).await;
            if let Some(uploads) = uploads.upgrade() {
                uploads.remove(number);
            }
        });
        upload.set_removal(removal.abort_handle());
        upload
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut guard = self.uploads.lock();
        if let Some(n) = guard.arriving.iter().position(|id| *id == self.request_id) {
            guard.arriving.swap_remove(n);
        }
    }
}

fn no_space() -> Failure {
    Failure::Form(format!(
        "A file has at most {} MiB, and the files of a caller 512 MiB: remove files, or \
         split the file.",
        MAX_FILE_BYTES >> 20
    ))
}

fn disk(error: &dyn std::fmt::Display) -> Failure {
    Failure::Internal(format!("The server cannot keep the file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn names() -> UploadNames {
        let text = str::to_owned;
        UploadNames {
            name: text("a.csv"),
            tenant: text("default"),
            request_id: text("1"),
            is_table: true,
            export: None,
        }
    }

    #[tokio::test]
    async fn a_file_is_removed_at_its_age() {
        let space = Space { max_age: Duration::from_millis(1), ..Space::default() };
        let uploads = Uploads::new("ana", Arc::new(space));
        let slot = uploads.receive("1").unwrap();
        slot.append(b"email".to_vec()).await.unwrap();
        let upload = slot.keep(names());
        let weak = Arc::downgrade(&upload);
        let number = upload.number;
        drop(upload);
        while uploads.get("default", number).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(weak.upgrade().is_none());
        assert_eq!(uploads.count(), 0);
    }

    #[tokio::test]
    async fn no_work_begins_on_a_removed_file() {
        let uploads = Uploads::new("ana", Arc::new(Space::default()));
        let upload = uploads.receive("1").unwrap().keep(names());
        uploads.remove(upload.number);
        let begun = uploads.begin(&upload, JobKind::Import, "2");
        assert!(matches!(begun, Err(Failure::FileGone)));
        assert!(upload.running().is_none());
    }

    #[tokio::test]
    async fn work_is_bounded_and_ends_with_its_session() {
        let space = Arc::new(Space::default());
        let [ana, ben] = ["ana", "ben"].map(|caller| Uploads::new(caller, space.clone()));
        let file = |uploads: &Arc<Uploads>| uploads.receive("1").unwrap().keep(names());
        let files: Vec<_> = (0..3).map(|_| file(&ana)).collect();
        let begin = |uploads: &Arc<Uploads>, upload: &Upload, kind, id| {
            uploads.begin(upload, kind, id).map_err(|failure| format!("{failure:?}"))
        };
        let first = begin(&ana, &files[0], JobKind::Import, "1").unwrap().unwrap();
        assert!(begin(&ana, &files[0], JobKind::Import, "1").unwrap().is_none());
        assert!(begin(&ana, &files[0], JobKind::Read, "2").is_err());
        let error = begin(&ana, &files[1], JobKind::DryRun, "3").err().unwrap();
        assert!(error.contains("An import of yours"), "{error}");
        begin(&ana, &files[1], JobKind::Read, "4").unwrap().unwrap();
        let error = begin(&ana, &files[2], JobKind::Read, "5").err().unwrap();
        assert!(error.contains("other files"), "{error}");
        let own = file(&ben);
        begin(&ben, &own, JobKind::Import, "6").unwrap().unwrap();
        drop(ana);
        assert!(first.stop.is_set());
        first.end();
        assert!(files[0].running().is_none());
    }
}
