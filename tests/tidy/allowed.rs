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

/// Foreign names in backticks, which the project does not define, by origin.
pub const FOREIGN: &[(&str, &[&str])] = &[
    (
        "MongoDB: commands, options, errors",
        &[
            "afterClusterTime",
            "allowPartialResults",
            "coordinateCommitReturnImmediatelyAfterPersistingDecision",
            "db.changeUserPassword",
            "defaultMaxTimeMS",
            "fsyncLock",
            "killAllSessionsByPattern",
            "killAnySession",
            "readConcernLevel",
            "updateLookup",
            "writePeriodicNoops",
        ],
    ),
    (
        "other user directories: their fields, columns and classes",
        &[
            "alternateEmailAddress",
            "createTimestamp",
            "createdDateTime",
            "entryUUID",
            "inetOrgPerson",
            "lastUpdated",
            "posixAccount",
            "primaryPhone",
            "sAMAccountName",
            "secondEmail",
            "telephoneNumber",
            "whenCreated",
        ],
    ),
    (
        "OpenTelemetry: its variables",
        &[
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
            "OTEL_EXPORTER_OTLP_COMPRESSION",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
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
        &[
            "application/grpc",
            "application/json",
            "application/proto",
            "application/grpc-web",
            "application/grpc-web-text",
            "application/x-ndjson",
            "ETag",
            "grpc.health.v1.Health/Check",
            "http/1.1",
        ],
    ),
    ("deployment: files of operators", &["callers.toml", "store.toml", "store-init.toml"]),
    ("systemd and releases", &["DynamicUser", "SHA256SUMS", "SOURCE_DATE_EPOCH"]),
    ("the output of a build", &["target/", "target/debug/client-testbed"]),
    (
        "examples of forms and values",
        &[
            ".json",
            ".proto",
            ".yaml",
            "attributesHex.x6c6f67696e436f756e74",
            "attributes_hex.x706c616e",
            "github/583231",
            "linkedin.com/in/joe",
            "NNNN-title.md",
            "package.Service/Method",
            "polynym-VERSION-x86_64-linux.cdx.json",
            "provider/subject",
            "tenants.yaml",
            "YYYYMMDDHHMM",
        ],
    ),
];
