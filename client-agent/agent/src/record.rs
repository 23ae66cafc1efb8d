//! The record: one JSON object per line, each written at once, so that nothing is lost whoever dies.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::film::Film;
use crate::http::Flow;
use crate::player::words::{Snapshot, State};
use crate::terminal::complain;

/// The head that every line has. Times and durations in seconds.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// Since the epoch.
    pub time_s: f64,
    pub session_id: &'a str,
    pub kind: &'static str,
    #[serde(flatten)]
    pub playback: Playback,
    /// What this kind of line says beyond the head.
    #[serde(flatten)]
    pub more: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Playback {
    pub player_state: State,
    pub buffer_s: f64,
    pub video_buffer_s: f64,
    pub audio_buffer_s: Option<f64>,
    pub position_s: f64,
    /// Of what is on the screen; null before the first picture.
    pub height: Option<u32>,
    pub bitrate_kbps: Option<u64>,
    /// Of what is being downloaded.
    pub fetch_height: Option<u32>,
    pub fetch_bitrate_kbps: u64,
    pub throughput_kbps: Option<u64>,
    pub stall_count: u32,
    pub stall_s: f64,
    pub startup_s: Option<f64>,
    /// What the station said last; null before.
    pub critical: Option<bool>,
}

impl Playback {
    pub fn of(player: &Snapshot, film: &Film, critical: Option<bool>) -> Playback {
        Playback {
            player_state: player.state,
            buffer_s: seconds(player.buffered),
            video_buffer_s: seconds(player.video_buffered),
            audio_buffer_s: player.audio_buffered.map(seconds),
            position_s: seconds(player.position),
            height: player.shown.and_then(|shown| film.video[shown].height),
            bitrate_kbps: player.shown.map(|shown| film.rate_kbps(shown)),
            fetch_height: film.video[player.fetched].height,
            fetch_bitrate_kbps: film.rate_kbps(player.fetched),
            throughput_kbps: player.throughput_bps.map(|rate| rate / 1000),
            stall_count: player.stall_count,
            stall_s: seconds(player.stalled),
            startup_s: player.startup.map(seconds),
            critical,
        }
    }
}

/// A flow in the contract's words.
pub fn flow(flow: &Flow) -> Value {
    serde_json::json!({
        "protocol": 6,
        "client_address": flow.local.ip(),
        "client_port": flow.local.port(),
        "server_address": flow.remote.ip(),
        "server_port": flow.remote.port(),
    })
}

/// Seconds to the millisecond.
pub fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Where lines go; shared by all players. Without a file they go nowhere.
#[derive(Clone)]
pub struct Recorder {
    sink: Option<Arc<Mutex<Sink>>>,
}

struct Sink {
    path: PathBuf,
    file: File,
    failed: bool,
}

impl Recorder {
    /// A new file, or an existing one emptied. Errors name the path.
    pub fn create(path: Option<&Path>) -> Result<Recorder, String> {
        let Some(path) = path else { return Ok(Recorder { sink: None }) };
        let file =
            File::create(path).map_err(|error| format!("--record {} cannot be written: {error}", path.display()))?;
        let sink = Sink { path: path.to_path_buf(), file, failed: false };
        Ok(Recorder { sink: Some(Arc::new(Mutex::new(sink))) })
    }

    pub fn write(&self, line: &Line<'_>) {
        let Some(sink) = &self.sink else { return };
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        if sink.failed {
            return;
        }
        // One write per line; the file has no buffer of its own, so that the line is out.
        if let Err(error) = sink.file.write_all(&text) {
            sink.failed = true;
            complain!("--record {}: {error}; playing on without a record, what is written stays", sink.path.display());
        }
    }

    /// A line could not be written: the record is incomplete.
    pub fn has_failed(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.lock().unwrap_or_else(PoisonError::into_inner).failed)
    }
}
