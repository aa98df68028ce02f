//! Serves the conformance service of the Connect project on the HTTP listener of the transport.
//! The suite starts this program, says on its standard input how to serve, and calls it.

mod methods;
mod proto;
mod respond;

use std::error::Error;
use std::future::pending;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use polynym_access::{Access, CallPurpose};
use polynym_transport::http::{Http, HttpOptions};
use polynym_transport::method::Methods;
use polynym_transport::{
    Authorization, Listener, Listeners, Options, Protocol, Services, Tls, TlsFiles,
};
use prost::Message;
use tempfile::TempDir;
use tokio::net::TcpListener;

use proto::{DESCRIPTORS, ServerCompatRequest, ServerCompatResponse};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let request: ServerCompatRequest = read_request()?;
    let folder = tempfile::tempdir()?;
    let tls = tls(&request, &folder)?;
    let tcp = TcpListener::bind("127.0.0.1:0").await?;
    let port = tcp.local_addr()?.port();
    let options = HttpOptions {
        prefix: String::new(),
        allowed_origins: Vec::new(),
        pages: Vec::new(),
        site: None,
    };
    let http = Http::new(options).into();
    // The suite calls the HTTP listener alone.
    let grpc = TcpListener::bind("127.0.0.1:0").await?;
    let listeners = Listeners { http: Some((Listener { tcp, tls }, http)), ..grpc.into() };

    let pem_cert = request.server_creds.unwrap_or_default().cert;
    let response =
        ServerCompatResponse { host: "127.0.0.1".to_owned(), port: port.into(), pem_cert };
    write_response(&response)?;
    let methods = methods::methods(request.message_receive_limit as usize);
    let services = Services {
        methods: Methods::new(methods, DESCRIPTORS)?,
        authorization: Authorization::new(Arc::new(Access::open()), |_| Ok(CallPurpose::default())),
    };
    polynym_transport::serve(listeners, services, Options::default(), pending()).await;
    Ok(())
}

/// The TLS of the request, with its files in `folder`.
fn tls(request: &ServerCompatRequest, folder: &TempDir) -> Outcome<Option<Tls>> {
    let Some(credentials) = request.server_creds.as_ref().filter(|_| request.use_tls) else {
        return Ok(None);
    };
    let write = |name: &str, content: &[u8]| {
        let path = Path::join(folder.path(), name);
        std::fs::write(&path, content).map(|()| path)
    };
    let clients = &request.client_tls_cert;
    let client_authorities =
        (!clients.is_empty()).then(|| write("clients.pem", clients)).transpose()?;
    Ok(Some(Tls::from_files(TlsFiles {
        certificate: write("certificate.pem", &credentials.cert)?,
        key: write("key.pem", &credentials.key)?,
        client_required: client_authorities.is_some(),
        client_authorities,
        protocol: Protocol::Any,
    })?))
}

/// Reads a message after its length.
fn read_request<M: Message + Default>() -> Outcome<M> {
    let mut input = std::io::stdin().lock();
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    input.read_exact(&mut bytes)?;
    Ok(M::decode(&*bytes)?)
}

/// Writes a message after its length.
fn write_response(message: &impl Message) -> Outcome<()> {
    let bytes = message.encode_to_vec();
    let mut output = std::io::stdout().lock();
    output.write_all(&(bytes.len() as u32).to_be_bytes())?;
    output.write_all(&bytes)?;
    Ok(output.flush()?)
}
