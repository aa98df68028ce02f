//! The HTTP listener: JSON and protocol buffers over HTTP/1.1 and HTTP/2.

mod attacks;
mod browsers;
mod input;
mod limits;
mod methods;
mod requests;
mod web;

use http::Version;
use testkit::http::HttpClient;

use crate::server::Server;

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];
const RESOLVE: &str = "/polynym.v1.DirectoryService/ResolveIdentity";
const EXPORT: &str = "/polynym.v1.AdminService/ExportUsers";
const JSON: &str = "application/json";
const JOE: &str = r#"{"identifier":{"handle":"joe"}}"#;

/// A server with sample users and an HTTP listener, and the URL of that.
fn serve(arguments: &[&str]) -> (Server, String) {
    let own = ["--sample", "--http-listen", "127.0.0.1:0"];
    let mut server = Server::start(&[&own, arguments].concat());
    let url = server.http_url();
    (server, url)
}

/// Connections of both versions.
async fn connections(url: &str) -> [HttpClient; 2] {
    let [one, two] = VERSIONS;
    [HttpClient::connect(url, one).await, HttpClient::connect(url, two).await]
}
