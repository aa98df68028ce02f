//! The client of `sign_in_service`: sends it an email and prints the answer.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> Result<(), Box<dyn Error>> {
    let email = std::env::args().nth(1).ok_or("usage: sign_in_client EMAIL")?;
    let mut service = TcpStream::connect("127.0.0.1:7272")?;
    writeln!(service, "{email}")?;
    let mut reply = String::new();
    service.read_to_string(&mut reply)?;
    print!("{reply}");
    Ok(())
}
