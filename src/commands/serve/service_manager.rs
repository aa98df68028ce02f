//! Notifies the service manager that started the server, such as systemd, of its start and
//! stop. The protocol is that of sd_notify: a datagram to the socket that NOTIFY_SOCKET names.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable with the name of the service manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The service manager, if there is one.
pub struct ServiceManager {
    socket: Option<OsString>,
}

impl ServiceManager {
    /// The service manager of the environment.
    pub fn from_environment() -> Self {
        Self { socket: std::env::var_os(SOCKET).filter(|name| !name.is_empty()) }
    }

    /// Notifies it that the server accepts calls.
    pub fn ready(&self) {
        self.notify("READY=1");
    }

    /// Notifies it that the server is about to stop.
    pub fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    fn notify(&self, state: &str) {
        if let Some(name) = &self.socket
            && let Err(error) = send(name, state)
        {
            tracing::warn!(%error, state, "cannot notify the service manager of {SOCKET}");
        }
    }
}

fn send(name: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A service manager that reads nothing holds up neither the start nor the stop.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address(name)?).map(drop)
}

/// The address of a socket. Linux has names outside the file system, too, which begin with `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let Some(name) = name.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(name)
}
