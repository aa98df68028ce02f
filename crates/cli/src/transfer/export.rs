//! `polynym export`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use polynym_table::{ExportColumns, csv_row};
use serde::Serialize;
use serde_json::Value;
use tempfile::{NamedTempFile, TempPath};
use tonic::Request;

use super::arguments::{Export, Format};
use crate::client::Session;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, write_failure};
use polynym_import::is_table_name;
use polynym_lines::{UserLine, escaped};
use polynym_proto::v1::{
    ExportUsersRequest, ExportedUser, ListTenantsRequest, SearchUsersRequest, User,
};

/// Tenants in one page.
const PAGE_SIZE: i32 = 1_000;
/// Users in one message of an export.
const USERS_PER_MESSAGE: i32 = 256;
/// Users in one page of a search.
const USERS_PER_PAGE: i32 = 200;
const BUFFER_BYTES: usize = 256 << 10;

pub async fn run(command: Export) -> Result<(), Failure> {
    let form = Form::new(&command)?;
    let session = Session::open(&command.settings).await?;
    let mut output = Output::new(&command, form)?;
    if let Some(filter) = command.filter {
        let unreadable = search(&session, &mut output, filter).await?;
        eprintln!("{} users, each as of the moment it was read", output.finish()?);
        return check_readable(unreadable);
    }
    let tenants = match command.all_tenants {
        true => tenants(&session).await?,
        false => vec![session.tenant()],
    };
    let (mut is_exact, mut unreadable) = (true, 0);
    for tenant in tenants {
        let exported = export(&session, &mut output, tenant).await?;
        is_exact &= exported.is_exact;
        unreadable += exported.unreadable;
    }
    let users = output.finish()?;
    let consistency = match is_exact {
        true => "each tenant as of one moment",
        false => "some as of the moment they were read",
    };
    eprintln!("{users} users, {consistency}");
    check_readable(unreadable)
}

/// Fails after an export that lacks users.
fn check_readable(unreadable: usize) -> Result<(), Failure> {
    match unreadable {
        0 => Ok(()),
        count => Err(Failure::Other(format!(
            "the export is complete but for {count} users whose stored records cannot be read: ask \
             the server's operator to run `polynym store verify`"
        ))),
    }
}

/// The form of the output.
enum Form {
    Lines,
    Table(ExportColumns),
}

impl Form {
    fn new(command: &Export) -> Result<Self, Failure> {
        let is_table = command.format.unwrap_or_else(|| match &command.output {
            Some(path) if is_table_name(path) => Format::Csv,
            _ => Format::Jsonl,
        }) == Format::Csv;
        match (&command.columns, is_table) {
            (Some(_), false) => Err(Failure::Usage("--columns needs --format csv".to_owned())),
            (None, false) => Ok(Self::Lines),
            (columns, true) => {
                let columns = ExportColumns::parse(columns.as_deref().unwrap_or_default());
                Ok(Self::Table(columns.map_err(Failure::Usage)?))
            }
        }
    }
}

/// The output file, which gets its name when it is complete, or standard output.
struct Output {
    writer: BufWriter<Box<dyn Write>>,
    draft: Option<(TempPath, PathBuf)>,
    form: Form,
    has_begun: bool,
    users: u64,
}

impl Output {
    fn new(command: &Export, form: Form) -> Result<Self, Failure> {
        let (writer, draft): (Box<dyn Write>, _) = match &command.output {
            None => (Box::new(std::io::stdout()), None),
            Some(path) => {
                let failure = |error: std::io::Error| files::failure(path, error);
                // Write to a device, a pipe or a link in place.
                if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                    (Box::new(File::create(path).map_err(failure)?), None)
                } else {
                    let temporary = NamedTempFile::new_in(files::folder(path)).map_err(failure)?;
                    let (file, draft) = temporary.into_parts();
                    (Box::new(file), Some((draft, path.clone())))
                }
            }
        };
        let writer = BufWriter::with_capacity(BUFFER_BYTES, writer);
        Ok(Self { writer, draft, form, has_begun: false, users: 0 })
    }

    /// Writes what precedes these users, which are the next ones: the header of a table, once.
    fn begin<'u>(&mut self, users: impl Iterator<Item = &'u User> + Clone) -> Result<(), Failure> {
        let Form::Table(columns) = &mut self.form else { return Ok(()) };
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        columns.infer_types(users);
        let header = columns.header();
        // The mark tells spreadsheets the encoding.
        self.writer.write_all("\u{feff}".as_bytes())?;
        self.write_row(&header)
    }

    fn write_row(&mut self, cells: &[String]) -> Result<(), Failure> {
        let row = csv_row(cells.iter().map(String::as_str), b',')?;
        Ok(self.writer.write_all(&row)?)
    }

    fn write_user(&mut self, user: &User, internals: Option<Value>) -> Result<(), Failure> {
        self.users += 1;
        match &self.form {
            Form::Lines => self.write_line(&UserLine { user, internals }),
            Form::Table(columns) => {
                let row = columns.row(user).map_err(Failure::Other)?;
                self.write_row(&row)
            }
        }
    }

    /// Writes a line that is no user. Tables have none.
    fn write_other(&mut self, line: &Value) -> Result<(), Failure> {
        match self.form {
            Form::Lines => self.write_line(line),
            Form::Table(_) => Ok(()),
        }
    }

    /// Flushes the output. Returns the number of users.
    fn finish(mut self) -> Result<u64, Failure> {
        self.begin(std::iter::empty())?;
        self.writer.flush()?;
        if let Some((draft, path)) = self.draft {
            draft.persist(&path).map_err(|error| files::failure(&path, error.error))?;
        }
        Ok(self.users)
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(line)
            .map_err(|error| Failure::from(std::io::Error::from(error)))?;
        self.writer.write_all(escaped(&text).as_bytes())?;
        Ok(self.writer.write_all(b"\n")?)
    }
}

async fn tenants(session: &Session) -> Result<Vec<String>, Failure> {
    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let request =
            ListTenantsRequest { tenant: String::new(), page_size: PAGE_SIZE, page_token };
        let outcome = session.admin().list_tenants(request).await;
        let answer = session.answer(outcome)?;
        names.extend(answer.tenants.into_iter().map(|tenant| tenant.tenant));
        if answer.next_page_token.is_empty() {
            return Ok(names);
        }
        page_token = answer.next_page_token;
    }
}

/// Exports the users of a tenant that a filter matches. Returns the number of users that cannot be
/// read.
async fn search(session: &Session, output: &mut Output, filter: String) -> Result<usize, Failure> {
    let mut unreadable = 0;
    let mut request = SearchUsersRequest {
        tenant: session.tenant(),
        filter,
        page_size: USERS_PER_PAGE,
        ..SearchUsersRequest::default()
    };
    loop {
        let message = request.clone();
        let answer = session.answer(session.directory().search_users(message).await)?;
        if !answer.users.is_empty() {
            output.begin(answer.users.iter())?;
        }
        for user in &answer.users {
            output.write_user(user, None)?;
        }
        output::warn_unreadable(&answer.unreadable_user_ids);
        unreadable += answer.unreadable_user_ids.len();
        if answer.next_page_token.is_empty() {
            return Ok(unreadable);
        }
        request.page_token = answer.next_page_token;
    }
}

/// What an export of a tenant was.
#[derive(Default)]
struct Exported {
    /// Whether it is as of one moment.
    is_exact: bool,
    /// The number of users that cannot be read.
    unreadable: usize,
}

/// Exports a tenant.
async fn export(
    session: &Session,
    output: &mut Output,
    tenant: String,
) -> Result<Exported, Failure> {
    // Without a deadline: the time depends on the number of users.
    let request =
        Request::new(ExportUsersRequest { tenant, read_time: None, page_size: USERS_PER_MESSAGE });
    let mut parts = session.answer(session.admin().export_users(request).await)?;
    let mut outcome = Exported::default();
    while let Some(part) = parts.message().await.map_err(|error| session.failure(error))? {
        if let Some(start) = &part.start {
            outcome.is_exact = start.exact;
        }
        if let Some(end) = &part.end {
            outcome.is_exact = end.exact;
        }
        output::warn_unreadable(&part.unreadable_user_ids);
        outcome.unreadable += part.unreadable_user_ids.len();
        if let Some(tenant) = &part.tenant_record {
            output.write_other(&polynym_lines::tenant_object(tenant).map_err(write_failure)?)?;
        }
        if let Some(hold) = &part.ownerless_hold {
            output.write_other(&polynym_lines::hold_object(hold).map_err(write_failure)?)?;
        }
        // Older servers send one user per message.
        let one = ExportedUser { user: part.user, internals: part.internals };
        let mut exported = part.users;
        exported.insert(0, one);
        exported.retain(|one| one.user.is_some());
        if !exported.is_empty() {
            output.begin(exported.iter().filter_map(|one| one.user.as_ref()))?;
        }
        for ExportedUser { user, internals } in exported {
            let Some(user) = &user else { continue };
            let internals = internals.as_ref().map(polynym_lines::internals_object);
            let internals = internals.transpose().map_err(write_failure)?;
            output.write_user(user, internals)?;
        }
    }

    Ok(outcome)
}
