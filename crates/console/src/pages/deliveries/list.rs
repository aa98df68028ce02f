//! The deliveries of a tenant.

use crate::prelude::*;
use crate::views::delivery::DeliveryView;

#[derive(Template)]
#[template(path = "pages/deliveries/list.html")]
struct ListPage {
    frame: Frame,
    deliveries: Vec<DeliveryView>,
    commands: Commands,
}

/// The deliveries, by their ids.
pub async fn page(visit: Visit, Path(tenant): Path<String>) -> Page {
    visit.require(Role::Admin)?;
    let request = v1::ListDeliveriesRequest { tenant: tenant.clone() };
    let cli = ["delivery", "list", "--tenant", &tenant];
    let commands = Commands::new(&cli, "AdminService/ListDeliveries", &request);
    let answer = visit.client(&tenant).admin().list_deliveries(request).await?;
    let deliveries = answer.deliveries.iter().map(DeliveryView::of).collect();
    Ok(render(&ListPage { frame: visit.frame(&tenant), deliveries, commands }))
}
