//! Long-lived streams, such as watches and imports. Each method has a pool of them, of which a
//! caller and a connection have a share. Streams of clients without a credential have a queue of
//! their own, in which a new one evicts the oldest.

use std::sync::Arc;

use tonic::Status;

use crate::budgets::state::{ConnectionState, Reservation};
use crate::eviction::{EvictionEntry, EvictionQueue};
use crate::protocol;
use polynym_access::{Caller, Permit, share_of};

/// The maximum number of streams of one connection.
const MAX_CONNECTION_STREAMS: usize = 8;
/// The maximum number of streams of clients without a credential.
pub const MAX_STRANGERS_STREAMS: usize = 1_024;

/// A method with streams.
#[derive(Clone, Copy, Debug)]
pub struct StreamMethod {
    /// Its number.
    pub index: usize,
    /// The maximum number of its streams.
    pub limit: usize,
    /// Whether its streams come to an end by themselves.
    pub is_finite: bool,
}

/// The permit of a stream: it is in the extensions of the request, for work that goes on when the
/// stream has ended.
pub type StreamPermit = Arc<Permit<3>>;

/// A long-lived stream, until this is dropped.
pub struct OpenStream {
    connection: Arc<ConnectionState>,
    _of_connection: Permit<1>,
    holder: Holder,
    /// The reservation of a stream that comes to an end by itself: its connection waits for it.
    finite: Option<Reservation>,
}

/// The streams of a connection that end before their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// None.
    #[default]
    None,
    /// Those without an end of their own: the connection is old.
    Endless,
    /// All: its client's certificate is no longer valid.
    Distrusted,
    /// All: the server stops.
    Stopping,
}

enum Holder {
    Caller(StreamPermit),
    Stranger(EvictionEntry),
    /// The site limits its streams by itself.
    Site,
}

impl OpenStream {
    /// Opens a stream of a caller.
    ///
    /// # Errors
    /// The caller or the connection has its share, or the pool is used up.
    pub fn of_caller(
        connection: &Arc<ConnectionState>,
        StreamMethod { index, limit, is_finite }: StreamMethod,
        caller: &Caller,
    ) -> Result<Self, Status> {
        let of_connection = connection_permit(connection)?;
        let permit = Permit::take([
            (caller.state.streams.of(index), caller.share(limit)),
            (connection.streams.of(index), share_of(limit)),
            (connection.server.streams.of(index), limit),
        ]);
        let permit = permit.map_err(|exhausted| match exhausted {
            0 => protocol::stream_share_exhausted(),
            _ => protocol::too_many_streams(),
        })?;
        let finite = is_finite.then(|| Reservation::for_finite_stream(connection));
        Ok(Self {
            finite,
            ..Self::new(connection, of_connection, Holder::Caller(Arc::new(permit)))
        })
    }

    /// Opens a stream of a client without a credential, in place of the oldest one if there are too
    /// many.
    ///
    /// # Errors
    /// The connection has too many streams.
    pub fn of_stranger(
        connection: &Arc<ConnectionState>,
        strangers: &Arc<EvictionQueue>,
    ) -> Result<Self, Status> {
        let of_connection = connection_permit(connection)?;
        Ok(Self::new(connection, of_connection, Holder::Stranger(strangers.add())))
    }

    /// Opens a stream of a site.
    ///
    /// # Errors
    /// The connection has too many streams.
    pub fn of_site(connection: &Arc<ConnectionState>) -> Result<Self, Status> {
        let of_connection = connection_permit(connection)?;
        Ok(Self::new(connection, of_connection, Holder::Site))
    }

    fn new(connection: &Arc<ConnectionState>, of_connection: Permit<1>, holder: Holder) -> Self {
        Self { connection: connection.clone(), _of_connection: of_connection, holder, finite: None }
    }

    /// The permit; none for a client without a credential.
    pub const fn permit(&self) -> Option<&StreamPermit> {
        match &self.holder {
            Holder::Caller(permit) => Some(permit),
            Holder::Stranger(_) | Holder::Site => None,
        }
    }

    /// Waits until another stream takes the place of this one.
    pub fn evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        let evicted = match &self.holder {
            Holder::Caller(_) | Holder::Site => None,
            Holder::Stranger(entry) => Some(entry.eviction()),
        };
        async move {
            match evicted {
                Some(evicted) => evicted.notified().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the connection or the server ends the stream before its time. Returns the
    /// status.
    pub fn ended(&self) -> impl Future<Output = Status> + Send + use<> {
        let (mut ending, is_finite) = (self.connection.ending(), self.finite.is_some());
        async move {
            let is_reached = |ending: &Ending| match ending {
                Ending::None => false,
                Ending::Endless => !is_finite,
                Ending::Distrusted | Ending::Stopping => true,
            };
            match ending.wait_for(is_reached).await.map(|reached| *reached) {
                Ok(Ending::Stopping) => protocol::server_stopping(),
                Ok(Ending::Distrusted) => protocol::certificate_distrusted(),
                Ok(_) => protocol::connection_old(),
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// A reservation for a message of the stream.
    pub fn reserve_message(&self) -> Reservation {
        match self.finite {
            // Its client must read it in time, also after the stream has ended.
            Some(_) => Reservation::for_call(&self.connection),
            None => Reservation::for_message(&self.connection),
        }
    }

    /// A reservation until the client reads on. It ages like a call.
    pub fn wait_for_client(&self) -> Reservation {
        Reservation::for_call(&self.connection)
    }
}

fn connection_permit(connection: &ConnectionState) -> Result<Permit<1>, Status> {
    connection.activity.note_use();
    let permit = Permit::take([(&connection.activity.streams, MAX_CONNECTION_STREAMS)]);
    permit.map_err(|_| protocol::too_many_streams())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::budgets::state::ServerUsage;

    const WATCH: StreamMethod = StreamMethod { index: 3, limit: 64, is_finite: false };
    const IMPORT: StreamMethod = StreamMethod { index: 9, limit: 4, is_finite: true };

    fn connection(total: &Arc<ServerUsage>) -> Arc<ConnectionState> {
        Arc::new(ConnectionState::new(total.clone()))
    }

    fn named(name: &str) -> Caller {
        Caller { name: name.to_owned(), ..Caller::anonymous() }
    }

    /// Opens as many streams as possible on new connections.
    fn fill(total: &Arc<ServerUsage>, method: StreamMethod, caller: &Caller) -> Vec<OpenStream> {
        let open = |_| OpenStream::of_caller(&connection(total), method, caller).ok();
        (0..2 * method.limit).filter_map(open).collect()
    }

    #[test]
    fn a_caller_has_half_of_each_pool() {
        let total = Arc::new(ServerUsage::default());
        let (greedy, modest) = (named("greedy"), named("modest"));
        let mut watches = fill(&total, WATCH, &greedy);
        assert_eq!(watches.len(), WATCH.limit / 2);
        let refused = OpenStream::of_caller(&connection(&total), WATCH, &greedy).err().unwrap();
        assert!(refused.message().contains("this caller"), "{refused:?}");
        let imports = fill(&total, IMPORT, &greedy);
        assert_eq!(imports.len(), 2, "another pool");
        assert_eq!(fill(&total, WATCH, &modest).len(), WATCH.limit / 2);
        watches.clear();
        assert_eq!(fill(&total, WATCH, &greedy).len(), WATCH.limit / 2);
    }

    #[test]
    fn callers_without_credentials_share_a_pool_by_connection() {
        let (total, anonymous) = (Arc::new(ServerUsage::default()), Caller::anonymous());
        let one = connection(&total);
        let open = || OpenStream::of_caller(&one, IMPORT, &anonymous);
        let held: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
        assert_eq!((held.len(), one.activity.has_calls()), (2, true));
        assert_eq!(fill(&total, IMPORT, &anonymous).len(), 2, "others have the rest");
        let watches = std::iter::from_fn(|| OpenStream::of_caller(&one, WATCH, &anonymous).ok());
        assert_eq!(watches.collect::<Vec<_>>().len(), MAX_CONNECTION_STREAMS - held.len());
    }

    #[test]
    fn a_stream_ends_with_the_trust_in_its_client() {
        let connection = connection(&Arc::default());
        let streams = [WATCH, IMPORT].map(|method| {
            OpenStream::of_caller(&connection, method, &named("caller")).unwrap().ended()
        });
        connection.end_streams(Ending::Distrusted);
        for ended in streams {
            let status = ended.now_or_never().unwrap();
            assert_eq!(status.code(), tonic::Code::Unauthenticated, "{status:?}");
        }
    }

    #[test]
    fn a_new_stream_of_a_stranger_evicts_the_oldest() {
        let (total, strangers) = (Arc::new(ServerUsage::default()), EvictionQueue::new(10));
        let open = |_| OpenStream::of_stranger(&connection(&total), &strangers).unwrap();
        let held: Vec<_> = (0..12).map(open).collect();
        let evicted = held.iter().map(|stream| stream.evicted().now_or_never().is_some());
        assert!(evicted.enumerate().all(|(n, evicted)| evicted == (n < 2)));
        assert!(fill(&total, IMPORT, &named("caller")).len() == 2);
    }
}
