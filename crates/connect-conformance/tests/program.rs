//! The program serves as its standard input says, and prints its address.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use prost::Message;

/// The response of the program: where it listens.
#[derive(Message)]
struct Address {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(uint32, tag = "2")]
    port: u32,
}

/// A running program, which is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_call_without_a_body_is_answered() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_connect-conformance"));
    let mut program =
        Program(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    // A request without fields: no TLS, and any version of HTTP.
    program.0.stdin.take().unwrap().write_all(&[0; 4]).unwrap();
    let mut output = program.0.stdout.take().unwrap();
    let mut length = [0; 4];
    output.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    output.read_exact(&mut bytes).unwrap();
    let Address { host, port } = Address::decode(&*bytes).unwrap();

    let mut stream = TcpStream::connect(format!("{host}:{port}")).unwrap();
    let request = format!(
        "POST /connectrpc.conformance.v1.ConformanceService/Unimplemented HTTP/1.1\r\n\
         host: {host}:{port}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
         connection: close\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 501 "), "{response}");
    assert!(response.contains(r#""code":"unimplemented""#), "{response}");
}
