//! Circles of imports between the files and folders of each crate. An import counts for the file
//! that defines a name, not for one that re-exports it.

use std::collections::{BTreeMap, BTreeSet};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of all crates: `root::a::b`, where the root is the folder of the crate's sources.
pub struct Modules<'a> {
    files: BTreeMap<String, &'a str>,
    /// By module and name: what a `use` brings into scope.
    uses: BTreeMap<(String, String), String>,
}

/// Returns the imports between files. `sources` are files of `src` and `crates/*/src` without tests
/// and comments.
pub fn graph(sources: &BTreeMap<String, String>) -> Graph {
    let named = sources.keys().filter_map(|path| Some((module(path)?, path.as_str())));
    let mut modules = Modules { files: named.collect(), uses: BTreeMap::new() };
    let files: Vec<_> =
        sources.iter().filter_map(|(path, text)| Some((path, module(path)?, text))).collect();

    for (_, module, text) in &files {
        for Import { path, name, .. } in imports(text) {
            if let Some(path) = modules.absolute(module, &path) {
                modules.uses.insert((module.clone(), name), path);
            }
        }
    }

    let edges = files.iter().map(|(path, module, text)| {
        let private = imports(text).into_iter().filter(|import| !import.is_public);
        let paths = private.map(|import| import.path).chain(paths(text));
        let targets =
            paths.filter_map(|path| modules.defining_file(&modules.absolute(module, &path)?, 0));
        let others = targets.filter(|target| target != path).map(str::to_owned);
        ((*path).clone(), others.collect())
    });
    edges.collect()
}

/// Returns the imports between folders. A file in the root of a crate counts as a folder: some are
/// below all folders of the crate, such as its errors, and others above.
pub fn folders(graph: &Graph) -> Graph {
    let mut folders = Graph::new();
    for (file, targets) in graph {
        let from = node(file, graph);
        let others: Vec<_> = targets
            .iter()
            .map(|target| node(target, graph))
            .filter(|target| *target != from)
            .collect();
        folders.entry(from).or_default().extend(others);
    }
    folders
}

/// Returns the imports between the files of different folders of a circle, as text.
pub fn between(graph: &Graph, circle: &BTreeSet<String>) -> Vec<String> {
    let edges = graph.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)));
    let is_between = |(from, to): &(&String, &String)| {
        let (from, to) = (node(from, graph), node(to, graph));
        from != to && circle.contains(&from) && circle.contains(&to)
    };
    edges.filter(is_between).map(|(from, to)| format!("{from} imports {to}")).collect()
}

/// Returns the folder of a file, or the file itself in the root of a crate.
fn node(path: &str, graph: &Graph) -> String {
    let folder = folder(path, graph);
    if folder == "src" || folder.ends_with("/src") { path.to_owned() } else { folder }
}

/// Returns the imports between files of one folder.
pub fn within_folders(graph: &Graph) -> Graph {
    let same = |from: &String, to: &String| folder(from, graph) == folder(to, graph);
    let within = graph.iter().map(|(from, targets)| {
        (from.clone(), targets.iter().filter(|to| same(from, to)).cloned().collect())
    });
    within.collect()
}

/// Returns the folder of a file; `a.rs` beside a folder `a` belongs to that.
pub fn folder(path: &str, graph: &Graph) -> String {
    let own = format!("{}/", path.trim_end_matches(".rs"));
    if graph.keys().any(|other| other.starts_with(&own)) {
        return own.trim_end_matches('/').to_owned();
    }
    path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
}

/// Returns the sets of more than `limit` nodes that reach each other.
pub fn circles(graph: &Graph, limit: usize) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|node| (node, reachable(graph, node))).collect();
    let circle = |node: &String| {
        let back = |other: &&String| reached.get(other).is_some_and(|there| there.contains(node));
        reached[node].iter().filter(back).cloned().collect::<BTreeSet<_>>()
    };
    let circles: BTreeSet<_> = graph.keys().map(circle).filter(|set| set.len() > limit).collect();
    circles.into_iter().collect()
}

fn reachable(graph: &Graph, from: &String) -> BTreeSet<String> {
    let (mut reached, mut queue) = (BTreeSet::new(), vec![from]);
    while let Some(node) = queue.pop() {
        let next = graph.get(node).into_iter().flatten();
        queue.extend(next.filter(|next| reached.insert((*next).clone())));
    }
    reached
}

impl Modules<'_> {
    /// Returns the path from the root of a path in `module`; `None` for other crates and for names
    /// in scope.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        let base = match first {
            "crate" => module.split("::").next()?.to_owned(),
            "self" => module.to_owned(),
            "super" => module.rsplit_once("::")?.0.to_owned(),
            child => {
                let nested = format!("{module}::{child}");
                self.files.contains_key(&nested).then_some(nested)?
            }
        };
        match rest {
            "" => Some(base),
            rest if rest.starts_with("super") => self.absolute(&base, rest),
            rest => Some(format!("{base}::{rest}")),
        }
    }

    /// Returns the file that defines the item with this path from the root.
    fn defining_file(&self, path: &str, depth: usize) -> Option<&str> {
        let mut module = path;
        while !self.files.contains_key(module) {
            module = module.rsplit_once("::")?.0;
        }
        let item = path[module.len()..].trim_start_matches("::").split("::").next()?;
        let used = self.uses.get(&(module.to_owned(), item.to_owned()));
        let origin = used.filter(|used| depth < 9 && *used != path);
        origin
            .and_then(|used| self.defining_file(used, depth + 1))
            .or(self.files.get(module).copied())
    }
}

/// Returns the module of a file: `src::a::b` for `src/a/b.rs` and `src/a/b/mod.rs`.
fn module(path: &str) -> Option<String> {
    let at = if path.starts_with("src/") { 3 } else { path.find("/src/")? + 4 };
    let (root, file) = path.split_at(at);
    let joined = file.strip_suffix(".rs")?.replace('/', "::");
    let roots = ["::mod", "::lib", "::main"];
    let rest = roots.iter().find_map(|name| joined.strip_suffix(name)).unwrap_or(&joined);
    Some(format!("{root}{rest}"))
}

struct Import {
    path: String,
    name: String,
    is_public: bool,
}

/// Returns the imports of a file, one for each name.
fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for statement in statements(text) {
        let is_public = statement.starts_with("pub");
        let (_, tree) = statement.split_once("use ").unwrap_or_default();
        expand("", &tree.split_whitespace().collect::<Vec<_>>().join(" "), &mut |path, name| {
            found.push(Import { path: path.to_owned(), name: name.to_owned(), is_public });
        });
    }
    found
}

/// Returns the `use` statements of a file, without their semicolons.
fn statements(text: &str) -> Vec<&str> {
    let starts = |line: &str| {
        let code = line.trim_start();
        code.starts_with("use ") || (code.starts_with("pub") && code.contains(" use "))
    };
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if starts(line) {
            found.push(text[at..].split(';').next().unwrap_or_default().trim());
        }
        at += line.len();
    }
    found
}

/// Calls `add` with the path and the name of each import of a tree such as `a::{b, c as d}`.
fn expand(prefix: &str, text: &str, add: &mut impl FnMut(&str, &str)) {
    let tree = text.trim();
    if let Some((head, rest)) = tree.split_once('{') {
        let base = format!("{prefix}{}", head.trim());
        for part in parts(rest.strip_suffix('}').unwrap_or(rest)) {
            expand(&base, part, add);
        }
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let full = format!("{prefix}{path}");
        let path = full.strip_suffix("::self").unwrap_or(&full);
        let last = path.rsplit("::").next().unwrap_or_default();
        add(path, if alias.is_empty() { last } else { alias });
    }
}

/// Splits a list at the commas that are in no braces of it.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_separator = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    list.split(is_separator).collect()
}

/// Returns the paths of at least two segments outside `use` statements.
fn paths(text: &str) -> Vec<String> {
    let mut code = text.to_owned();
    for statement in statements(text) {
        code = code.replacen(statement, "", 1);
    }
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let found = code.split(|c| !in_path(c)).map(|path| path.trim_matches(':'));
    found.filter(|path| path.contains("::")).map(str::to_owned).collect()
}

#[test]
fn circles_of_imports_are_found() {
    let sources = [
        ("src/lib.rs", "mod a;\nmod b;\npub use a::A;"),
        ("src/a.rs", "mod one;\nmod two;\nmod three;\npub use one::One;"),
        ("src/a/one.rs", "use super::two::Two;\nuse crate::{A, b::{B, C as D}};"),
        ("src/a/two.rs", "fn f() -> super::three::Three {}"),
        ("src/a/three.rs", "use super::One;"),
        ("src/b.rs", "mod c;\nuse crate::a::One;"),
        ("src/b/c.rs", "use std::fmt;"),
    ];
    let graph = graph(&sources.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(graph["src/a/one.rs"], set(&["src/a.rs", "src/a/two.rs", "src/b.rs"]));
    assert_eq!(circles(&folders(&graph), 1), [set(&["src/a", "src/b"])]);
    let files = ["src/a/one.rs", "src/a/three.rs", "src/a/two.rs"];
    assert_eq!(circles(&within_folders(&graph), 2), [set(&files)]);
}
