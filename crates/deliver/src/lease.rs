//! The lease of a delivery that a server has.

use std::time::{Duration, Instant};

use polynym_directory::model::delivery::step::LEASE;
use polynym_directory::{DeliveryKey, DeliveryRunStep, EventDelivery};

use crate::deliverer::Deliverer;

/// The interval at which the lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// Why a turn ended.
pub enum End {
    /// Another server has the delivery, or it is paused or gone.
    Over,
    /// Somebody changed it.
    Changed,
}

/// Renews the lease until it is lost, or the delivery is another one.
pub async fn keep(
    deliverer: &Deliverer,
    key: &DeliveryKey,
    is_same: impl Fn(&EventDelivery) -> bool,
) -> End {
    let mut valid = Instant::now() + LEASE;
    loop {
        tokio::time::sleep(RENEW_INTERVAL.min(valid.saturating_duration_since(Instant::now())))
            .await;
        let began = Instant::now();
        let renewal =
            deliverer.directory.run_delivery(key, deliverer.server, DeliveryRunStep::Renew);
        match tokio::time::timeout(valid.saturating_duration_since(began), renewal).await {
            Ok(Ok(Some(delivery))) if is_same(&delivery) => valid = began + LEASE,
            Ok(Ok(Some(_))) => return End::Changed,
            // Another server may deliver now.
            Ok(Ok(None)) | Err(_) => return End::Over,
            Ok(Err(error)) => {
                let ((tenant, id), error) = (key, error.with_causes());
                tracing::warn!(%tenant, delivery = id, %error, "a lease was not renewed");
                if Instant::now() >= valid {
                    return End::Over;
                }
            }
        }
    }
}
