//! The limits of callers, and the delay before a retry.

use std::fs;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{JOE, JSON, RESOLVE, connections};
use crate::access::Callers;

#[tokio::test(flavor = "multi_thread")]
async fn rates_count_and_say_when_to_retry() {
    let callers = Callers::new();
    let token = callers.create("billing", "resolver", "*");
    let text = fs::read_to_string(callers.path()).unwrap();
    let limited = text.replace("token =", "rate = { calls = 1 }\ntoken =");
    fs::write(callers.path(), limited).unwrap();
    let mut server = callers.serve(&["--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    let bearer = format!("Bearer {token}");
    let (mut answered, mut refused) = (0, 0);
    let begun = std::time::Instant::now();
    for mut client in connections(&url).await {
        for _ in 0..40 {
            let headers = [("authorization", &*bearer)];
            let response = client.post(RESOLVE, JSON, &headers, JOE).await;
            if response.status == 200 {
                answered += 1;
                continue;
            }
            assert_eq!((response.status, &*response.reason()), (429, "RATE_LIMITED"));
            let seconds: u64 = response.header("retry-after").parse().unwrap();
            assert!((1..30).contains(&seconds), "{seconds}");
            refused += 1;
        }
        let most = 1 + begun.elapsed().as_secs_f64().ceil() as usize;
        assert!(answered <= most, "{answered} of at most {most}");
    }
    assert!(answered >= 1 && refused >= 1, "{answered} answered, {refused} refused");
}

/// Refusals of tokens are slow, and say which scheme to use.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_is_refused_slowly() {
    let callers = Callers::new();
    callers.create("billing", "resolver", "*");
    let mut server = callers.serve(&["--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    for mut client in connections(&url).await {
        let begun = std::time::Instant::now();
        let response = client.post(RESOLVE, JSON, &[("authorization", "Bearer x")], JOE).await;
        assert!(begun.elapsed() >= Duration::from_millis(100));
        assert_eq!((response.status, &*response.reason()), (401, "CREDENTIAL_INVALID"));
        assert_eq!(response.header("www-authenticate"), "Bearer");
    }
}

/// An import that has had no answer yet ends with its caller's token.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_lines_ends_with_its_credential() {
    let callers = Callers::new();
    callers.create("other", "admin", "*");
    let token = callers.create("one", "admin", "*");
    let mut server = callers.serve(&["--http-listen", "127.0.0.1:0"]);
    let address = server.http_url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /polynym.v1.AdminService/ImportUsers HTTP/1.1\r\nhost: {address}\r\n\
         content-type: application/x-ndjson\r\nauthorization: Bearer {token}\r\n\
         transfer-encoding: chunked\r\n\r\n1\r\n\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    callers.run(&["revoke", "one"]);
    let mut response = [0; 12];
    let read = async {
        loop {
            // An empty line, which imports nothing and has no answer.
            let _ = stream.write_all(b"1\r\n\n\r\n").await;
            let answer = timeout(Duration::from_millis(500), stream.read_exact(&mut response));
            if let Ok(answer) = answer.await {
                return answer.unwrap();
            }
        }
    };
    timeout(Duration::from_secs(60), read).await.unwrap();
    assert_eq!(&response, b"HTTP/1.1 401");
}
