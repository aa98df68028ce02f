//! The shards that each method of the API reaches on a cluster of eight, by the profilers of all
//! shards. The table in docs/mongodb.md must be equal.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::TryStreamExt;
use locality_uuid::split_points;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use polynym_proto::v1;
use tokio::task::spawn_blocking;

use crate::calls::{Client, email, handle, merging, text, user};
use crate::server::Server;
use crate::servers::{Databases, InDatabase, Layout, Sharded};
use crate::support::scenarios::bulk::{disable, get as bulk_change, until_ended};

/// The number of shards: more than the documents that a call of this test names.
const SHARDS: usize = 8;
/// The bytes of each profile.
const PROFILE_BYTES: i32 = 16 << 20;
/// Methods that are not in the table: one needs no store, one is for the embedded store, and the
/// others need a change stream, which the tests' router lacks.
const OTHERS: [&str; 10] = [
    "NormalizeIdentity",
    "BackupStore",
    "Watch",
    "CreateDelivery",
    "UpdateDelivery",
    "ListDeliveries",
    "DeleteDelivery",
    "ListDeliveryAttempts",
    "ReplayDelivery",
    "TestDelivery",
];
/// Methods about tenants themselves. All others may reread a tenant, or the names of its
/// attributes, that they have not read for five seconds.
const OF_TENANTS: [&str; 4] = ["GetTenant", "UpdateTenant", "DeleteTenant", "ListTenants"];

/// Methods about bulk changes, which a server may run meanwhile.
const OF_BULK_CHANGES: [&str; 5] =
    ["StartBulkChange", "GetBulkChange", "ListBulkChanges", "StopBulkChange", "ResumeBulkChange"];

/// A cluster whose statements are counted.
struct Counted {
    cluster: &'static Sharded,
    factory: InDatabase,
    /// The profiled statements of each shard that belong to earlier calls.
    seen: Vec<u64>,
    rows: Vec<String>,
}

impl Counted {
    async fn new() -> Self {
        let layout = Layout { cache: 0.25, ..Layout::default() };
        let cluster: &Sharded = Box::leak(Box::new(Sharded::start(SHARDS, layout).await));
        let factory = Databases::of_cluster(cluster).factory();
        let name = factory.name().await;
        let point = |id: &locality_uuid::LocalityId| {
            let bytes = id.as_bytes().to_vec();
            Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
        };
        let points: Vec<_> = split_points(SHARDS).iter().map(point).collect();
        cluster.spread(&format!("{name}.usage"), &points).await;
        for shard in &cluster.shards {
            let database = shard.members[0].database(name).await;
            let profile =
                doc! { "create": "system.profile", "capped": true, "size": PROFILE_BYTES };
            database.run_command(profile).await.unwrap();
            database.run_command(doc! { "profile": 2 }).await.unwrap();
        }
        Self { cluster, factory, seen: vec![0; SHARDS], rows: Vec::new() }
    }

    /// Adds the row of a call.
    async fn count<T>(&mut self, method: &str, call: impl Future<Output = T>) -> T {
        self.statements(method).await;
        let before = self.transactions().await;
        let outcome = call.await;
        let after = self.transactions().await;
        let taking_part = after.iter().zip(&before).filter(|(after, before)| after > before);
        let taking_part = extent(taking_part.count()).unwrap_or("none");
        let [reads, writes] = self.statements(method).await.map(|by_collection| {
            let part = |(collection, shards): (String, BTreeSet<usize>)| {
                let extent = extent(shards.len()).expect("a statement is on a shard");
                if extent == "all" { format!("{collection} on all") } else { collection }
            };
            by_collection.into_iter().map(part).collect::<Vec<_>>().join(", ")
        });
        let row = format!("| `{method}` | {reads} | {writes} | {taking_part} |");
        self.rows.push(row.replace("|  |", "| |").replace("|  |", "| |"));
        outcome
    }

    /// The new statements: the shards of each collection that is read, and that is written.
    async fn statements(&mut self, method: &str) -> [BTreeMap<String, BTreeSet<usize>>; 2] {
        let mut found = [BTreeMap::new(), BTreeMap::new()];
        for (n, shard) in self.cluster.shards.iter().enumerate() {
            let database = shard.members[0].database(self.factory.name().await).await;
            let profile = database.collection::<Document>("system.profile");
            let natural = doc! { "$natural": 1 };
            let new = profile.find(doc! {}).sort(natural).skip(self.seen[n]).await.unwrap();
            let new: Vec<Document> = new.try_collect().await.unwrap();
            self.seen[n] += new.len() as u64;
            for (is_write, collection) in new.iter().filter_map(|done| statement(method, done)) {
                let shards: &mut BTreeSet<_> =
                    found[usize::from(is_write)].entry(collection).or_default();
                shards.insert(n);
            }
        }
        found
    }

    /// The transactions that each shard has begun so far.
    async fn transactions(&self) -> Vec<i64> {
        let mut begun = Vec::new();
        for shard in &self.cluster.shards {
            let status = shard.members[0].admin(doc! { "serverStatus": 1 }).await.unwrap();
            let transactions = status.get_document("transactions").unwrap();
            begun.push(transactions.get_i64("totalStarted").unwrap());
        }
        begun
    }
}

/// Whether a statement or a transaction is on some shards or on all.
fn extent(shards: usize) -> Option<&'static str> {
    match shards {
        0 => None,
        SHARDS => Some("all"),
        _ => Some("some"),
    }
}

/// Whether a profiled statement of a call is a write, and its collection.
fn statement(method: &str, done: &Document) -> Option<(bool, String)> {
    let (_, collection) = done.get_str("ns").unwrap().split_once('.').unwrap();
    let operation = done.get_str("op").unwrap();
    let is_write = matches!(operation, "insert" | "update" | "remove");
    let command = done.get_document("command").cloned().unwrap_or_default();
    // The searches for expired users and for holds that have ended.
    let hints = |key| command.get_document("hint").is_ok_and(|hint| hint.contains_key(key));
    let is_expiry = hints("d") || hints("h") && method != "ExportUsers";
    let is_of_call = match collection {
        _ if is_probe(&command) => false,
        "bulk" => OF_BULK_CHANGES.contains(&method),
        _ if OF_BULK_CHANGES.contains(&method) => false,
        "system.profile" | "servers" | "meta" => false,
        "usage" => method == "GetUsage" && !is_write,
        "tenants" => is_write || OF_TENANTS.contains(&method),
        "names" => is_write || method == "ListAttributeNames",
        "notices" => !is_clean_up(&command),
        _ => !is_expiry && !command.contains_key("profile"),
    };
    is_of_call.then(|| (is_write, collection.to_owned()))
}

/// Whether a find is for the clean-up of an inbox: after a purge, and after one delivery in many.
pub fn is_clean_up(command: &Document) -> bool {
    command.get_str("comment").is_ok_and(|comment| comment == "clean-up")
}

/// Whether a find is a health probe, whose keys are made up.
fn is_probe(command: &Document) -> bool {
    let Some(id) = command.get_document("filter").ok().and_then(|filter| filter.get("_id")) else {
        return false;
    };
    let keys = id.as_document().and_then(|ids| ids.get_array("$in").ok());
    match keys.map_or(Some(id), |keys| keys.first()) {
        Some(Bson::String(key)) => key.starts_with("probe "),
        Some(Bson::Binary(id)) => id.bytes[1..].iter().all(|byte| *byte == 0),
        _ => false,
    }
}

/// The table of the document.
fn table() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mongodb.md");
    let page = std::fs::read_to_string(path).unwrap();
    let part = page.split("\n## The shards of a call\n").nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    part.lines().filter(|line| line.starts_with('|')).skip(2).map(str::to_owned).collect()
}

/// The methods of the API.
fn methods() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/polynym/v1");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let name = |line: &str| {
        Some(line.trim_start().strip_prefix("rpc ")?.split('(').next().unwrap().to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_method_reaches_the_shards_of_the_table() {
    let mut counted = Counted::new().await;
    let uri = counted.factory.uri().await;
    let server = spawn_blocking(move || Server::start(&["--store", &uri])).await.unwrap();
    let mut client = Client::connect(&server.url).await;
    let ids = prepare(&mut client).await;
    look_ups(&mut counted, &mut client, &ids).await;
    mutations(&mut counted, &mut client, &ids).await;
    bulk_changes(&mut counted, &mut client).await;
    inboxes(&mut counted, &mut client, &ids).await;
    tenants(&mut counted, &mut client, &ids).await;
    streams(&mut counted, &mut client).await;
    // The last: a background job erases the tenant some time after.
    let request = v1::DeleteTenantRequest { tenant: "acme".to_owned(), ..Default::default() };
    counted.count("DeleteTenant", client.admin.delete_tenant(request)).await.unwrap();
    let rows = counted.rows.join("\n");
    assert_eq!(counted.rows, table(), "the counted rows:\n{rows}");

    let name = |row: &String| row.split('`').nth(1).unwrap().to_owned();
    let rows: BTreeSet<_> = counted.rows.iter().map(name).collect();
    let others = OTHERS.map(str::to_owned).into();
    assert_eq!(&rows | &others, methods(), "each method has a row");
}

/// Creates users, and returns their ids. The server knows the names of their attributes then.
async fn prepare(client: &mut Client) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..24 {
        let mut new = user(&format!("User {n}"), vec![email(&format!("user{n}@example.com"))]);
        new.attributes = [("team".to_owned(), text("blue"))].into();
        ids.push(client.create(new).await.unwrap().user_id);
    }
    client.hold_nothing().await;
    client.resolve(email("user0@example.com")).await.unwrap();
    ids
}

async fn look_ups(counted: &mut Counted, client: &mut Client, ids: &[String]) {
    let address = |n: usize| Some(email(&format!("user{n}@example.com")));
    counted.count("ResolveIdentity", client.resolve(address(1).unwrap())).await.unwrap();
    let request = v1::BatchResolveIdentitiesRequest {
        identifiers: [1, 2].into_iter().filter_map(address).collect(),
        ..Default::default()
    };
    let call = client.directory.batch_resolve_identities(request);
    counted.count("BatchResolveIdentities", call).await.unwrap();
    counted.count("GetUser", client.get(&ids[1])).await.unwrap();
    let user_ids = ids[1..3].to_vec();
    let request = v1::BatchGetUsersRequest { user_ids, ..Default::default() };
    counted.count("BatchGetUsers", client.directory.batch_get_users(request)).await.unwrap();
    let request =
        v1::CheckIdentityRequest { identifier: Some(handle("nobody")), ..Default::default() };
    counted.count("CheckIdentity", client.directory.check_identity(request)).await.unwrap();
    let filter = "attributes.team = \"blue\"".to_owned();
    let request = v1::SearchUsersRequest { filter, ..Default::default() };
    counted.count("SearchUsers", client.directory.search_users(request)).await.unwrap();
    let request = v1::FindUsersRequest { text: "user1".to_owned(), ..Default::default() };
    counted.count("FindUsers", client.directory.find_users(request)).await.unwrap();
    let of = Some(v1::list_history_request::User::UserId(ids[1].clone()));
    let request = v1::ListHistoryRequest { user: of, ..Default::default() };
    counted.count("ListHistory", client.directory.list_history(request)).await.unwrap();
    let request = v1::ListOwnersRequest { identifier: address(1), ..Default::default() };
    counted.count("ListOwners", client.directory.list_owners(request)).await.unwrap();
    let request = v1::ListEventsRequest::default();
    counted.count("ListEvents", client.directory.list_events(request)).await.unwrap();
}

async fn mutations(counted: &mut Counted, client: &mut Client, ids: &[String]) {
    let one = ids[3].as_str();
    let (old, new) = (handle("first"), handle("second"));
    let created = user("New", vec![email("new@example.com")]);
    counted.count("CreateUser", client.create(created)).await.unwrap();
    let changed =
        v1::User { user_id: one.to_owned(), display_name: "Ada".to_owned(), ..Default::default() };
    counted.count("UpdateUser", client.update(changed, &["display_name"])).await.unwrap();
    counted.count("LinkIdentity", client.link(one, old.clone())).await.unwrap();
    counted.count("ReplaceIdentity", client.replace(one, old, new.clone())).await.unwrap();
    let verify = client.verify(one, new.clone(), true, "mail");
    counted.count("VerifyIdentity", verify).await.unwrap();
    let moved = client.move_identity((one, &ids[4]), new.clone());
    counted.count("MoveIdentity", moved).await.unwrap();
    counted.count("UnlinkIdentity", client.unlink(&ids[4], new)).await.unwrap();
    let one = ids[10].as_str();
    counted.count("DisableUser", client.disable(one)).await.unwrap();
    counted.count("EnableUser", client.enable(one)).await.unwrap();
    counted.count("DeleteUser", client.delete(one)).await.unwrap();
    counted.count("UndeleteUser", client.undelete(one)).await.unwrap();
    let merge = client.registry.merge_users(merging(&ids[5], &ids[6]));
    counted.count("MergeUsers", merge).await.unwrap();
    counted.count("UnmergeUsers", client.unmerge(&ids[5], &ids[6])).await.unwrap();
    // Its former identifier is among the ended ownerships.
    client.link(&ids[7], handle("former")).await.unwrap();
    client.unlink(&ids[7], handle("former")).await.unwrap();
    counted.count("PurgeUser", client.purge(&ids[7])).await.unwrap();
}

async fn inboxes(counted: &mut Counted, client: &mut Client, ids: &[String]) {
    let one = ids[8].clone();
    let recipient =
        v1::Recipient { recipient: Some(v1::recipient::Recipient::UserId(one.clone())) };
    let (subject, body) = ("Hello".to_owned(), "Hello!".to_owned());
    let notice = v1::NoticeContent { subject, body, ..Default::default() };
    let request = v1::SendNoticeRequest {
        recipients: vec![recipient],
        notice: Some(notice),
        ..Default::default()
    };
    let sent = counted.count("SendNotice", client.inbox.send_notice(request)).await.unwrap();
    let notice_id = sent.into_inner().notice_id;
    let request = v1::ListNoticesRequest { user_id: one.clone(), ..Default::default() };
    counted.count("ListNotices", client.inbox.list_notices(request)).await.unwrap();
    let request = v1::CountUnreadRequest { user_id: one.clone(), ..Default::default() };
    counted.count("CountUnread", client.inbox.count_unread(request)).await.unwrap();
    let notice_ids = vec![notice_id.clone()];
    let request = v1::MarkReadRequest { user_id: one.clone(), notice_ids, ..Default::default() };
    counted.count("MarkRead", client.inbox.mark_read(request)).await.unwrap();
    let request = v1::DeleteNoticeRequest { user_id: one, notice_id, ..Default::default() };
    counted.count("DeleteNotice", client.inbox.delete_notice(request)).await.unwrap();
}

/// Nobody matches: the bulk change ends at once.
async fn bulk_changes(counted: &mut Counted, client: &mut Client) {
    const ID: &str = "bulk-1";
    let request = v1::StartBulkChangeRequest {
        bulk_id: ID.to_owned(),
        filter: "display_name = \"nobody\"".to_owned(),
        action: disable(),
        ..Default::default()
    };
    let started = client.registry.start_bulk_change(request);
    counted.count("StartBulkChange", started).await.unwrap();
    until_ended(client, ID).await;
    counted.count("GetBulkChange", bulk_change(client, ID)).await;
    let list = client.registry.list_bulk_changes(v1::ListBulkChangesRequest::default());
    counted.count("ListBulkChanges", list).await.unwrap();
    let request = v1::StopBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    counted.count("StopBulkChange", client.registry.stop_bulk_change(request)).await.unwrap();
    let request = v1::ResumeBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    counted.count("ResumeBulkChange", client.registry.resume_bulk_change(request)).await.unwrap();
}

async fn tenants(counted: &mut Counted, client: &mut Client, ids: &[String]) {
    let seconds = prost_types::Duration { seconds: 1_000_000, nanos: 0 };
    let holds = Some(v1::Holds { handle: Some(seconds), ..Default::default() });
    client.govern(v1::Policies { holds, ..Default::default() }).await.unwrap();
    client.link(&ids[9], handle("held")).await.unwrap();
    client.unlink(&ids[9], handle("held")).await.unwrap();
    client.purge(&ids[9]).await.unwrap();
    counted.count("ReleaseHold", client.release(handle("held"))).await.unwrap();
    let request = v1::GetTenantRequest::default();
    counted.count("GetTenant", client.admin.get_tenant(request)).await.unwrap();
    let update = v1::Policies { keep_last_identity: true, ..Default::default() };
    let request = v1::UpdateTenantRequest {
        tenant: "acme".to_owned(),
        policies: Some(update),
        ..Default::default()
    };
    counted.count("UpdateTenant", client.admin.update_tenant(request)).await.unwrap();
    let request = v1::ListTenantsRequest::default();
    counted.count("ListTenants", client.admin.list_tenants(request)).await.unwrap();
    let request = v1::ListTenantHistoryRequest::default();
    let call = client.admin.list_tenant_history(request);
    counted.count("ListTenantHistory", call).await.unwrap();
    let request = v1::GetUsageRequest::default();
    counted.count("GetUsage", client.admin.get_usage(request)).await.unwrap();
    let request = v1::ListAttributeNamesRequest::default();
    let call = client.admin.list_attribute_names(request);
    counted.count("ListAttributeNames", call).await.unwrap();
}

async fn streams(counted: &mut Counted, client: &mut Client) {
    let options = v1::import_users_request::Options::default();
    let lines = [
        v1::ImportUsersRequest { options: Some(options), ..Default::default() },
        v1::ImportUsersRequest {
            line: 1,
            user: Some(user("Imported", vec![email("imported@example.com")])),
            ..Default::default()
        },
    ];
    let import = async {
        let answer = client.admin.import_users(futures_util::stream::iter(lines)).await.unwrap();
        answer.into_inner().try_collect::<Vec<_>>().await.unwrap()
    };
    counted.count("ImportUsers", import).await;
    let export = async {
        let request = v1::ExportUsersRequest::default();
        let answer = client.admin.export_users(request).await.unwrap();
        answer.into_inner().try_collect::<Vec<_>>().await.unwrap()
    };
    counted.count("ExportUsers", export).await;
    let duplicates = async {
        let request = v1::FindDuplicatesRequest::default();
        let answer = client.admin.find_duplicates(request).await.unwrap();
        answer.into_inner().try_collect::<Vec<_>>().await.unwrap()
    };
    counted.count("FindDuplicates", duplicates).await;
    let undo = async {
        // An id with a time after which there is no event: no user is read in a transaction.
        let operation_id = "import-7fffffff-ffff-7000-8000-000000000000".to_owned();
        let request = v1::UndoOperationRequest { operation_id, ..Default::default() };
        let answer = client.admin.undo_operation(request).await.unwrap();
        answer.into_inner().try_collect::<Vec<_>>().await.unwrap()
    };
    counted.count("UndoOperation", undo).await;
    let renormalize = async {
        let request = v1::RenormalizeRequest { validate_only: true, ..Default::default() };
        let answer = client.admin.renormalize(request).await.unwrap();
        answer.into_inner().try_collect::<Vec<_>>().await.unwrap()
    };
    counted.count("Renormalize", renormalize).await;
}
