//! Servers with tokens, and browsers that are signed in with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use testkit::output::stdout;
use testkit::server::polynym;

use crate::browser::{Browser, Site};

/// A server with a credentials file.
pub struct GuardedSite {
    pub site: Site,
    folder: TempDir,
    tokens: Vec<(String, String)>,
}

impl GuardedSite {
    /// Starts a server with made-up users, and with callers of these names, roles and tenants.
    pub fn start(callers: &[(&str, &str, &str)]) -> Self {
        Self::start_with(callers, &[])
    }

    /// Starts one with these arguments, too.
    pub fn start_with(callers: &[(&str, &str, &str)], arguments: &[&str]) -> Self {
        Self::start_with_text(callers, "", arguments)
    }

    /// Starts one whose credentials file has this text, too.
    pub fn start_with_text(callers: &[(&str, &str, &str)], text: &str, arguments: &[&str]) -> Self {
        let command = |_: &Path| polynym(&["serve", "--log", "error"]);
        Self::start_by(callers, text, command, arguments)
    }

    /// Starts one by a command for the folder of the credentials file.
    pub fn start_by(
        callers: &[(&str, &str, &str)],
        text: &str,
        command: impl FnOnce(&Path) -> Command,
        arguments: &[&str],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("callers.toml");
        let tokens = callers.iter().map(|(name, role, tenants)| {
            let file = file.to_str().unwrap();
            let options = ["--role", role, "--tenants", tenants, "--credentials", file];
            let arguments = [&["token", "create", name][..], &options].concat();
            let token = stdout(&polynym(&arguments).output().unwrap()).trim().to_owned();
            ((*name).to_owned(), token)
        });
        let tokens = tokens.collect();
        let known = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, format!("{known}\n{text}")).unwrap();
        let own = ["--sample", "--credentials", file.to_str().unwrap()];
        let site = Site::start_by(&mut command(folder.path()), &[&own, arguments].concat());
        Self { site, folder, tokens }
    }

    /// The token of a caller.
    pub fn token(&self, name: &str) -> &str {
        &self.tokens.iter().find(|(known, _)| known == name).unwrap().1
    }

    /// A browser of a caller.
    pub async fn browser(&self, name: &str) -> Browser {
        let mut browser = self.site.browser().await;
        let fields = [("token", self.token(name)), ("next", "")];
        browser.post("/console/sign-in", &fields).await.assert_has(&["Who is this?"]);
        browser
    }

    /// The credentials file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("callers.toml")
    }

    /// Revokes the tokens of a caller. The server follows within seconds.
    pub fn revoke(&self, name: &str) {
        let file = self.file();
        assert!(fs::exists(&file).unwrap());
        let arguments = ["token", "revoke", name, "--credentials", file.to_str().unwrap()];
        assert!(polynym(&arguments).output().unwrap().status.success());
    }
}
