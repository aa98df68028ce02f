//! `polynym store verify`: prints findings at once. Keys are personal data: without `--show-keys`,
//! it prints their kind, and a hash that identifies them within one run.

use std::hash::{BuildHasher, RandomState};

use indicatif::{ProgressBar, ProgressStyle};
use locality_uuid::LocalityId;
use polynym::arguments::store::Verify;
use polynym::settings::StoreChoice;
use polynym_cli::Failure;
use polynym_cli::output;
use polynym_embedded as embedded;
use polynym_identifier::IdentityKey;
use polynym_mongodb as mongo;
use polynym_store_common::integrity::{
    CheckableStore, Finding, Observer, RepairState, Sample, Scope, Summary, verify_part,
};
use serde::Serialize;

use super::failures::{no_temporary, other};

/// Verifies a store, and repairs it if that is asked for.
pub async fn run(command: &Verify) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    let json = settings.output.json;
    let keys = Keys::new(command.show_keys);
    let mut report = Report { json, keys, bar: None, printed: Ok(()) };
    let outcome = match &settings.location.store {
        StoreChoice::Embedded(folder) => {
            let store = embedded::IntegritySession::open(folder).map_err(other)?;
            verify(&store, command, &mut report).await
        }
        StoreChoice::Mongo(uri) => {
            let store = mongo::IntegritySession::open(uri.as_str())
                .await
                .map_err(|error| other(format!("{uri}: {error}")))?;
            let outcome = verify(&store, command, &mut report).await;
            store.close().await;
            outcome
        }
        StoreChoice::Temporary => return Err(no_temporary()),
    };
    report.clear();
    let (summary, part) = outcome?;
    report.printed?;
    match json {
        true => output::print_json(&Totals::new(&summary, &part))?,
        false => output::print(&totals_text(&summary, &part, command.repair))?,
    }

    if summary.is_clean() { Ok(()) } else { Err(Failure::AlreadyReported) }
}

/// The part of a store that was verified.
struct Part {
    scope: Scope,
    /// About the numbers of users and claims of the tenant, or of all tenants.
    of: (u64, u64),
}

async fn verify<S: CheckableStore>(
    store: &S,
    command: &Verify,
    report: &mut Report,
) -> Result<(Summary, Part), Failure> {
    let failure = |error| other(chain(&error));
    let tenant = command.tenant.clone();
    let of = store.counts(tenant.as_ref()).await.map_err(failure)?;
    if let Some(tenant) = tenant.as_ref().filter(|_| of == (0, 0)) {
        return Err(other(format!("the store has no users of tenant {tenant}: see its name")));
    }
    let seed = command.seed.map_or_else(random_seed, Ok)?;
    let sample = command.sample.map(|size| Sample { seed, share: size.share_of(of.0) });
    let scope = Scope { tenant, sample };
    let verified = verify_part(store, command.repair, scope.clone(), report).await;
    Ok((verified.map_err(failure)?, Part { scope, of }))
}

/// A short seed, which is easy to repeat.
fn random_seed() -> Result<u64, Failure> {
    getrandom::u32().map(u64::from).map_err(|error| other(format!("no random seed: {error}")))
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn totals_text(summary: &Summary, part: &Part, repair: bool) -> String {
    let Summary { users, claims, findings, repaired, repairable } = *summary;
    let mut read = format!("{users} users and {claims} claims read");
    if let Some(tenant) = &part.scope.tenant {
        read += &format!(" of tenant {tenant}");
    }
    if let Some(Sample { seed, .. }) = part.scope.sample {
        let (users, claims) = part.of;
        read += &format!(", a sample of about {users} and {claims} by --seed {seed}");
    }
    let totals = match (findings, repair) {
        (0, _) => format!("{read}: no inconsistency\n"),
        (_, true) => {
            let left = findings - repaired;
            format!("{read}: {findings} findings, {repaired} repaired, {left} left\n")
        }
        (_, false) => {
            format!("{read}: {findings} findings; --repair would repair {repairable} of them\n")
        }
    };
    totals + unchecked(&part.scope)
}

/// A line on what the verification of a part leaves out.
const fn unchecked(scope: &Scope) -> &'static str {
    match (&scope.tenant, &scope.sample) {
        (None, None) => "",
        (Some(_), None) => {
            "not checked: other tenants, notices, bulk changes, stray entries of the search index\n"
        }
        (_, Some(_)) => {
            "not checked: all others, notices, bulk changes, stray entries of the search index, \
             and whether two users list one identity\n"
        }
    }
}

/// Prints findings, and shows progress on a terminal.
struct Report {
    json: bool,
    keys: Keys,
    bar: Option<(&'static str, ProgressBar)>,
    /// The outcome of printing. A closed output does not stop the verification.
    printed: Result<(), Failure>,
}

impl Report {
    fn clear(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn print(&self, finding: &Finding) -> Result<(), Failure> {
        let shown = Shown::of(finding, &self.keys);
        if self.json { output::print_json(&shown) } else { output::print(&shown.line(finding)) }
    }
}

impl Observer for Report {
    fn at(&mut self, walk: &'static str, done: u64, of: u64) {
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != walk) {
            self.clear();
            self.bar = Some((walk, progress_bar(of, walk)));
        }
        if let Some((_, bar)) = &self.bar {
            bar.set_length(of.max(done));
            bar.set_position(done);
        }
    }

    fn found(&mut self, finding: &Finding) {
        let print = || self.print(finding);
        let outcome = match &self.bar {
            Some((_, bar)) => bar.suspend(print),
            None => print(),
        };
        if self.printed.is_ok() {
            self.printed = outcome;
        }
    }
}

/// A progress bar; hidden unless standard error is a terminal.
fn progress_bar(length: u64, walk: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}%  {per_sec}  {eta} left");
    let bar = ProgressBar::new(length).with_message(walk);
    style.map_or_else(|_| ProgressBar::hidden(), |style| bar.with_style(style))
}

/// The form of personal data in the output.
struct Keys {
    shown: bool,
    secret: RandomState,
}

impl Keys {
    fn new(shown: bool) -> Self {
        Self { shown, secret: RandomState::new() }
    }

    fn text(&self, text: &str) -> String {
        if self.shown { output::printable(text).into_owned() } else { self.hash(text) }
    }

    fn hash(&self, text: &str) -> String {
        format!("#{:012x}", self.secret.hash_one(text) >> 16)
    }
}

/// A finding in the output.
#[derive(Serialize)]
struct Shown {
    finding: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<LocalityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_user: Option<LocalityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    #[serde(rename = "settled")]
    repair: &'static str,
    remedy: &'static str,
}

impl Shown {
    fn of(finding: &Finding, keys: &Keys) -> Self {
        let part = |part: fn(&IdentityKey) -> &str| {
            finding.key.as_ref().map(|key| output::printable(part(key)).into_owned())
        };
        Self {
            finding: finding.fault.word(),
            user: finding.user,
            other_user: finding.other,
            tenant: part(|key| key.parts().0),
            kind: part(|key| key.parts().1),
            key: finding.key.as_ref().map(|key| keys.text(key.as_str())),
            document: finding.document.as_ref().map(|document| keys.text(document)),
            repair: match finding.repair {
                RepairState::Done => "yes",
                RepairState::Pending => "with --repair",
                RepairState::Impossible => "no",
            },
            remedy: finding.fault.remedy(),
        }
    }

    /// The finding as text.
    fn line(&self, finding: &Finding) -> String {
        let mut about = Vec::new();
        about.extend(self.user.map(|user| format!("user {user}")));
        about.extend(self.other_user.map(|user| format!("user {user}")));
        if let (Some(tenant), Some(kind), Some(key)) = (&self.tenant, &self.kind, &self.key) {
            about.push(format!("{kind} {key} of tenant {tenant}"));
        }

        about.extend(self.document.as_ref().map(|document| format!("document {document}")));
        let repair = match finding.repair {
            RepairState::Done => "repaired: ",
            RepairState::Pending => "with --repair ",
            RepairState::Impossible => "not repaired: ",
        };

        format!("{}: {} ({repair}{})\n", about.join(", "), finding.fault, self.remedy)
    }
}

/// The last line of the JSON output.
#[derive(Serialize)]
struct Totals {
    users: u64,
    claims: u64,
    findings: u64,
    #[serde(rename = "settled")]
    repaired: u64,
    #[serde(rename = "mendable")]
    repairable: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleTotals>,
}

/// The sample in the JSON output.
#[derive(Serialize)]
struct SampleTotals {
    seed: u64,
    of_users: u64,
    of_claims: u64,
}

impl Totals {
    fn new(summary: &Summary, part: &Part) -> Self {
        let Summary { users, claims, findings, repaired, repairable } = *summary;
        let tenant = part.scope.tenant.as_ref().map(ToString::to_string);
        let (of_users, of_claims) = part.of;
        let totals = |Sample { seed, .. }| SampleTotals { seed, of_users, of_claims };
        let sample = part.scope.sample.map(totals);
        Self { users, claims, findings, repaired, repairable, tenant, sample }
    }
}
