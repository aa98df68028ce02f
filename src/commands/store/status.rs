//! `polynym store status`.

use polynym::settings::{StoreChoice, StoreReport};
use polynym_cli::Failure;
use polynym_cli::output;
use polynym_embedded as embedded;
use polynym_mongodb::{self as mongo, Advice, CollectionStatus};
use polynym_presentation::count;

use super::failures::{no_temporary, other};

/// Shows the state of a store.
pub async fn run(settings: &StoreReport) -> Result<(), Failure> {
    match &settings.location.store {
        StoreChoice::Embedded(folder) => {
            let status = embedded::status(folder).map_err(other)?;
            if settings.output.json { output::print_json(&status) } else { show_folder(&status) }
        }
        StoreChoice::Mongo(uri) => {
            let status = mongo::status(uri.as_str())
                .await
                .map_err(|error| other(format!("{uri}: {error}")))?;
            match settings.output.json {
                true => output::print_json(&status)?,
                false => show_database(&status)?,
            }
            if status.is_whole() { Ok(()) } else { Err(Failure::AlreadyReported) }
        }
        StoreChoice::Temporary => Err(no_temporary()),
    }
}

fn show_folder(status: &embedded::Status) -> Result<(), Failure> {
    let mut table = output::table(["embedded store", &status.folder.display().to_string()]);
    table.add_row(["schema version".to_owned(), status.schema_version.to_string()]);
    table.add_row(["rules version".to_owned(), status.rules_version.to_string()]);
    table.add_row(["file".to_owned(), count::bytes(status.file_bytes)]);
    for (name, count) in
        [("users", status.users), ("identities", status.identities), ("requests", status.requests)]
    {
        table.add_row([name.to_owned(), count.to_string()]);
    }
    if let Some(ahead) = status.ahead_of_last_seen {
        table.add_row(["clock", &clock(ahead)]);
    }

    output::print_table(&table)?;
    if status.can_be_upgraded {
        output::print("`polynym store upgrade` upgrades it to a newer version\n")?;
    }
    Ok(())
}

/// Whether a starting server would trust this machine's clock.
fn clock(ahead: i64) -> String {
    let days = ahead.unsigned_abs() as f64 / 86_400.0;
    match ahead {
        ..-60 => format!("in doubt: {days:.1} days behind the last time seen"),
        86_401.. => format!("in doubt: {days:.1} days ahead of the last time seen"),
        _ => "agrees with the last time seen".to_owned(),
    }
}

fn show_database(status: &mongo::Status) -> Result<(), Failure> {
    let mut table = output::table(["MongoDB database", &status.database]);
    table.add_row(["topology", &status.topology]);
    table.add_row(["server version", &status.server_versions.join(", ")]);
    let absent = if status.silent_shards.is_empty() { "none" } else { "unknown" };
    let or_none = |version: Option<String>| version.unwrap_or_else(|| absent.to_owned());
    let schema = status.schema_version.map(|version| version.to_string());
    table.add_row(["schema version", &or_none(schema)]);
    let rules = status.rules_version.map(|version| version.to_string());
    table.add_row(["rules version", &or_none(rules)]);
    for ahead in &status.clocks_ahead {
        let direction = if *ahead < 0 { "behind" } else { "ahead of" };
        let hours = ahead.unsigned_abs() as f64 / 3_600.0;
        let text = format!("a server's is {hours:.1} h {direction} the database's: it is in doubt");
        table.add_row(["clock", &text]);
    }

    for shard in &status.silent_shards {
        table.add_row(["does not answer", &format!("shard {shard}")]);
    }
    for missing in &status.missing {
        table.add_row(["missing", missing]);
    }
    if let Some(obstacle) = &status.obstacle {
        table.add_row(["in the way", obstacle]);
    }

    output::print_table(&table)?;
    if !status.collections.is_empty() {
        output::print_table(&collections(&status.collections))?;
    }

    match (&status.obstacle, status.missing.is_empty()) {
        (Some(_), _) => output::print("this program cannot use it: name another database\n"),
        (None, false) => output::print("`polynym store init` creates the missing parts\n"),
        (None, true) if !status.silent_shards.is_empty() => output::print(
            "the shards above do not answer: their users and identities are unavailable, and the \
             rest of the state is unknown\n",
        ),
        (None, true) => status.advice.iter().try_for_each(show_advice),
    }
}

fn show_advice(advice: &Advice) -> Result<(), Failure> {
    output::print(&format!("{}\n", advice.text))?;
    advice.command.iter().try_for_each(|command| output::print(&format!("    {command}\n")))
}

fn collections(collections: &[CollectionStatus]) -> output::Table {
    let mut table = output::table([
        "collection",
        "sharded on",
        "shard",
        "chunks",
        "documents",
        "documents' size",
        "indexes' size",
    ]);
    for collection in collections {
        for shard in &collection.shards {
            let indexes = shard
                .index_bytes
                .iter()
                .map(|(name, bytes)| format!("{name} {}", count::bytes(*bytes)));
            table.add_row([
                collection.name.clone(),
                collection.shard_key.clone().unwrap_or_default(),
                shard.shard.clone(),
                shard.chunks.map(|chunks| chunks.to_string()).unwrap_or_default(),
                shard.documents.to_string(),
                count::bytes(shard.storage_bytes),
                indexes.collect::<Vec<_>>().join(", "),
            ]);
        }
    }

    table
}
