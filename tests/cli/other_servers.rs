//! Commands against a server of another protocol, and against one that never answers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::{assert_fails, stdout};
use crate::server::polynym;

const COMMANDS: [&[&str]; 4] = [
    &["resolve", "handle:joe"],
    &["health"],
    &["bench", "health"],
    &["identity", "normalize", "--json", "handle:joe"],
];

/// Starts a listener that serves each connection on a thread. Returns its URL.
fn listen(serve: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    url
}

#[test]
fn a_server_of_another_protocol_is_reported() {
    let url = listen(|mut stream| {
        let _ = stream.read(&mut [0; 1_024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");

        // A socket that is closed with unread bytes is reset, and the client loses the answer.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = io::copy(&mut stream, &mut io::sink());
    });

    for command in COMMANDS {
        let output = polynym(&[command, &["--server", &url]].concat()).output().unwrap();
        assert_fails(&output, 1, &["not a Polynym server", "check the --server"]);
        assert!(!stdout(&output).contains("calls_per_second"));
    }
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let url = listen(std::mem::forget);
    for command in COMMANDS {
        let output = polynym(&[command, &["--server", &url, "--timeout", "300ms"]].concat())
            .output()
            .unwrap();
        assert_fails(&output, 1, &["no answer came in time", "--timeout"]);
    }
}
