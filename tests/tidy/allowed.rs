//! The limits of the source tree, and today's exceptions from them. An exception that is no longer
//! needed fails its test: delete it.

/// The maximum lines of a file without its tests.
pub const FILE_LINES: usize = 400;
/// The maximum characters of a line; URLs and tables are exempt.
pub const LINE_CHARS: usize = 100;
/// The maximum files side by side in one folder of `src` and `crates`.
pub const FOLDER_FILES: usize = 20;
/// The maximum files of one folder that import each other in a circle.
pub const FILE_CIRCLE: usize = 2;

/// Folders with more than [`FOLDER_FILES`] files.
pub const LARGE_FOLDERS: &[&str] = &[
    "src/cli",
    "src/directory",
    "src/directory/service",
    "src/grpc",
    "src/store/embedded",
    "src/store/mongo",
    "src/transport",
];

/// Circles of folders.
pub const FOLDER_CIRCLES: &[&[&str]] = &[
    &[
        "src",
        "src/access",
        "src/cli",
        "src/cli/attributes",
        "src/cli/bench",
        "src/cli/inbox",
        "src/cli/tenant",
        "src/cli/token",
        "src/cli/top",
        "src/cli/transfer",
        "src/cli/user",
        "src/directory",
        "src/directory/model",
        "src/directory/mutation",
        "src/directory/search",
        "src/sample",
        "src/wire",
    ],
    &["src/directory/service", "src/directory/service/importing"],
    &["src/store/embedded", "src/store/embedded/write"],
];

/// Folders with a circle of more than [`FILE_CIRCLE`] files.
pub const FOLDERS_WITH_FILE_CIRCLES: &[&str] = &[
    "src/cli/user",
    "src/commands/store",
    "src/directory/search",
    "src/store/embedded",
    "src/store/integrity",
    "src/store/lookup_cache",
    "src/store/mongo",
];

/// What texts name in backticks and the project does not define, with its origin.
pub const FOREIGN: &[(&str, &[&str])] = &[
    (
        "MongoDB: commands, options, errors",
        &[
            "afterClusterTime",
            "allowPartialResults",
            "CannotCreateIndex",
            "coordinateCommitReturnImmediatelyAfterPersistingDecision",
            "killAllSessionsByPattern",
            "killAnySession",
            "readConcernLevel",
            "updateLookup",
        ],
    ),
    (
        "MongoDB: roles that docs/mongodb.md defines",
        &["polynymInitCluster", "polynymStatusCluster"],
    ),
    ("the system: constants of Linux", &["PROC_PID_INIT_INO", "proc_ns.h", "RWF_NOWAIT"]),
    ("tower", &["catch_panic", "concurrency_limit", "load_shed"]),
    ("clippy", &["incompatible_msrv"]),
    ("libphonenumber", &["isValidNumber"]),
    (
        "gRPC and HTTP",
        &["application/grpc", "grpc.health.v1.Health/Check", "http/1.1", "NOT_SERVING"],
    ),
    ("the output of a build", &["target/"]),
    (
        "examples of forms and values",
        &[
            ".proto",
            "attributesHex.x6c6f67696e436f756e74",
            "attributes_hex.x706c616e",
            "github/583231",
            "NNNN-title.md",
            "package.Service/Method",
            "provider/subject",
            "YYYYMMDDHHMM",
        ],
    ),
];
