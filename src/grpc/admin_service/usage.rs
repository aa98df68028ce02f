//! Converts the request and the response of GetUsage.

use crate::grpc::convert::optional_timestamp;
use polynym_directory::{Error, Invalid, Resolution, UsageReport, UsageRequest};
use polynym_proto::v1;

/// The request for counters.
pub fn usage_request(request: &v1::GetUsageRequest) -> Result<UsageRequest<'_>, Error> {
    let resolution = match request.resolution() {
        v1::UsageResolution::Unspecified if request.resolution != 0 => {
            let message = "is unknown";
            return Err(Error::invalid(Invalid::Field, "resolution", message));
        }
        v1::UsageResolution::Unspecified => None,
        v1::UsageResolution::Minute => Some(Resolution::Minute),
        v1::UsageResolution::Hour => Some(Resolution::Hour),
        v1::UsageResolution::Day => Some(Resolution::Day),
    };
    Ok(UsageRequest {
        metrics: &request.metrics,
        callers: &request.callers,
        from: optional_timestamp("from", request.from.as_ref())?,
        to: optional_timestamp("to", request.to.as_ref())?,
        resolution,
    })
}

/// The response with counters.
pub fn usage_response(report: UsageReport) -> v1::GetUsageResponse {
    let mut series: Vec<v1::UsageSeries> = Vec::new();
    for point in report.points {
        let message = v1::UsagePoint { time: Some(point.time.into()), count: point.count as i64 };
        match series.last_mut() {
            Some(last) if last.metric == point.metric && last.caller == point.caller => {
                last.points.push(message);
            }
            _ => series.push(v1::UsageSeries {
                metric: point.metric,
                caller: point.caller,
                points: vec![message],
            }),
        }
    }
    let resolution = match report.resolution {
        Resolution::Minute => v1::UsageResolution::Minute,
        Resolution::Hour => v1::UsageResolution::Hour,
        Resolution::Day => v1::UsageResolution::Day,
    };
    v1::GetUsageResponse {
        series,
        resolution: resolution.into(),
        from: Some(report.from.into()),
        to: Some(report.to.into()),
    }
}
