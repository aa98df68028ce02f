//! A relay before a server, whose open connections a test can freeze.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A relay that runs until the test ends.
pub struct Relay {
    /// Where it listens.
    pub address: String,
    /// The number of times that its connections were frozen.
    freezes: Arc<AtomicUsize>,
}

impl Relay {
    /// Listens on a free port, and forwards connections to the server.
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let freezes = Arc::new(AtomicUsize::new(0));
        let (server, shared) = (server.to_owned(), Arc::clone(&freezes));
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                forward(client.try_clone().unwrap(), upstream.try_clone().unwrap(), &shared);
                forward(upstream, client, &shared);
            }
        });
        Self { address, freezes }
    }

    /// The connections that are open forward nothing more, and do not end. New ones pass.
    pub fn freeze(&self) {
        self.freezes.fetch_add(1, Ordering::SeqCst);
    }
}

/// Forwards one direction in a thread, until its connection ends or is frozen.
fn forward(mut from: TcpStream, mut to: TcpStream, freezes: &Arc<AtomicUsize>) {
    let freezes = Arc::clone(freezes);
    let begin = freezes.load(Ordering::SeqCst);
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let is_frozen = freezes.load(Ordering::SeqCst) != begin;
            if !is_frozen && to.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
        if freezes.load(Ordering::SeqCst) != begin {
            // Dropping the sockets would end the connection.
            thread::park();
        }
    });
}
