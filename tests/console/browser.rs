//! A browser without scripts: it keeps cookies, and follows what forms lead to.

use std::fs;
use std::process::Command;

use http::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use tempfile::TempDir;
use testkit::http::{HttpClient, HttpResponse};
use testkit::server::{Server, polynym};
use url::form_urlencoded::Serializer;

/// The path of the pages of the tenant `default`.
pub const HOME: &str = "/console/t/default";

/// A server with the console.
pub struct Site {
    pub server: Server,
    /// The address of the HTTP listener.
    pub url: String,
    _store: TempDir,
}

impl Site {
    /// Starts a server with these arguments; without a store, in an empty temporary one.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(&mut polynym(&["serve", "--log", "error"]), arguments)
    }

    /// The same by a command that runs a server.
    pub fn start_by(command: &mut Command, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        let listen = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
        let own = [&listen[..], &["--console", "--store", &store]].concat();
        let count = own.len() - if arguments.contains(&"--store") { 2 } else { 0 };
        let mut server = Server::start_with(command, &[&own[..count], arguments].concat());
        let url = server.http_url();
        Self { server, url, _store: folder }
    }

    /// Starts a server with made-up users.
    pub fn with_sample() -> Self {
        Self::start(&["--sample"])
    }

    /// The most memory that the server has had, in MiB.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
    }

    /// Opens a browser without cookies.
    pub async fn browser(&self) -> Browser {
        Browser::connect(&self.url).await
    }
}

/// A browser.
pub struct Browser {
    /// The address of its site.
    url: String,
    client: HttpClient,
    cookies: Vec<(String, String)>,
    /// Headers of every request.
    pub headers: Vec<(&'static str, String)>,
}

/// What a request led to.
pub struct Answer {
    pub status: u16,
    /// The path of the page, after redirects.
    pub path: String,
    pub text: String,
    pub response: HttpResponse,
}

impl Answer {
    /// Fails unless the page has these texts.
    pub fn assert_has(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.text.contains(text), "no {text:?} at {}:\n{}", self.path, self.text);
        }
        self
    }

    /// The value of the first attribute of this name whose value starts so.
    pub fn attribute(&self, name: &str, start: &str) -> String {
        let begin = format!("{name}=\"{start}");
        let (_, rest) = self.text.split_once(&begin).unwrap_or_else(|| {
            panic!("no {begin} at {}:\n{}", self.path, self.text);
        });
        format!("{start}{}", rest.split('"').next().unwrap())
    }

    /// The address of the next page of a list.
    pub fn next_page(&self) -> String {
        self.attribute("rel=\"next\" href", "").replace("&#38;", "&")
    }

    /// The values of a form's fields, by the path that the form is sent to: those that browsers
    /// would send unchanged.
    pub fn hidden_fields(&self, action: &str) -> Vec<(String, String)> {
        let begin = format!("action=\"{action}\"");
        // The frame of the page has forms before those of the content.
        let (_, rest) = self.text.rsplit_once(&begin).unwrap_or_else(|| {
            panic!("no form for {action} at {}:\n{}", self.path, self.text);
        });
        // A button may be outside of its form, and send it elsewhere.
        let tag = rest.split('>').next().unwrap_or_default();
        let owner = self.text.split(&begin).next().unwrap_or_default().rsplit('<').next();
        let owner = owner.filter(|begin| begin.starts_with("button")).map(|begin| {
            let whole = format!("{begin}{tag}");
            let (_, id) = whole.split_once("form=\"").unwrap_or_default();
            id.split('"').next().unwrap_or_default().to_owned()
        });
        let form = match &owner {
            Some(id) => self.text.split(&format!("<form id=\"{id}\"")).nth(1).unwrap_or_default(),
            None => rest,
        };
        let form = form.split("</form>").next().unwrap();
        let inputs = form.split("<input ").skip(1).filter(|input| input.contains("\"hidden\""));
        let value = |input: &str, name: &str| {
            let (_, rest) = input.split_once(&format!("{name}=\"")).unwrap_or_default();
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        let references =
            [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
        let text = |html: String| {
            references.iter().fold(html, |html, (reference, c)| html.replace(reference, c))
        };
        inputs.map(|input| (value(input, "name"), text(value(input, "value")))).collect()
    }
}

impl Browser {
    /// Opens a browser without cookies for this listener.
    pub async fn connect(url: &str) -> Self {
        let client = HttpClient::connect(url, Version::HTTP_11).await;
        Self { url: url.to_owned(), client, cookies: Vec::new(), headers: Vec::new() }
    }

    /// Opens a page, and follows redirects.
    pub async fn get(&mut self, path: &str) -> Answer {
        let request = Request::get(path).body(Full::default()).unwrap();
        self.send(request).await
    }

    /// Sends a form, and follows redirects.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = Request::post(path).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request.body(Full::from(body)).unwrap()).await
    }

    /// Fills in a form of a page: its hidden fields, and these.
    pub async fn submit(&mut self, page: &Answer, path: &str, fields: &[(&str, &str)]) -> Answer {
        let hidden = page.hidden_fields(path);
        let hidden = hidden.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all: Vec<_> = hidden.chain(fields.iter().copied()).collect();
        self.post(path, &all).await
    }

    /// Sends a request, and follows redirects within the site.
    pub async fn send(&mut self, mut request: Request<Full<bytes::Bytes>>) -> Answer {
        loop {
            let path = request.uri().to_string();
            request.headers_mut().insert(COOKIE, self.cookie_header().parse().unwrap());
            for (name, value) in &self.headers {
                request.headers_mut().insert(*name, value.parse().unwrap());
            }
            let response = self.client.send(request).await;
            self.keep_cookies(&response);
            let next = response.headers.get(LOCATION).map(|next| next.to_str().unwrap());
            let next = next.map(|next| next.strip_prefix(&self.url).unwrap_or(next));
            let Some(next) = next.filter(|next| next.starts_with('/')) else {
                let text = String::from_utf8_lossy(&response.body).into_owned();
                return Answer { status: response.status, path, text, response };
            };
            assert!([302, 303].contains(&response.status), "{path}");
            request = Request::get(next).body(Full::default()).unwrap();
        }
    }

    /// Sends a request, and waits for the headers of the response alone.
    pub async fn open(&mut self, mut request: Request<Full<bytes::Bytes>>) -> Response<Incoming> {
        request.headers_mut().insert(COOKIE, self.cookie_header().parse().unwrap());
        self.client.open(request).await
    }

    fn cookie_header(&self) -> String {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        cookies.collect::<Vec<_>>().join("; ")
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let found = self.cookies.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Sets a cookie.
    pub fn set_cookie(&mut self, name: &str, value: &str) {
        self.cookies.retain(|(known, _)| known != name);
        self.cookies.push((name.to_owned(), value.to_owned()));
    }

    /// Takes the cookies of another browser.
    pub fn steal(&mut self, other: &Self) {
        self.cookies.clone_from(&other.cookies);
    }

    fn keep_cookies(&mut self, response: &HttpResponse) {
        for header in response.headers.get_all(SET_COOKIE) {
            let text = header.to_str().unwrap();
            let pair = text.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !text.contains("Max-Age=0") {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

/// The page of the user whom a text finds.
pub async fn user(browser: &mut Browser, text: &str) -> Answer {
    let found = browser.post(&format!("{HOME}/search"), &[("q", text)]).await;
    let path = found.attribute("href", &format!("{HOME}/users/"));
    browser.get(&path).await
}

/// The path of a user's page.
pub async fn path(browser: &mut Browser, text: &str) -> String {
    user(browser, text).await.path
}
