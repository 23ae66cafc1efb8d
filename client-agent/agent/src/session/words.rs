//! What the record's lines say beyond their head, kind by kind.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{json, Value};

use crate::film::Film;
use crate::http::{Answer, Flow, FlowEvent};
use crate::player::words::Fetch;
use crate::record::{self, seconds};
use crate::wire::steerline::flow::v1::Decision;
use crate::wire::steerline::report::v1::Rejection;

pub fn segment(fetch: &Fetch, answer: &Answer, took: Duration) -> Value {
    let rate_kbps = answer.bytes as f64 * 8.0 / 1000.0 / took.as_secs_f64().max(1e-6);
    json!({
        "track": fetch.track,
        // Null: the initialization.
        "index": fetch.segment,
        "rendition": fetch.rendition,
        "start_s": seconds(fetch.start),
        "duration_s": seconds(fetch.end.saturating_sub(fetch.start)),
        "bytes": answer.bytes,
        "download_s": seconds(took),
        "rate_kbps": (rate_kbps * 10.0).round() / 10.0,
        "flow": record::flow(&answer.flow),
        "reused": answer.reused,
    })
}

/// The sockets open now, and the one that came or went.
pub fn flows(open: &BTreeSet<Flow>, event: FlowEvent) -> Value {
    let (opened, closed) = match event {
        FlowEvent::Opened(flow) => (Some(record::flow(&flow)), None),
        FlowEvent::Closed(flow) => (None, Some(record::flow(&flow))),
    };
    let open: Vec<Value> = open.iter().map(record::flow).collect();
    json!({"flows": open, "opened": opened, "closed": closed})
}

pub fn decision(decision: &Decision) -> Value {
    let flow = decision.flow.as_ref().map(|flow| {
        json!({
            "protocol": flow.protocol,
            "client_address": flow.client_address,
            "client_port": flow.client_port,
            "server_address": flow.server_address,
            "server_port": flow.server_port,
        })
    });
    json!({
        "decision": decision.kind().as_str_name().trim_start_matches("DECISION_KIND_"),
        "decided_s": decision.time_s,
        "site": decision.site,
        "flow": flow,
        "from_line": decision.from_line,
        "to_line": decision.to_line,
        "reason": decision.reason,
        "strategy": decision.strategy,
    })
}

pub fn rejection(rejection: &Rejection) -> Value {
    json!({
        "sequence_number": rejection.sequence_number,
        "reason": reason(rejection),
        "field": rejection.field,
        "message": rejection.message,
    })
}

pub fn reason(rejection: &Rejection) -> &'static str {
    rejection.reason().as_str_name().trim_start_matches("REJECTION_REASON_")
}

/// What people call a rendition: its height, or its rate.
pub fn label(film: &Film, index: usize) -> String {
    match film.video[index].height {
        Some(height) => format!("{height}p"),
        None => format!("{} kbit/s", film.video[index].bandwidth_bps / 1000),
    }
}

/// The word that the record uses.
pub fn word<T: serde::Serialize>(value: T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(String::from)).unwrap_or_default()
}
