//! Pages in browsers: they reach a server without credentials by its own name alone, and others
//! if their origin is allowed.

use std::io::{Read, Write};
use std::net::TcpStream;

use http::{Method, Request};
use http_body_util::Full;

use super::{JOE, JSON, RESOLVE, connections, serve};
use crate::access::Callers;

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_a_page_of_another_name_is_refused() {
    let (_server, url) = serve(&[]);
    let own = url.replace("127.0.0.1", "localhost");
    let host = own.trim_start_matches("http://");
    for mut client in connections(&url).await {
        for (name, value, status, reason) in [
            ("host", "evil.example", 403, "HOST_DENIED"),
            ("host", "localhost.evil.example", 403, "HOST_DENIED"),
            ("host", host, 200, ""),
            ("origin", "http://evil.example", 403, "ORIGIN_DENIED"),
            ("origin", "null", 403, "ORIGIN_DENIED"),
            ("origin", &*url, 200, ""),
        ] {
            let response = client.post(RESOLVE, JSON, &[(name, value)], JOE).await;
            assert_eq!(response.status, status, "{name}: {value}");
            if status == 403 {
                assert_eq!(response.reason(), reason, "{name}: {value}");
            }
            assert_eq!(response.header("access-control-allow-origin"), "");
        }
    }
}

/// Probes send the address of a machine, or no host at all. These pages have nothing of the users.
#[tokio::test(flavor = "multi_thread")]
async fn public_pages_answer_any_host_and_http_1_0() {
    let (_server, url) = serve(&["--http-prefix", "/polynym"]);
    let address = url.trim_start_matches("http://").trim_end_matches("/polynym");
    for path in ["/polynym/healthz", "/polynym/openapi.json"] {
        for mut client in connections(&format!("http://{address}")).await {
            let request = Request::get(path).header("host", "10.1.2.3:7180");
            let request = request.header("origin", "http://evil.example");
            let response = client.send(request.body(Full::default()).unwrap()).await;
            assert_eq!(response.status, 200, "{path}");
            assert_eq!(response.header("access-control-allow-origin"), "");
        }
        for host in ["", "host: evil.example\r\n"] {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\n{host}\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{path} {host}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_leads_to_the_console_where_there_is_one() {
    for (arguments, paths, location) in [
        (&[][..], &["/"][..], "/console"),
        (&["--http-prefix", "/users"], &["/users", "/users/"], "/users/console"),
        (&["--console=false"], &["/"], ""),
    ] {
        let (_server, url) = serve(arguments);
        for mut client in connections(url.trim_end_matches("/users")).await {
            for path in paths {
                let request = Request::get(*path).body(Full::default()).unwrap();
                let response = client.send(request).await;
                let status = if location.is_empty() { 404 } else { 302 };
                assert_eq!((response.status, response.header("location")), (status, location));
                let request = Request::get(*path).header("host", "evil.example");
                let response = client.send(request.body(Full::default()).unwrap()).await;
                assert_eq!(response.status, 403, "{path}");
                assert_eq!(client.post(path, JSON, &[], JOE).await.status, 404, "{path}");
            }
            if !location.is_empty() {
                let request = Request::get(location).body(Full::default()).unwrap();
                let response = client.send(request).await;
                assert!([200, 303].contains(&response.status), "{}", response.status);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_allowed_origins_may_call() {
    let allowed = "https://console.example.com";
    let callers = Callers::new();
    let token = callers.create("page", "resolver", "*");
    let listen = ["--http-listen", "127.0.0.1:0", "--http-allow-origin", allowed];
    let mut server = callers.serve(&listen);
    let url = server.http_url();
    let bearer = format!("Bearer {token}");
    for mut client in connections(&url).await {
        for origin in [allowed, "https://other.example.com"] {
            let preflight = Request::builder()
                .method(Method::OPTIONS)
                .uri(RESOLVE)
                .header("origin", origin)
                .header("access-control-request-method", "POST");
            let response = client.send(preflight.body(Full::default()).unwrap()).await;
            let echoed = response.header("access-control-allow-origin").to_owned();
            if origin == allowed {
                assert_eq!((response.status, &*echoed), (204, allowed));
                let headers = response.header("access-control-allow-headers");
                let names: Vec<_> = headers.split(", ").collect();
                for name in ["authorization", "content-type", "tracestate", "baggage"] {
                    assert!(names.contains(&name), "{name}: {headers}");
                }
            } else {
                assert_eq!((response.status, &*echoed), (405, ""));
            }
            // A name in front of the server is the operator's business once callers have tokens.
            let headers =
                [("origin", origin), ("authorization", &*bearer), ("host", "users.example.com")];
            let response = client.post(RESOLVE, JSON, &headers, JOE).await;
            let echoed = response.header("access-control-allow-origin");
            assert_eq!((response.status, echoed == allowed), (200, origin == allowed));
        }
    }
}
