//! Pages in browsers: they reach a server without credentials by its own name alone, and others
//! if their origin is allowed.

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
        let health = Request::get("/healthz").header("host", "evil.example");
        let response = client.send(health.body(Full::default()).unwrap()).await;
        assert_eq!((response.status, response.reason()), (403, "HOST_DENIED".to_owned()));
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
                assert!(headers.contains("authorization") && headers.contains("content-type"));
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
