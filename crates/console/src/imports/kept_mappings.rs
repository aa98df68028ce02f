//! Mappings of columns that the browser keeps: those of the last files, for the mended ones, and
//! those with names. They outlive the session and the server, and belong to a caller and a tenant.

use http::{HeaderMap, HeaderValue};
use polynym_table::{MapFile, REJECT_COLUMNS};
use serde::{Deserialize, Serialize};

use crate::cookies::{is_kept, kept_list, list_cookie};

/// The mappings with names, and those of the last files.
const MAX_NAMED: usize = 8;
const MAX_LAST: usize = 3;
/// The characters of a name.
pub const MAX_NAME_CHARS: usize = 40;

/// The mappings of a caller in a tenant, the newest first.
#[derive(Clone, Debug, Default)]
pub struct KeptMappings {
    cookie: String,
    all: Vec<KeptMapping>,
}

/// A mapping that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptMapping {
    /// Its name; empty for that of a last file.
    #[serde(rename = "n")]
    pub name: String,
    /// A hash of the names of the columns.
    #[serde(rename = "h")]
    header: String,
    /// The mapping, without what belongs to one file: encoding and separator.
    #[serde(rename = "m")]
    pub file: MapFile,
}

impl KeptMappings {
    /// The mappings that a request brings.
    pub fn read(headers: &HeaderMap, caller: &str) -> Self {
        let cookie = format!("polynym_maps_{}", hash(&[caller.to_owned()]));
        let all = kept_list(headers, &cookie);
        let mut own = Self { cookie, all };
        own.fit();
        own
    }

    /// The mapping for a table with these columns: that of the last file that had them.
    pub fn of_columns(&self, names: &[String]) -> Option<&KeptMapping> {
        let header = header(names);
        self.all.iter().find(|kept| kept.header == header)
    }

    /// The mapping with this name.
    pub fn named(&self, name: &str) -> Option<&KeptMapping> {
        self.all.iter().find(|kept| kept.name == name && !name.is_empty())
    }

    /// The names.
    pub fn names(&self) -> Vec<String> {
        let named = self.all.iter().filter(|kept| !kept.name.is_empty());
        named.map(|kept| kept.name.clone()).collect()
    }

    /// Keeps the mapping of a file, as far as there is room.
    pub fn keep_last(&mut self, names: &[String], file: &MapFile) {
        let header = header(names);
        self.all.retain(|kept| !kept.name.is_empty() || kept.header != header);
        self.all.insert(0, KeptMapping { name: String::new(), header, file: without_form(file) });
        self.fit();
    }

    /// Keeps a mapping by a name, in place of one with this name.
    ///
    /// # Errors
    /// It has no name, or there is no room: in words.
    pub fn keep(&mut self, name: &str, names: &[String], file: &MapFile) -> Result<(), String> {
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
            return Err(format!("Name the columns, with at most {MAX_NAME_CHARS} characters."));
        }
        let others = self.all.iter().filter(|kept| kept.name != name).cloned();
        let mut with = Self { cookie: self.cookie.clone(), all: others.collect() };
        let (header, file) = (header(names), without_form(file));
        with.all.insert(0, KeptMapping { name: name.to_owned(), header, file });
        let count = with.names().len();
        with.fit();
        if with.names().len() < count || count > MAX_NAMED {
            return Err("The browser has no room to keep these columns: remove other ones, or \
                download the map file."
                .to_owned());
        }
        *self = with;
        Ok(())
    }

    /// Removes the mapping with this name.
    pub fn remove(&mut self, name: &str) {
        self.all.retain(|kept| kept.name != name || kept.name.is_empty());
    }

    /// The header that keeps the mappings, for the pages below a path.
    pub fn header(&self, path: &str) -> Option<HeaderValue> {
        list_cookie(&self.cookie, &self.all, path)
    }

    /// Forgets the oldest until the rest fits: those of files before those with names.
    fn fit(&mut self) {
        loop {
            let last = self.all.iter().filter(|kept| kept.name.is_empty()).count();
            if is_kept(&self.all) && last <= MAX_LAST {
                return;
            }
            let oldest = self.all.iter().rposition(|kept| kept.name.is_empty() || last == 0);
            let Some(oldest) = oldest else { return };
            self.all.remove(oldest);
        }
    }
}

/// A mapping without what a mended file may have in another form.
fn without_form(file: &MapFile) -> MapFile {
    MapFile { encoding: None, separator: None, ..file.clone() }
}

/// A hash of the names of columns. A table of rejects has those of its file.
fn header(names: &[String]) -> String {
    let own = names.iter().zip(REJECT_COLUMNS).take_while(|(name, known)| name == known).count();
    hash(if own == REJECT_COLUMNS.len() { &names[own..] } else { names })
}

/// A hash of names, the same in all versions of the program: FNV-1a.
fn hash(names: &[String]) -> String {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::COOKIE;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("Column {n}")).collect()
    }

    fn again(kept: &KeptMappings, caller: &str) -> KeptMappings {
        let set = kept.header("/console/t/default/import").unwrap();
        let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::try_from(pair).unwrap());
        KeptMappings::read(&headers, caller)
    }

    #[test]
    fn mappings_return_in_their_cookie() {
        let text = "encoding = \"windows-1252\"\nlocale = \"de\"\n[map]\nemail = \"E-Mail\"\n\
            [values.Land]\nD = \"DE\"\n";
        let file = MapFile::parse(text).unwrap();
        let mut kept = KeptMappings::read(&HeaderMap::new(), "ana");
        kept.keep_last(&names(3), &file);
        kept.keep("Customers; ä", &names(4), &file).unwrap();
        let kept = again(&kept, "ana");
        assert_eq!(kept.of_columns(&names(3)).unwrap().file, without_form(&file));
        assert_eq!(kept.named("Customers; ä").unwrap().file.values, file.values);
        assert_eq!(kept.names(), ["Customers; ä"]);
        assert!(kept.of_columns(&names(5)).is_none());
        let rejects: Vec<_> =
            REJECT_COLUMNS.map(str::to_owned).into_iter().chain(names(3)).collect();
        assert!(kept.of_columns(&rejects).is_some());
        assert!(again(&kept, "ben").all.is_empty(), "another caller's");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let field = |n: usize| format!("\"attributes.a{n}\" = \"Column {n}\"\n");
        let text = |n| format!("[map]\n{}", (0..n).map(field).collect::<String>());
        let file = MapFile::parse(&text(20)).unwrap();
        let mut kept = KeptMappings::read(&HeaderMap::new(), "ana");
        for n in 1..20 {
            kept.keep_last(&names(n), &file);
            assert!(is_kept(&kept.all));
        }
        assert!(kept.of_columns(&names(19)).is_some() && kept.of_columns(&names(1)).is_none());
        let fits = (0..20).take_while(|n| kept.keep(&format!("n{n}"), &names(20), &file).is_ok());
        let count = fits.count();
        assert!((2..8).contains(&count), "{count}");
        assert_eq!(kept.names().len(), count);
        kept.remove("n0");
        assert!(kept.keep("other", &names(20), &file).is_ok());
        let large = MapFile::parse(&text(500)).unwrap();
        assert!(kept.keep("large", &names(500), &large).is_err());
        assert!(kept.keep("", &names(20), &file).is_err());
    }
}
