//! Commands that talk to what is no server of this program.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::{assert_fails, out};
use crate::server::polynym;

const COMMANDS: [&[&str]; 3] =
    [&["resolve", "handle:joe"], &["bench", "health"], &["identity", "normalize", "--json", "handle:joe"]];

/// Something that listens and does this with who comes; answers its URL.
fn listen(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    url
}

#[test]
fn what_speaks_something_else_is_told_as_such() {
    let url = listen(|mut stream| {
        let _ = stream.read(&mut [0; 1_024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    for command in COMMANDS {
        let output = polynym(&[command, &["--server", &url]].concat()).output().unwrap();
        assert_fails(&output, 1, &["is no Polynym server", "check the --server"]);
        assert!(!out(&output).contains("calls_per_second"));
    }
}

#[test]
fn what_says_nothing_is_told_as_such() {
    let url = listen(std::mem::forget);
    for command in COMMANDS {
        let output = polynym(&[command, &["--server", &url, "--timeout", "300ms"]].concat()).output().unwrap();
        assert_fails(&output, 1, &["no answer came in time", "--timeout"]);
    }
}
