//! The state that all pages share.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use polynym_access::{Access, Caller};
use polynym_transport::Connector;
use tokio::time::timeout;

use crate::cookies::SessionCookie;
use crate::requests::Requests;
use crate::samples::{Metrics, Samples};
use crate::session::{Providers, Session, Sessions, UsedForms};
use crate::strangers_form::StrangersForms;

/// The interval in which a session and its token are checked while an answer is sent.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The settings of a console.
pub struct Options {
    /// The path in front of those of the console, such as `/polynym`; empty for none.
    pub prefix: String,
    /// The callers and their rights.
    pub access: Arc<Access>,
    /// Connects to the API.
    pub connector: Connector,
    /// The names of hosts under which browsers may open the console, beside those of this machine.
    pub hosts: Vec<String>,
    /// Whether browsers use TLS.
    pub is_tls: bool,
    /// The metrics of the server, in the text format of Prometheus.
    pub metrics: Metrics,
}

/// The state that all pages share.
pub struct Shared {
    /// The path of the console, such as `/console`.
    pub base: String,
    pub access: Arc<Access>,
    pub hosts: Vec<String>,
    pub is_tls: bool,
    pub sessions: Sessions,
    pub providers: Providers,
    /// The forms that have made a token.
    pub used_forms: UsedForms,
    pub requests: Requests,
    pub strangers_forms: StrangersForms,
    pub samples: Samples,
}

impl Shared {
    pub fn new(options: Options) -> Self {
        let Options { prefix, access, connector, hosts, is_tls, metrics } = options;
        let base = format!("{prefix}/console");
        let (sessions, requests) = (Sessions::new(connector), Requests::default());
        let (strangers_forms, samples) = (StrangersForms::default(), Samples::new(metrics));
        let providers = Providers::default();
        Self {
            base,
            access,
            hosts,
            is_tls,
            sessions,
            providers,
            used_forms: UsedForms::default(),
            requests,
            strangers_forms,
            samples,
        }
    }

    /// The cookie of sessions.
    pub const fn cookie(&self) -> SessionCookie {
        SessionCookie { is_tls: self.is_tls }
    }

    /// The session of a request and its caller, if somebody is signed in.
    pub fn signed_in(&self, headers: &HeaderMap) -> Option<(Arc<Session>, Arc<Caller>)> {
        let session = self.sessions.get(&self.cookie().read(headers)?)?;
        let caller = session.caller(&self.access)?;
        Some((session, caller))
    }

    /// Waits until a session has ended: somebody signed out, or it is too old, or its token is no
    /// longer valid.
    pub async fn ended(&self, session: &Session) {
        while self.sessions.is_open(session) && session.caller(&self.access).is_some() {
            let _ = timeout(CHECK_INTERVAL, session.closed()).await;
        }
    }
}
