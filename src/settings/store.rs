//! The location of the store, for `serve` and `store …`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mongodb::error::ErrorKind;
use mongodb::options::ConnectionString;
use polynym_cli::config::{Output, Values, parse, settings};

/// The location of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// The embedded store in a folder.
    Embedded(PathBuf),
    /// The embedded store in a folder that is removed at exit.
    Temporary,
    /// A database of MongoDB.
    Mongo(MongoUri),
}

/// The URI of a database of MongoDB. `Display` omits credentials and options.
#[derive(Clone, PartialEq, Eq)]
pub struct MongoUri(String);

settings! {
    /// The location of the store.
    pub struct StoreSettings {
        /// Location of the store: embedded:FOLDER or mongodb://HOST/DATABASE.
        pub store: StoreChoice = ("STORE", "embedded:./polynym-data", choice),
        /// File with the URI of a MongoDB store, instead of --store; a server reads it again when
        /// it changes.
        pub mongodb_uri_file: Option<PathBuf> = ("FILE", "", parse::path),
    }
    check = read_uri;
}

settings! {
    /// The settings of `polynym store status` and `polynym store verify`.
    pub struct StoreReport {
        /// The location.
        pub location: StoreSettings,
        /// The output.
        pub output: Output,
    }
}

const EXAMPLE: &str = "mongodb://HOST/DATABASE";
const FORMS: &str =
    "write embedded:FOLDER, as in embedded:./polynym-data, or mongodb://HOST[:PORT][,…]/DATABASE";

/// The maximum bytes of a file with a URI.
const MAX_URI_BYTES: u64 = 64 << 10;

/// Reads the URI from its file.
fn read_uri(settings: &mut StoreSettings, values: &mut Values<'_>) {
    let setting = StoreSettings::mongodb_uri_file();
    match &settings.mongodb_uri_file {
        Some(_) if values.is_given(StoreSettings::store()) => {
            let message = "--store names a store, too: remove one of the two";
            values.reject(setting, message);
        }
        Some(file) => match MongoUri::read(file) {
            Ok(uri) => settings.store = StoreChoice::Mongo(uri),
            Err(message) => values.reject(setting, format!("{}: {message}", file.display())),
        },
        None => {}
    }
}

/// The store that `text` names.
fn choice(text: &str) -> Result<StoreChoice, String> {
    match text.split_once(':') {
        Some(("embedded", folder)) if !folder.is_empty() => {
            Ok(StoreChoice::Embedded(folder.into()))
        }
        Some(("mongodb" | "mongodb+srv", rest)) if rest.starts_with("//") => {
            MongoUri::parse(text).map(StoreChoice::Mongo)
        }
        _ => Err(FORMS.to_owned()),
    }
}

impl StoreChoice {
    /// The URI of a store on MongoDB.
    pub fn uri(&self) -> Option<&MongoUri> {
        match self {
            Self::Mongo(uri) => Some(uri),
            Self::Embedded(_) | Self::Temporary => None,
        }
    }
}

impl MongoUri {
    /// The URI in a file, which may end with a line break.
    ///
    /// # Errors
    /// The file cannot be read, or has no URI. The text has no part of it.
    pub fn read(file: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let read = File::open(file)
            .and_then(|file| file.take(MAX_URI_BYTES + 1).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err("the file is not UTF-8".to_owned());
            }
            Err(error) => return Err(error.to_string()),
            Ok(_) if text.len() as u64 > MAX_URI_BYTES => {
                return Err(format!("the file has more than {} KiB", MAX_URI_BYTES >> 10));
            }
            Ok(_) => {}
        }
        match choice(text.trim_end_matches(['\r', '\n'])) {
            Ok(StoreChoice::Mongo(uri)) => Ok(uri),
            Ok(_) => Err(format!("the file must have a URI, such as {EXAMPLE}")),
            Err(message) => Err(message),
        }
    }

    /// Parses with the driver, whose errors may contain parts of a password.
    fn parse(text: &str) -> Result<Self, String> {
        match ConnectionString::parse(text) {
            Ok(parsed) if parsed.default_database.is_some() => Ok(Self(text.to_owned())),
            Ok(_) => Err(format!("the URI has no database: {FORMS}")),
            Err(_) if is_unescaped(credentials(text)) => Err(
                "user and password must be percent-encoded: write %40 for @, %3A for :, %2F for /"
                    .to_owned(),
            ),
            Err(error) => Err(match &*error.kind {
                ErrorKind::InvalidArgument { message, .. } => without_values(message),
                _ => FORMS.to_owned(),
            }),
        }
    }

    /// The complete URI, including the password, for the driver.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MongoUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let (authority_and_path, _) = rest.split_once('?').unwrap_or((rest, ""));
        let (_, shown) = authority_and_path.rsplit_once('@').unwrap_or(("", authority_and_path));
        write!(f, "{scheme}://{shown}")
    }
}

impl fmt::Debug for MongoUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The part before the last `@`, which in an invalid URI may be inside the password.
fn credentials(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
    rest.rsplit_once('@').map_or("", |(credentials, _)| credentials)
}

fn is_unescaped(credentials: &str) -> bool {
    credentials.contains(['/', '?', '#', '[', ']', '@', '&'])
        || credentials.matches(':').count() > 1
}

/// The driver's message, unless it may contain values.
fn without_values(message: &str) -> String {
    if message.contains("server address") {
        return format!("a server's name or port is malformed: {FORMS}");
    }
    if message.contains("key=value") {
        return "an option after the ? is not of the form NAME=VALUE".to_owned();
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mongo(text: &str) -> Result<MongoUri, String> {
        choice(text).map(|choice| match choice {
            StoreChoice::Mongo(uri) => uri,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn stores_are_folders_or_databases() {
        assert_eq!(choice("embedded:a:b"), Ok(StoreChoice::Embedded("a:b".into())));
        let uri = mongo("mongodb://a,b:27018/directory?replicaSet=rs0").unwrap();
        assert_eq!(uri.as_str(), "mongodb://a,b:27018/directory?replicaSet=rs0");
        assert!(mongo("mongodb+srv://cluster.example.com/directory").is_ok());
        for wrong in ["", "embedded:", "mongo://host/db", "/folder", "mongodb:host"] {
            assert!(choice(wrong).unwrap_err().contains("mongodb://"), "{wrong}");
        }
    }

    #[test]
    fn a_uri_is_shown_without_secrets() {
        for (text, shown) in [
            ("mongodb://joe:s3cr%40t@a,b/db?authSource=s3cr@t", "mongodb://a,b/db"),
            ("mongodb+srv://joe:s3cret@a.example.com/db", "mongodb+srv://a.example.com/db"),
            ("mongodb://a:1/db?appName=s3cret@a", "mongodb://a:1/db"),
        ] {
            let uri = mongo(text).unwrap();
            assert_eq!((uri.to_string().as_str(), format!("{uri:?}").as_str()), (shown, shown));
        }
    }

    #[test]
    fn a_file_has_one_uri_and_a_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("uri");
        let read = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            MongoUri::read(&file)
        };
        let uri = "mongodb://joe:s3cret@a/db?w=1";
        for end in ["", "\n", "\r\n"] {
            assert_eq!(read(format!("{uri}{end}").as_bytes()).unwrap().as_str(), uri);
        }
        for (content, part) in [
            (&b"embedded:folder"[..], "must have a URI"),
            (b"", "mongodb://"),
            (b"mongodb://joe:s3cret@a", "no database"),
            (b"mongodb://joe:s3cret\xff@a/db", "UTF-8"),
            (&[b'm'; 70_000], "64 KiB"),
        ] {
            let message = read(content).unwrap_err();
            assert!(message.contains(part) && !message.contains("s3cret"), "{message}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(MongoUri::read(&file).is_err());
    }

    #[test]
    fn errors_of_a_uri_have_no_secrets() {
        for (uri, part) in [
            ("mongodb://joe:s3cret@host", "no database"),
            ("mongodb://joe:s3cret@host/", "no database"),
            ("mongodb://joe:s3cret@host/db?nonsense=s3cret", "nonsense is an invalid option"),
            ("mongodb://joe:s3cret@host/db?appName=x&s3cret", "NAME=VALUE"),
            ("mongodb://joe:s3cret@/db", "name or port"),
            ("mongodb://joe:s3cret/db", "name or port"),
            ("mongodb://joe:s3/cret@host/db", "percent-encoded"),
            ("mongodb://joe:s3?cret@host/db", "percent-encoded"),
            ("mongodb://joe:12?s3cret@host/db", "percent-encoded"),
            ("mongodb://joe:s3@cret@host/db", "percent-encoded"),
            ("mongodb://joe:s3%cret@host/db", "unescaped %"),
            ("mongodb+srv://joe:s3cret@host:1/db", "port"),
        ] {
            let message = mongo(uri).unwrap_err();
            assert!(message.contains(part), "{uri}: {message}");
            assert!(!message.contains("s3") && !message.contains("cret"), "{uri}: {message}");
        }
    }
}
