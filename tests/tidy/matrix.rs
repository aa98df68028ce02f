//! The matrix in docs/matrix/ of what must follow each change: everything that changes a user, a
//! tenant or an inbox has a row, and each cell names the tests that show it, or says why none does.

use std::collections::{BTreeMap, BTreeSet};

use polynym_proto::DESCRIPTORS;
use prost_reflect::{DescriptorPool, MethodDescriptor};
use prost_types::method_options::IdempotencyLevel;
use toml::{Table, Value};

use crate::{files, read};

const FOLDER: &str = "docs/matrix";
/// The columns, with their meanings.
const COLUMNS: &str = "docs/matrix/columns.toml";
/// Names for tests that stand in many cells.
const GROUPS: &str = "docs/matrix/groups.toml";
/// The rows of background work and of commands on a store, which no definition lists.
const JOBS: &str = "docs/matrix/jobs.toml";
/// Cells that all rows of a file have unless they have their own.
const DEFAULT: &str = "default";

/// Tests over a list of changes, by a part of their paths: the files with the list must have the
/// name of the row that such a test stands in.
const LISTS: [(&str, &[&str]); 2] = [
    (
        "::changes::",
        &[
            "crates/testkit/src/scenarios/changes/table.rs",
            "crates/testkit/src/scenarios/changes/mod.rs",
        ],
    ),
    ("::repeated_requests::", &["tests/grpc/repeated_requests.rs"]),
];

/// Fields of requests, and the columns that are about them.
const FIELDS: [(&str, &str); 3] =
    [("validate_only", "dry_run"), ("request_id", "request_id"), ("etag", "etag")];

/// The files of rows, each with its tables by name.
type Rows = BTreeMap<String, BTreeMap<String, Table>>;

/// Returns the faults of the matrix.
pub fn faults() -> Vec<String> {
    let columns = table(COLUMNS);
    let files = files(FOLDER).into_iter().filter(|path| path.ends_with(".toml"));
    let rows: Rows = files
        .filter(|path| path != COLUMNS && path != GROUPS)
        .map(|path| {
            let rows = table(&path).into_iter().map(|(name, row)| match row {
                Value::Table(row) => (name, row),
                other => panic!("{path}: {name} is no table: {other}"),
            });
            let rows = rows.collect();
            (path, rows)
        })
        .collect();
    let mut faults = missing_rows(&rows);
    faults.extend(group_faults(&rows));
    faults.extend(field_faults(&rows));
    for (path, rows) in &rows {
        let defaults = rows.get(DEFAULT).cloned().unwrap_or_default();
        for (name, row) in rows {
            faults.extend(
                row_faults(&columns, name, row, &defaults)
                    .map(|fault| format!("{path}: [{name}] {fault}")),
            );
        }
    }
    faults
}

fn table(path: &str) -> Table {
    read(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The faults of a row: columns that do not exist, and cells that are missing, empty or wrong.
fn row_faults<'a>(
    columns: &'a Table,
    name: &'a str,
    row: &'a Table,
    defaults: &'a Table,
) -> impl Iterator<Item = String> + 'a {
    let unknown = row.keys().filter(|key| !columns.contains_key(*key));
    let unknown = unknown.map(|key| format!("{key}: no such column"));
    let cells = columns.keys().filter_map(move |column| {
        let cell = row.get(column).or_else(|| defaults.get(column));
        let fault = match cell {
            None if name == DEFAULT => return None,
            None => "no cell".to_owned(),
            Some(cell) => cell_fault(name, cell)?,
        };
        Some(format!("{column}: {fault}"))
    });
    unknown.chain(cells)
}

fn cell_fault(row: &str, cell: &Value) -> Option<String> {
    match cell {
        Value::String(why) => {
            let is_reason = why.chars().count() >= 10 && !why.starts_with("no test");
            (!is_reason).then(|| format!("{why:?} is no reason"))
        }
        Value::Array(tests) if !tests.is_empty() => tests.iter().find_map(|test| match test {
            Value::String(test) => test_fault(row, test),
            other => Some(format!("{other} is no test")),
        }),
        other => Some(format!("{other} is neither tests nor a reason")),
    }
}

/// The tests of groups that do not exist, and groups that stand in no cell.
fn group_faults(rows: &Rows) -> Vec<String> {
    let cells = rows.values().flat_map(BTreeMap::values).flat_map(Table::values);
    let used: BTreeSet<_> =
        cells.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
    let faults = table(GROUPS).into_iter().flat_map(|(name, tests)| {
        let unused = (!used.contains(&*name)).then(|| "it is in no cell".to_owned());
        let faults = cell_fault(DEFAULT, &tests).into_iter().chain(unused);
        faults.map(|fault| format!("{GROUPS}: {name}: {fault}")).collect::<Vec<_>>()
    });
    faults.collect()
}

/// The fault of a test, or of the tests of a group.
fn test_fault(row: &str, name: &str) -> Option<String> {
    if name.contains("::") {
        return path_fault(row, name);
    }
    match table(GROUPS).get(name).and_then(Value::as_array) {
        Some(tests) => tests.iter().find_map(|test| path_fault(row, test.as_str()?)),
        None => Some(format!("no group {name}")),
    }
}

/// The fault of the path of a test, such as `grpc::bulk::a_stopped_bulk_change_resumes`.
fn path_fault(row: &str, test: &str) -> Option<String> {
    let list = LISTS.iter().find(|(part, _)| row != DEFAULT && test.contains(part));
    let lists_it = |path: &&str| read(path).contains(&format!("\"{row}\""));
    if let Some((_, paths)) = list
        && !paths.iter().any(lists_it)
    {
        return Some(format!("{test}: {paths:?} do not list {row}"));
    }
    let is_there = sources(test).iter().any(|(path, name)| is_test(path, name));
    (!is_there).then(|| format!("no test {test}"))
}

/// The files that may have a test, and its name.
fn sources(test: &str) -> Vec<(String, String)> {
    let parts: Vec<_> = test.split("::").collect();
    let [program, modules @ .., name] = &parts[..] else { return Vec::new() };
    let roots = [format!("tests/{program}"), format!("crates/{program}/src")];
    // Tests stand in a module of their file, or in a file of their own.
    let ways = [Some(modules), modules.strip_suffix(&["tests"])];
    let paths = roots.iter().flat_map(|root| {
        ways.into_iter().flatten().flat_map(move |modules| {
            let module = [&[root.as_str()], modules].concat().join("/");
            match modules.is_empty() {
                true => [format!("{root}/main.rs"), format!("{root}/lib.rs")],
                false => [format!("{module}.rs"), format!("{module}/mod.rs")],
            }
        })
    });
    paths.map(|path| (path, (*name).to_owned())).collect()
}

/// Whether a file has a test of this name that is run without being asked for, or a case of the
/// conformance suite.
fn is_test(path: &str, name: &str) -> bool {
    if !crate::root().join(path).is_file() {
        return false;
    }
    let text = read(path);
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
    let is_run = attributes.contains("test]") || attributes.contains("::test(");
    let is_case = path.starts_with("crates/conformance/") && attributes.ends_with("pub async ");
    (is_run && !attributes.contains("#[ignore")) || is_case
}

/// Methods whose requests have a field of a column, and whose cell has a reason in place of tests.
fn field_faults(rows: &Rows) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, rows) in rows {
        let defaults = rows.get(DEFAULT);
        for method in methods().iter().filter(|method| rows.contains_key(method.name())) {
            for (field, column) in FIELDS {
                let own = rows[method.name()].get(column);
                let cell = own.or_else(|| defaults?.get(column));
                let has_field = method.input().get_field_by_name(field).is_some();
                if has_field && cell.is_some_and(Value::is_str) {
                    faults.push(format!("{path}: [{}] {column}: it has {field}", method.name()));
                }
            }
        }
    }
    faults
}

/// Everything that must have a row and has none, or has two, and rows of nothing.
fn missing_rows(rows: &Rows) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut faults = Vec::new();
    for (path, rows) in rows.iter().filter(|(path, _)| *path != JOBS) {
        for name in rows.keys().filter(|name| *name != DEFAULT) {
            if !found.insert(name.clone()) {
                faults.push(format!("{path}: [{name}] is there twice"));
            }
        }
    }
    let defined = changes();
    faults.extend(defined.difference(&found).map(|name| format!("{FOLDER}: no row [{name}]")));
    faults.extend(found.difference(&defined).map(|name| format!("{FOLDER}: no change {name}")));
    faults
}

/// The methods of the API that are no reads.
fn methods() -> Vec<MethodDescriptor> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let is_change = |method: &MethodDescriptor| {
        let options = method.method_descriptor_proto().options.clone().unwrap_or_default();
        options.idempotency_level() != IdempotencyLevel::NoSideEffects
    };
    methods.filter(is_change).collect()
}

/// The changes of the API: methods that are no reads, actions of bulk changes, and what an import
/// does with lines about users who exist and with identities that cannot be linked.
fn changes() -> BTreeSet<String> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let methods = methods().into_iter().map(|method| method.name().to_owned());
    let action = pool.get_message_by_name("polynym.v1.BulkAction").unwrap();
    let actions: Vec<_> = action.fields().map(|field| format!("bulk {}", field.name())).collect();
    let values = ["OnExisting", "OnConflict"].into_iter().flat_map(|name| {
        let one = pool.get_enum_by_name(&format!("polynym.v1.{name}")).unwrap();
        one.values()
            .filter(|value| value.number() != 0)
            .map(|value| value.name().to_owned())
            .collect::<Vec<_>>()
    });
    methods.chain(actions).chain(values).collect()
}

#[test]
fn faults_of_the_matrix_are_found() {
    let own = "tidy::matrix::faults_of_the_matrix_are_found";
    for (cell, is_good) in [
        (format!("[{own:?}]"), true),
        ("\"an inbox has no history\"".to_owned(), true),
        ("\"\"".to_owned(), false),
        ("\"no test yet: it is due\"".to_owned(), false),
        ("[]".to_owned(), false),
        ("[\"tidy::matrix::nothing\"]".to_owned(), false),
        ("[\"tidy::matrix::faults\"]".to_owned(), false),
        (
            "[\"grpc::bulk::long_a_bulk_change_of_many_users_is_stopped_and_resumed\"]".to_owned(),
            false,
        ),
        ("[\"grpc::repeated_requests::a_repeated_mutation_takes_effect_once\"]".to_owned(), false),
    ] {
        let table: Table = format!("cell = {cell}").parse().unwrap();
        assert_eq!(cell_fault("Nothing", &table["cell"]).is_none(), is_good, "{cell}");
    }
    let columns: Table = "one = \"a\"\ntwo = \"b\"".parse().unwrap();
    let row: Table = "two = \"not for this one\"\nthree = \"never mind it\"".parse().unwrap();
    let faults: Vec<_> = row_faults(&columns, "Nothing", &row, &Table::new()).collect();
    assert_eq!(faults, ["three: no such column", "one: no cell"]);
    assert!(changes().contains("MergeUsers") && !changes().contains("GetUser"));
    assert!(!missing_rows(&Rows::new()).is_empty());
}
