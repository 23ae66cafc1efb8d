//! Reports to the application station.

pub mod backoff;
pub mod queue;
pub mod stream;

use std::time::Duration;

use crate::http::Flow;
use crate::player::words::{Snapshot, State};
use crate::wire::steerline::flow::v1::{FiveTuple, PlayerState};
use crate::wire::steerline::report::v1::{PlaybackReport, ReportCause};

const TCP: u32 = 6;
/// What the contract allows.
const MOST_FLOWS: usize = 32;
const PLAYER_NAME: &str = "headless";

/// What a report says beside the player's own state.
#[derive(Debug, Clone)]
pub struct Head<'a> {
    pub session_id: &'a str,
    pub sequence_number: u64,
    pub timestamp_ms: i64,
    pub cause: ReportCause,
    pub starved: bool,
    pub bitrate_kbps: u64,
    pub top_bitrate_kbps: u64,
    pub goal: Duration,
}

/// One report. It never holds a URL or a title.
pub fn report(head: &Head<'_>, player: &Snapshot, flows: &[Flow]) -> PlaybackReport {
    PlaybackReport {
        session_id: head.session_id.to_string(),
        sequence_number: head.sequence_number,
        timestamp_ms: head.timestamp_ms,
        cause: head.cause.into(),
        player_state: wire_state(player.state).into(),
        buffer_length_ms: millis(player.buffered),
        encoded_bitrate_kbps: head.bitrate_kbps as i64,
        top_bitrate_kbps: head.top_bitrate_kbps as i64,
        target_buffer_ms: millis(head.goal),
        measured_throughput_kbps: (player.throughput_bps.unwrap_or(0) / 1000) as i64,
        starved: head.starved,
        playback_rate: if player.state.is_final() { 0.0 } else { 1.0 },
        remaining_media_ms: Some(millis(player.remaining)),
        flows: flows.iter().take(MOST_FLOWS).map(wire_flow).collect(),
        stall_count: player.stall_count,
        stall_duration_ms: millis(player.stalled),
        player_name: PLAYER_NAME.to_string(),
    }
}

/// The customer's end is ours: this machine is where the media goes.
fn wire_flow(flow: &Flow) -> FiveTuple {
    FiveTuple {
        protocol: TCP,
        client_address: flow.local.ip().to_string(),
        client_port: flow.local.port().into(),
        server_address: flow.remote.ip().to_string(),
        server_port: flow.remote.port().into(),
    }
}

fn wire_state(state: State) -> PlayerState {
    match state {
        State::Starting => PlayerState::Starting,
        State::Playing => PlayerState::Playing,
        State::Rebuffering => PlayerState::Rebuffering,
        State::Ended => PlayerState::Ended,
        State::FatalError => PlayerState::FatalError,
        State::Quit => PlayerState::Quit,
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
