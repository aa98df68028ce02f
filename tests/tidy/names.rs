//! Names and paths in inline code: each exists in the sources or in the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::inline_code;

/// What is known of the tree: its files and folders, and the words of each source.
pub struct Names {
    paths: BTreeSet<String>,
    words: BTreeMap<String, BTreeSet<String>>,
    all_words: BTreeSet<String>,
}

impl Names {
    /// `files` are all files of the tree, `sources` those that define names, with their text.
    pub fn new(files: &[String], sources: impl IntoIterator<Item = (String, String)>) -> Self {
        let ends = |path: &str| path.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
        let folders =
            files.iter().flat_map(|path| ends(path).into_iter().map(|at| path[..at].to_owned()));
        let paths = files.iter().cloned().chain(folders).collect();
        let words: BTreeMap<_, BTreeSet<_>> = sources
            .into_iter()
            .map(|(path, text)| {
                let words = words(&path).into_iter().chain(words(&without_comments(&text)));
                (path, words.collect())
            })
            .collect();
        let all_words = words.values().flatten().cloned().collect();
        Self { paths, words, all_words }
    }

    /// Returns the names in a text that do not exist, each with its line and its fault.
    pub fn faults(&self, path: &str, text: &str) -> Vec<(usize, String, &'static str)> {
        let fault = |(n, code): (usize, String)| self.fault(&code).map(|fault| (n, code, fault));
        if path.ends_with(".rs") {
            let all = inline_code::of_comments(text, &["//!", "///"]);
            let comments = inline_code::of_comments(text, &["//!"]);
            let modules = comments.into_iter().filter(|_| !path.starts_with("tests/"));
            let missing = modules.filter_map(|(n, code)| {
                self.module_fault(path, &code).map(|fault| (n, code, fault))
            });
            return all.into_iter().filter_map(fault).chain(missing).collect();
        }
        if !path.ends_with(".md") {
            return Vec::new();
        }

        let paths = text.lines().enumerate().flat_map(|(n, line)| {
            self.missing_paths(line).into_iter().map(move |path| (n + 1, path, "no such path"))
        });
        inline_code::of_document(text).into_iter().filter_map(fault).chain(paths).collect()
    }

    /// Returns the fault of a text in backticks: it has the form of a path or a name and does not
    /// exist.
    fn fault(&self, code: &str) -> Option<&'static str> {
        if is_path(code) {
            (!self.has_path(code)).then_some("no such path")
        } else {
            let name = code.split('(').next().unwrap_or_default();
            // tests/readme.rs checks the program's environment variables.
            let is_checked = is_name(name) && !name.starts_with("POLYNYM_");
            (is_checked && !self.has_name(name)).then_some("no such name")
        }
    }

    /// Returns true if a file or folder has this path, or a path that ends with it.
    fn has_path(&self, text: &str) -> bool {
        let path = text.trim_end_matches('/');
        let ending = format!("/{path}");
        self.paths.contains(path) || self.paths.iter().any(|known| known.ends_with(&ending))
    }

    /// Returns true if one source has all words of the name. The values of an enum of `proto/` may
    /// stand without its prefix.
    fn has_name(&self, name: &str) -> bool {
        let segments = words(name);
        let is_known = segments.iter().all(|word| self.all_words.contains(word));
        let defines = |words: &BTreeSet<String>| segments.is_subset(words);
        let ending = format!("_{name}");
        let mut enums = self.words.iter().filter(|(path, _)| path.ends_with(".proto"));
        (is_known && (segments.len() == 1 || self.words.values().any(defines)))
            || enums.any(|(_, words)| words.iter().any(|word| word.ends_with(&ending)))
    }

    /// Returns the fault of a lone lower-case word in the comment of a module: it is neither the
    /// name of a module nor a word of the file's code.
    fn module_fault(&self, path: &str, code: &str) -> Option<&'static str> {
        let is_word = !code.is_empty() && code.chars().all(|c| c.is_ascii_lowercase());
        let is_module = || self.has_path(code) || self.has_path(&format!("{code}.rs"));
        let is_used = || self.words.get(path).is_some_and(|words| words.contains(code));
        (is_word && !is_module() && !is_used()).then_some("no such module")
    }

    /// Returns the paths of a line that begin with a folder of the root and do not exist.
    fn missing_paths(&self, line: &str) -> Vec<String> {
        let in_path = |c: char| c.is_alphanumeric() || "_-./*".contains(c);
        let texts = line.split(|c| !in_path(c)).map(|text| text.trim_end_matches(['.', '/']));
        let is_rooted = |text: &&str| {
            let folders = ["src/", "crates/", "tests/", "docs/", "proto/", "benches/", "deploy/"];
            folders.iter().any(|folder| text.starts_with(folder)) && !text.contains('*')
        };
        let missing = texts.filter(is_rooted).filter(|path| !self.has_path(path));
        missing.map(str::to_owned).collect()
    }
}

/// Returns true for a path with a slash, or a file name.
fn is_path(code: &str) -> bool {
    let endings = [".rs", ".proto", ".md", ".toml", ".json", ".yaml", ".py", ".tsv", ".service"];
    let has_form = code.contains('/') || endings.iter().any(|ending| code.ends_with(ending));
    let in_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_whole = code.chars().all(in_path) && !code.contains("//");
    has_form && is_whole && !code.starts_with('/') && code.starts_with(|c: char| !c.is_numeric())
}

/// Returns true for names with a capital, an underscore or `::`, but not for a lone lower-case word
/// or a single capital.
fn is_name(code: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let capital = code.contains(|c: char| c.is_ascii_uppercase());
    let has_form = code.contains("::") || code.contains('_') || capital;
    has_form && code.len() > 1 && code.replace("::", ".").split('.').all(is_word)
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn without_comments(text: &str) -> String {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn missing_names_and_paths_are_found() {
    let source = "// Gone\nimpl Thing { fn make_it() { \"reason_key\" } }\nmessage User {}";
    let path = "src/a/b.rs".to_owned();
    let names = Names::new(std::slice::from_ref(&path), [(path.clone(), source.to_owned())]);

    let known = ["a/b.rs", "src/a", "src/a/", "b.rs", "Thing::make_it()", "a::b::Thing", "make_it"];
    let other = ["reason_key", "polynym", "x = 1", "/metrics", "1/2", "A", "gone"];
    for code in known.into_iter().chain(other) {
        assert_eq!(names.fault(code), None, "{code}");
    }
    for code in ["a/c.rs", "c.rs", "src/c/", "Gone", "Thing::unmake", "un_make", "c::Thing"] {
        assert!(names.fault(code).is_some(), "{code}");
    }
    for (code, is_fault) in [("b", false), ("impl", false), ("gone", true), ("make_it", false)] {
        assert_eq!(names.module_fault(&path, code).is_some(), is_fault, "{code}");
    }
    assert_eq!(names.missing_paths("| src/a  src/c, (src/a/b.rs) crates/*/src |"), ["src/c"]);
}
