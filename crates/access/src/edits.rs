//! The changes of a credentials file: a token is created, credentials get another expiry, and
//! credentials are revoked. Each is given the new text before the next one begins.

use std::path::Path;
use std::time::{Duration, SystemTime};

use secrecy::{ExposeSecret, SecretString};
use toml_edit::{Array, ArrayOfTables, Datetime, DocumentMut, InlineTable, Item, Table, value};

use super::edit::edit;
pub use super::edit::{EditError, check};
use super::rate_limiter::RateLimits;
use super::role::Role;
use super::token::{self, Token, TokenHash};

/// The latest expiry in a credentials file: the end of the year 9999.
const MAX_EXPIRY: Duration = Duration::from_secs(253_402_300_799);

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The name of the caller.
    pub name: String,
    /// The role, which is that of the caller's other credentials.
    pub role: Role,
    /// The patterns of tenants, which are those of the caller's other credentials.
    pub tenants: Vec<String>,
    /// The limits; none for those of the caller's other credentials.
    pub limits: Option<RateLimits>,
    /// The expiry time, if any.
    pub expires: Option<SystemTime>,
}

/// Some of the credentials of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one with a token of this id.
    Token(String),
    /// Those of a caller that need only a certificate with this name.
    Certificate {
        /// The caller.
        caller: String,
        /// The name in the certificate.
        certificate: String,
    },
    /// Those of the caller with this name.
    Caller(String),
    /// Those of the caller with this name, or the one with a token of this id.
    CallerOrToken(String),
}

impl Which {
    fn has(&self, table: &Table) -> bool {
        let text = |key| table.get(key).and_then(Item::as_str);
        let hash = text("token").and_then(TokenHash::parse);
        let is_token = |id: &str| hash.as_ref().is_some_and(|hash| hash.id() == id);
        let is_caller = |name: &str| text("name") == Some(name);
        match self {
            Self::Token(id) => is_token(id),
            Self::Certificate { caller, certificate } => {
                is_caller(caller) && hash.is_none() && text("certificate") == Some(certificate)
            }
            Self::Caller(name) => is_caller(name),
            Self::CallerOrToken(text) => is_caller(text) || is_token(text),
        }
    }

    fn not_found(&self) -> EditError {
        EditError::NotFound(match self {
            Self::Token(id) => format!("no token {id:?}"),
            Self::Certificate { certificate, .. } => format!("no certificate {certificate:?}"),
            Self::Caller(name) => format!("no caller {name:?}"),
            Self::CallerOrToken(text) => {
                format!("no caller or token {text:?}: see `polynym token list`")
            }
        })
    }
}

/// Adds a token to a file, which is created if it does not exist. Returns the token: the file has
/// its hash alone.
///
/// # Errors
/// The file cannot be changed, or the caller's other credentials contradict the new one.
pub fn create(
    path: &Path,
    new: &NewToken,
    written: impl FnOnce(&str),
) -> Result<SecretString, EditError> {
    edit(path, |document| add(document, new), written)
}

/// Gives credentials another expiry; none for never. Returns their number.
///
/// # Errors
/// The file cannot be changed, has no such credential, or may not have the time.
pub fn extend(
    path: &Path,
    which: &Which,
    expires: Option<SystemTime>,
    written: impl FnOnce(&str),
) -> Result<usize, EditError> {
    edit(path, |document| set_expiry(document, which, expires), written)
}

/// Removes credentials. Returns their number.
///
/// # Errors
/// The file cannot be changed, has no such credential, or would have none.
pub fn revoke(path: &Path, which: &Which, written: impl FnOnce(&str)) -> Result<usize, EditError> {
    edit(path, |document| remove(document, which), written)
}

fn add(document: &mut DocumentMut, new: &NewToken) -> Result<SecretString, EditError> {
    let secret = token::generate().map_err(EditError::Io)?;
    let hash = Token::parse(secret.expose_secret()).map(Token::hash);
    let hash = hash.ok_or_else(|| EditError::Io("the new token is malformed".to_owned()))?;
    let callers = callers(document)?;
    let is_same = |table: &&Table| table.get("name").and_then(Item::as_str) == Some(&new.name);
    let known = callers.iter().find(is_same).and_then(|table| table.get("rate")).cloned();

    let mut table = Table::new();
    table["name"] = value(&new.name);
    table["role"] = value(new.role.name());
    table["tenants"] = value(new.tenants.iter().collect::<Array>());
    table["token"] = value(hash.to_string());
    if let Some(rate) = new.limits.map_or(known, rate) {
        table["rate"] = rate;
    }
    if let Some(time) = new.expires {
        table["expires"] = expiry(time)?;
    }
    callers.push(table);
    Ok(secret)
}

/// The limits as written; none without any.
fn rate(limits: RateLimits) -> Option<Item> {
    let set = [("calls", limits.calls), ("misses", limits.misses)];
    let set = set.into_iter().filter_map(|(key, limit)| Some((key, i64::from(limit?.get()))));
    let table: InlineTable = set.collect();
    (!table.is_empty()).then(|| value(table))
}

fn expiry(time: SystemTime) -> Result<Item, EditError> {
    let wrong = || EditError::Invalid("the expiry is after the year 9999".to_owned());
    if time > SystemTime::UNIX_EPOCH + MAX_EXPIRY {
        return Err(wrong());
    }
    let text = humantime::format_rfc3339_seconds(time).to_string();
    Ok(value(text.parse::<Datetime>().map_err(|_| wrong())?))
}

fn set_expiry(
    document: &mut DocumentMut,
    which: &Which,
    expires: Option<SystemTime>,
) -> Result<usize, EditError> {
    let expires = expires.map(expiry).transpose()?;
    let mut count = 0;
    for table in callers(document)?.iter_mut().filter(|table| which.has(table)) {
        match (&expires, table.get_mut("expires")) {
            (Some(Item::Value(new)), Some(Item::Value(old))) => {
                // A comment behind the old time stays.
                let decor = old.decor().clone();
                *old = new.clone();
                *old.decor_mut() = decor;
            }
            (Some(new), _) => {
                table.insert("expires", new.clone());
            }
            (None, _) => {
                table.remove("expires");
            }
        }
        count += 1;
    }
    if count == 0 { Err(which.not_found()) } else { Ok(count) }
}

fn remove(document: &mut DocumentMut, which: &Which) -> Result<usize, EditError> {
    let callers = callers(document)?;
    let before = callers.len();
    callers.retain(|table| !which.has(table));
    match before - callers.len() {
        0 => Err(which.not_found()),
        _ if callers.is_empty() => Err(EditError::Invalid(
            "these are the last credentials: a server keeps using them \
            rather than reject every caller. Create another token first, or stop the server and \
            delete the file"
                .to_owned(),
        )),
        count => Ok(count),
    }
}

fn callers(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, EditError> {
    let callers = document.entry("caller").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let wrong = || EditError::Invalid("write each caller as [[caller]]".to_owned());
    callers.as_array_of_tables_mut().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::thread::scope;

    use super::*;
    use crate::{CallerStates, Credentials};

    const WITH_PEOPLE: &str = "# Who may call.\n[[caller]]\nname = \"adam\"   # the first\n\
        role = \"admin\"\ntenants = [\"*\"]\n\
        token = \"sha256:first:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n\
        rate = { calls = 9 }\nexpires = 2030-01-01T00:00:00Z   # after the audit\n\n\
        # People.\n[oidc]\nissuer = \"https://sso.example\"\nclient_id = \"polynym\"\n\n\
        [[oidc.grant]]\ngroup = \"support\"   # by the desk\nrole = \"viewer\"\n\
        tenants = [\"default\"]\n";

    fn new(name: &str) -> NewToken {
        let tenants = vec!["*".to_owned()];
        NewToken { name: name.to_owned(), role: Role::Admin, tenants, limits: None, expires: None }
    }

    fn read(path: &Path) -> Credentials {
        let text = fs::read_to_string(path).unwrap();
        Credentials::parse(&text, RateLimits::default(), &CallerStates::default()).unwrap()
    }

    #[test]
    fn edits_keep_comments_people_and_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callers.toml");
        fs::write(&path, WITH_PEOPLE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        create(&path, &new("adam"), |_| ()).unwrap();
        let limits = Some(RateLimits { calls: None, misses: 3.try_into().ok() });
        create(&path, &NewToken { limits, ..new("eve") }, |_| ()).unwrap();
        let later = SystemTime::UNIX_EPOCH + MAX_EXPIRY;
        let first = Which::Token("first".to_owned());
        assert_eq!(extend(&path, &first, Some(later), |_| ()), Ok(1));
        let text = fs::read_to_string(&path).unwrap();
        let kept = WITH_PEOPLE.replace("2030-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
        for line in kept.lines() {
            assert!(text.contains(line), "{line}: {text}");
        }
        let credentials = read(&path);
        let rates = credentials.list().into_iter().map(|own| own.caller.limits);
        let rates: Vec<_> = rates.map(|own| (own.calls, own.misses)).collect();
        let (nine, three) = (9.try_into().ok(), 3.try_into().ok());
        assert_eq!(rates, [(nine, None), (nine, None), (None, three)]);
        assert_eq!(credentials.provider().unwrap().grants().len(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        assert_eq!(extend(&path, &first, None, |_| ()), Ok(1));
        assert_eq!(revoke(&path, &first, |_| ()), Ok(1));
        assert!(matches!(revoke(&path, &first, |_| ()), Err(EditError::NotFound(_))));
        assert_eq!(revoke(&path, &Which::Caller("eve".to_owned()), |_| ()), Ok(1));
        let last = revoke(&path, &Which::Caller("adam".to_owned()), |_| ()).unwrap_err();
        assert!(last.to_string().contains("the last credentials"), "{last}");
        assert_eq!(read(&path).list().len(), 1);
    }

    #[test]
    fn no_edit_of_many_writers_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("callers.toml");
        fs::write(path, WITH_PEOPLE).unwrap();
        scope(|scope| {
            for writer in 0..8 {
                scope.spawn(move || {
                    for n in 0..4 {
                        let name = format!("caller-{writer}-{n}");
                        create(path, &new(&name), |_| ()).unwrap();
                        if n % 2 == 0 {
                            revoke(path, &Which::Caller(name), |_| ()).unwrap();
                        }
                    }
                });
            }
        });
        let credentials = read(path);
        let names: Vec<_> = credentials.list().iter().map(|own| own.caller.name.clone()).collect();
        let expected = (0..8).flat_map(|writer| [1, 3].map(|n| format!("caller-{writer}-{n}")));
        assert_eq!(names, ["adam".to_owned()].into_iter().chain(expected).collect::<Vec<_>>());
        assert_eq!(credentials.provider().unwrap().grants().len(), 1);
    }

    #[test]
    fn a_long_edit_of_another_program_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callers.toml");
        let lock = fs::File::open(folder.path()).unwrap();
        lock.lock().unwrap();
        assert_eq!(create(&path, &new("adam"), |_| ()).unwrap_err(), EditError::Busy);
        lock.unlock().unwrap();
        create(&path, &new("adam"), |_| ()).unwrap();
        assert_eq!(check(&path), Ok(()));
        assert!(check(folder.path()).is_err());
    }
}
