//! The times that sessions have received: what they have seen, a later session can wait for.

use mongodb::bson::Timestamp;
use mongodb::error::Error as DriverError;
use mongodb::{Client, ClientSession, ClusterTime};

/// The latest times that some sessions have received.
#[derive(Clone, Default)]
pub struct Times {
    cluster_time: Option<ClusterTime>,
    /// What was read or written until then is visible in a session after it.
    operation_time: Option<Timestamp>,
}

impl Times {
    /// The time of a write that reads must see.
    pub const fn since(operation_time: Option<Timestamp>) -> Self {
        Self { cluster_time: None, operation_time }
    }

    /// Adds the times of a session.
    pub fn learn(&mut self, session: &ClientSession) {
        self.cluster_time = self.cluster_time.take().max(session.cluster_time().cloned());
        self.operation_time = self.operation_time.max(session.operation_time());
    }

    /// A causally consistent session after these times: each of its reads sees what was seen until
    /// then, and what its own reads have seen.
    ///
    /// # Errors
    /// The driver's.
    pub async fn session(&self, client: &Client) -> Result<ClientSession, DriverError> {
        let mut session = client.start_session().causal_consistency(true).await?;
        if let Some(cluster_time) = &self.cluster_time {
            session.advance_cluster_time(cluster_time);
        }
        if let Some(operation_time) = self.operation_time {
            session.advance_operation_time(operation_time);
        }
        Ok(session)
    }
}
