//! What the host saw and said, as JSON lines for measurements: added to a file, so that a host which is started again
//! goes on with it. Every line has `time_s` (since the epoch), `session_id` and `kind`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{json, Value};

use super::messages::{Report, ToExtension, Tuple};
use crate::record::seconds;
use crate::terminal::complain;
use crate::wire::steerline::report::v1::PlaybackReport;

#[derive(Default)]
pub struct Record {
    sink: Option<(PathBuf, File)>,
}

impl Record {
    /// Errors name the path.
    pub fn open(path: Option<&Path>) -> Result<Record, String> {
        let Some(path) = path else { return Ok(Record::default()) };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| format!("--record {} cannot be written: {error}", path.display()))?;
        Ok(Record { sink: Some((path.to_path_buf(), file)) })
    }

    /// A report as it goes to the station: `kind` is "report".
    pub fn report(&mut self, at: Duration, said: &Report, sent: &PlaybackReport) {
        if self.sink.is_none() {
            return;
        }
        let millis = |time: i64| time as f64 / 1000.0;
        let flows: Vec<Tuple> = sent.flows.iter().map(Into::into).collect();
        self.write(&json!({
            "time_s": seconds(at),
            "session_id": sent.session_id,
            "kind": "report",
            "sequence_number": sent.sequence_number,
            "cause": sent.cause().as_str_name().trim_start_matches("REPORT_CAUSE_"),
            "player_state": sent.player_state().as_str_name().trim_start_matches("PLAYER_STATE_"),
            "buffer_s": millis(sent.buffer_length_ms),
            "remaining_s": sent.remaining_media_ms.map(millis),
            "target_s": millis(sent.target_buffer_ms),
            "bitrate_kbps": sent.encoded_bitrate_kbps,
            "stall_count": sent.stall_count,
            "stall_s": millis(sent.stall_duration_ms),
            "servers": said.servers,
            "flows": flows,
        }));
    }

    /// What the extension is told of a session: `kind` is the message's type ("flows", "assessment", "decision" ...).
    pub fn said(&mut self, at: Duration, message: &ToExtension) {
        if self.sink.is_none() || matches!(message, ToExtension::Ack { .. } | ToExtension::Hello { .. }) {
            return;
        }
        let Ok(Value::Object(mut line)) = serde_json::to_value(message) else { return };
        let kind = line.remove("type").unwrap_or_default();
        line.insert("kind".into(), kind);
        // A decision has a time of its own: when the controller took it.
        if let Some(decided) = line.insert("time_s".into(), json!(seconds(at))) {
            line.insert("decided_s".into(), decided);
        }
        line.entry("session_id").or_insert(Value::Null);
        self.write(&Value::Object(line));
    }

    fn write(&mut self, line: &Value) {
        let Some((path, file)) = &mut self.sink else { return };
        // One write per line: lines of two browsers' hosts do not mix.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            complain!("--record {}: {error}; going on without a record", path.display());
            self.sink = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_written_is_named() {
        let error = Record::open(Some(Path::new("/none/x.jsonl"))).err().unwrap();
        assert!(error.starts_with("--record /none/x.jsonl cannot be written"), "{error}");
    }
}
