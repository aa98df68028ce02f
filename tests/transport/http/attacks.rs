//! Attacks on HTTP/1.1, byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{JOE, RESOLVE, serve};

/// Nothing takes longer on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn connect(url: &str) -> TcpStream {
    let stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// All that the server sends until it closes the connection.
fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&bytes)),
    }
    String::from_utf8(bytes).unwrap()
}

fn statuses(text: &str) -> Vec<&str> {
    let lines = text.split("HTTP/1.1 ").skip(1);
    lines.map(|line| line.split(' ').next().unwrap()).collect()
}

fn head(more: &str) -> String {
    format!(
        "POST {RESOLVE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n"
    )
}

fn call(more: &str) -> String {
    format!("{}{JOE}", head(&format!("content-length: {}\r\n{more}", JOE.len())))
}

/// Others are answered meanwhile. With a short call timeout, a busy machine may need several
/// attempts.
fn answers(url: &str) {
    let begun = Instant::now();
    loop {
        let mut stream = connect(url);
        stream.write_all(call("connection: close\r\n").as_bytes()).unwrap();
        let text = read_all(&mut stream);
        if statuses(&text) == ["200"] {
            return;
        }
        assert!(statuses(&text) == ["504"] && begun.elapsed() < TIMEOUT, "{text}");
    }
}

/// Connections that say nothing, that stop within the headers, and that send them byte by byte, as
/// their first request or after another one.
#[test]
fn slow_headers_end_within_seconds() {
    let (_server, url) = serve(&[]);
    let mut silent: Vec<_> = (0..50).map(|_| connect(&url)).collect();
    let mut stopped: Vec<_> = (0..50).map(|_| connect(&url)).collect();
    let mut slow: Vec<_> = (0..50).map(|_| connect(&url)).collect();
    let mut second: Vec<_> = (0..50).map(|_| connect(&url)).collect();
    for stream in &mut stopped {
        stream.write_all(&head("").as_bytes()[..60]).unwrap();
    }
    for stream in &mut second {
        stream.write_all(call("").as_bytes()).unwrap();
    }
    let begun = Instant::now();
    let text = head(&"x: y\r\n".repeat(50));
    let mut bytes = text.bytes();
    while begun.elapsed() < Duration::from_secs(13) {
        let byte = bytes.next().unwrap();
        for stream in slow.iter_mut().chain(&mut second) {
            // The server may have closed it.
            let _ = stream.write_all(&[byte]);
        }
        answers(&url);
        sleep(Duration::from_millis(200));
    }
    for stream in silent.iter_mut().chain(&mut stopped).chain(&mut slow) {
        assert_eq!(statuses(&read_all(stream)), [""; 0]);
    }
    for stream in &mut second {
        assert_eq!(statuses(&read_all(stream)), ["200"]);
    }
}

/// A connection that waits for its next request is idle, not slow.
#[test]
fn idle_connections_stay_open_longer_than_headers_may_take() {
    let (_server, url) = serve(&[]);
    let mut stream = connect(&url);
    for _ in 0..2 {
        stream.write_all(call("").as_bytes()).unwrap();
        let mut start = [0; 15];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        sleep(Duration::from_secs(12));
        // What is left of the answer.
        stream.set_nonblocking(true).unwrap();
        let mut rest = [0; 65_536];
        let _ = stream.read(&mut rest);
        stream.set_nonblocking(false).unwrap();
    }
    stream.write_all(call("connection: close\r\n").as_bytes()).unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), ["200"]);
}

#[test]
fn slow_bodies_end_with_their_call() {
    let (_server, url) = serve(&["--call-timeout", "2s"]);
    let mut slow: Vec<_> = (0..50).map(|_| connect(&url)).collect();
    for stream in &mut slow {
        stream.write_all(head("content-length: 1000\r\n").as_bytes()).unwrap();
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        for stream in &mut slow {
            let _ = stream.write_all(b" ");
        }
        answers(&url);
        sleep(Duration::from_millis(100));
    }
    for stream in &mut slow {
        let text = read_all(stream);
        assert_eq!(statuses(&text), ["504"], "{text}");
        assert!(text.contains("deadline_exceeded"), "{text}");
    }
}

/// A proxy in front might take another length for the right one: no byte of a body is ever the
/// start of a request.
#[test]
fn requests_with_two_lengths_smuggle_nothing() {
    let (_server, url) = serve(&[]);
    let inner = call("");
    let chunked = format!("{:x}\r\n{JOE}\r\n0\r\n\r\n", JOE.len());
    let length = |n: usize| format!("content-length: {n}\r\n");
    let chunks = "transfer-encoding: chunked\r\n";
    let cases = [
        // A length and chunks, in both orders: the chunks count, and the connection ends.
        (format!("{}{chunks}", length(chunked.len() + inner.len())), &chunked),
        (format!("{chunks}{}", length(4)), &chunked),
        // Two lengths.
        (format!("{}{}", length(JOE.len()), length(JOE.len() + 7)), &JOE.to_owned()),
        (length(JOE.len()).replace("content-length: ", "content-length: +"), &JOE.to_owned()),
        (format!("content-length: {}, {}\r\n", JOE.len(), 0), &JOE.to_owned()),
        // Encodings that are not chunks in the end, or not at all.
        ("transfer-encoding: chunked, identity\r\n".to_owned(), &chunked),
        ("transfer-encoding: xchunked\r\n".to_owned(), &chunked),
        ("transfer-encoding : chunked\r\n".to_owned(), &chunked),
        ("transfer-encoding:\x0bchunked\r\n".to_owned(), &chunked),
        // Malformed chunks.
        (chunks.to_owned(), &format!("-1\r\n{JOE}\r\n0\r\n\r\n")),
        (chunks.to_owned(), &format!("fffffffffffffffff\r\n{JOE}\r\n0\r\n\r\n")),
        (chunks.to_owned(), &format!("{:x}\n{JOE}\n0\n\n", JOE.len())),
    ];
    let mut outcomes = Vec::new();
    for (headers, body) in cases {
        let mut stream = connect(&url);
        let text = format!("{}{body}{inner}", head(&headers));
        stream.write_all(text.as_bytes()).unwrap();
        let answered = read_all(&mut stream);
        let all = statuses(&answered);
        assert!(all.len() <= 1, "{headers:?}: {answered}");
        outcomes.push(all.first().map_or("closed".to_owned(), |status| (*status).to_owned()));
    }
    println!("{outcomes:?}");
    assert!(outcomes.iter().filter(|outcome| *outcome == "200").count() <= 2, "{outcomes:?}");
    answers(&url);
}

#[test]
fn large_headers_are_refused() {
    let (server, url) = serve(&[]);
    answers(&url);
    let before = server.memory();
    let cases = [
        (call(&format!("x: {}\r\n", "y".repeat(9_000))), "431"),
        (call(&format!("x: {}\r\n", "y".repeat(40_000))), "431"),
        (call(&"x: y\r\n".repeat(99)), "431"),
        (call(&"x: y\r\n".repeat(5_000)), "431"),
        (call("").replacen(RESOLVE, &format!("/{}", "x".repeat(9_000)), 1), "404"),
        (call("").replacen(RESOLVE, &format!("/{}", "x".repeat(70_000)), 1), "414"),
    ];
    for (text, expected) in cases {
        let mut stream = connect(&url);
        // The server may close the connection before it has read all.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let answered = read_all(&mut stream);
        let all = statuses(&answered);
        assert!(all.iter().all(|status| ["431", expected].contains(status)), "{answered}");
        assert!(all.len() <= 1, "{answered}");
    }
    // Headers without end.
    let mut floods: Vec<_> = (0..100).map(|_| connect(&url)).collect();
    for stream in &mut floods {
        let _ = stream.write_all(head("").trim_end().as_bytes());
        for _ in 0..64 {
            let _ = stream.write_all(format!("\r\nx: {}", "y".repeat(4_000)).as_bytes());
        }
    }
    answers(&url);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB", grown >> 20);
}

/// Clients that close their side, at once or within a body, and clients that vanish.
#[test]
fn half_open_connections_end() {
    let (server, url) = serve(&["--connection-idle", "1s"]);
    for n in 0..100 {
        let mut stream = connect(&url);
        let text = match n % 4 {
            0 => String::new(),
            1 => head("content-length: 1000\r\n"),
            2 => head("")[..40].to_owned(),
            _ => call(""),
        };
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answered = read_all(&mut stream);
        // The body ended early, as if its client had left; or the call was complete.
        let expected = [None, Some("499"), None, Some("200")][n % 4];
        let all = statuses(&answered);
        assert!(all.is_empty() || all == Vec::from_iter(expected), "{n}: {answered}");
    }
    // Connections that stay open and say nothing are closed once they are idle.
    let mut idle = connect(&url);
    idle.write_all(call("").as_bytes()).unwrap();
    assert_eq!(statuses(&read_all(&mut idle)), ["200"]);
    answers(&url);
    drop(server);
}

/// Several requests at once are answered one after the other, and errors do not end a connection.
#[test]
fn requests_in_advance_are_answered_in_order() {
    let (_server, url) = serve(&[]);
    let mut stream = connect(&url);
    let wrong = call("").replacen("POST", "PUT", 1);
    let unknown = call("").replacen("Resolve", "Resolv", 1);
    let last = call("connection: close\r\n");
    let text = [call(""), wrong, unknown, call("connect-timeout-ms: x\r\n"), last].concat();
    stream.write_all(text.as_bytes()).unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), ["200", "405", "404", "400", "200"]);
}

#[test]
fn a_client_may_ask_before_it_sends() {
    let (_server, url) = serve(&[]);
    let expect = "expect: 100-continue\r\nconnection: close\r\n";
    let length = format!("content-length: {}\r\n", JOE.len());
    let mut stream = connect(&url);
    stream.write_all(head(&format!("{length}{expect}")).as_bytes()).unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(JOE.as_bytes()).unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), ["200"]);

    // One that is refused by its headers is not asked for its body.
    let mut stream = connect(&url);
    let refused = head(&format!("{length}{expect}")).replacen("application/json", "text/plain", 1);
    stream.write_all(refused.as_bytes()).unwrap();
    assert_eq!(statuses(&read_all(&mut stream)), ["415"]);
}
