//! What extension and host say to each other (`contract/schema/native-messaging.schema.json`).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::wire::steerline::flow::v1::{Decision, FiveTuple, PlayerState};
use crate::wire::steerline::report::v1::{PlaybackReport, ReportCause};

pub const PROTOCOL: u32 = 1;
const MOST_SERVERS: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromExtension {
    Hello {
        protocol: u32,
    },
    Report {
        report: Box<Report>,
    },
    /// A newer extension may say more than we know.
    #[serde(other)]
    Unknown,
}

/// steerline.report.v1.PlaybackReport without flows, and the servers that the browser knows.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    pub session_id: String,
    pub sequence_number: u64,
    pub timestamp_ms: i64,
    pub cause: String,
    pub player_state: String,
    pub buffer_length_ms: i64,
    #[serde(default)]
    pub encoded_bitrate_kbps: i64,
    #[serde(default)]
    pub target_buffer_ms: i64,
    #[serde(default)]
    pub starved: bool,
    #[serde(default)]
    pub playback_rate: f64,
    pub remaining_media_ms: Option<i64>,
    #[serde(default)]
    pub stall_count: u32,
    #[serde(default)]
    pub stall_duration_ms: i64,
    #[serde(default)]
    pub player_name: String,
    #[serde(default)]
    pub servers: Vec<Server>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Server {
    pub address: IpAddr,
    /// The URL's.
    pub port: u16,
    /// Media requests to it were under way since the last report; none: not known, as of the two below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<bool>,
    /// Its last answer came by HTTP/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http3: Option<bool>,
    /// The UDP port that it has announced for HTTP/3 (Alt-Svc).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http3_port: Option<u16>,
}

impl Server {
    /// IPv4 as IPv4, however it is written.
    pub fn canonical(&self) -> IpAddr {
        self.address.to_canonical()
    }
}

impl Report {
    /// The wire's report, without flows. The station checks ranges; words that it could not read are refused here.
    pub fn to_wire(&self) -> Result<PlaybackReport, String> {
        if self.servers.len() > MOST_SERVERS {
            return Err(format!("servers: {}; allowed are at most {MOST_SERVERS}", self.servers.len()));
        }
        let state = PlayerState::from_str_name(&format!("PLAYER_STATE_{}", self.player_state))
            .ok_or_else(|| format!("player_state: {:?} is none", cut(&self.player_state)))?;
        let cause = ReportCause::from_str_name(&format!("REPORT_CAUSE_{}", self.cause))
            .ok_or_else(|| format!("cause: {:?} is none", cut(&self.cause)))?;
        Ok(PlaybackReport {
            session_id: self.session_id.clone(),
            sequence_number: self.sequence_number,
            timestamp_ms: self.timestamp_ms,
            cause: cause.into(),
            player_state: state.into(),
            buffer_length_ms: self.buffer_length_ms,
            encoded_bitrate_kbps: self.encoded_bitrate_kbps,
            target_buffer_ms: self.target_buffer_ms,
            starved: self.starved,
            playback_rate: self.playback_rate,
            remaining_media_ms: self.remaining_media_ms,
            stall_count: self.stall_count,
            stall_duration_ms: self.stall_duration_ms,
            player_name: self.player_name.clone(),
            ..PlaybackReport::default()
        })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToExtension {
    Hello {
        protocol: u32,
        version: &'static str,
        station: String,
    },
    Station {
        state: StationState,
        message: String,
    },
    Ack {
        session_id: String,
        sequence_number: u64,
    },
    Flows {
        session_id: String,
        flows: Vec<Tuple>,
    },
    /// The connections are others than those of the last report: report now.
    Again {
        session_id: String,
    },
    Assessment {
        session_id: String,
        critical: bool,
    },
    Advice {
        session_id: String,
        sustainable_kbps: i64,
        reason: String,
    },
    Decision(DecisionWords),
    Rejection {
        session_id: String,
        field: String,
        message: String,
    },
    Error {
        message: String,
    },
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StationState {
    Connected,
    Away,
    /// No station was named when this host was installed.
    None,
}

#[derive(Debug, Serialize)]
pub struct DecisionWords {
    session_id: String,
    kind: String,
    from_line: String,
    to_line: String,
    time_s: f64,
    reason: String,
}

impl From<&Decision> for DecisionWords {
    fn from(decision: &Decision) -> Self {
        DecisionWords {
            session_id: decision.session_id.clone(),
            kind: decision.kind().as_str_name().trim_start_matches("DECISION_KIND_").into(),
            from_line: decision.from_line.clone(),
            to_line: decision.to_line.clone(),
            time_s: decision.time_s,
            reason: decision.reason.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Tuple {
    protocol: u32,
    client_address: String,
    client_port: u32,
    server_address: String,
    server_port: u32,
}

impl From<&FiveTuple> for Tuple {
    fn from(flow: &FiveTuple) -> Self {
        Tuple {
            protocol: flow.protocol,
            client_address: flow.client_address.clone(),
            client_port: flow.client_port,
            server_address: flow.server_address.clone(),
            server_port: flow.server_port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_the_extension_is_the_wires_report() {
        let text = r#"{"type":"report","report":{"session_id":"a","sequence_number":3,"timestamp_ms":5,"cause":"STATE_CHANGE",
            "player_state":"REBUFFERING","buffer_length_ms":0,"encoded_bitrate_kbps":2600,"target_buffer_ms":30000,"starved":true,
            "playback_rate":1,"stall_count":1,"stall_duration_ms":400,"player_name":"html5-video",
            "servers":[{"address":"2001:db8::1","port":443}],"later":"field"}}"#;
        let Ok(FromExtension::Report { report }) = serde_json::from_str(text) else { panic!("no report") };
        let wire = report.to_wire().unwrap();
        assert_eq!((wire.player_state(), wire.cause()), (PlayerState::Rebuffering, ReportCause::StateChange));
        assert_eq!((wire.sequence_number, wire.remaining_media_ms, wire.starved), (3, None, true));
        assert_eq!(report.servers[0].port, 443);
    }

    #[test]
    fn what_is_no_word_is_refused_by_name() {
        let text = r#"{"session_id":"a","sequence_number":1,"timestamp_ms":5,"cause":"PERIODIC","player_state":"DANCING",
            "buffer_length_ms":0,"remaining_media_ms":null}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        assert_eq!(report.to_wire().unwrap_err(), r#"player_state: "DANCING" is none"#);
        assert!(serde_json::from_str::<FromExtension>(r#"{"type":"report","report":{}}"#).is_err());
        assert!(matches!(serde_json::from_str(r#"{"type":"later"}"#), Ok(FromExtension::Unknown)));
    }

    #[test]
    fn answers_are_spelt_as_the_extension_reads_them() {
        let text = |message: &ToExtension| serde_json::to_string(message).unwrap();
        let ack = ToExtension::Ack { session_id: "a".into(), sequence_number: 7 };
        assert_eq!(text(&ack), r#"{"type":"ack","session_id":"a","sequence_number":7}"#);
        let away = ToExtension::Station { state: StationState::Away, message: "m".into() };
        assert_eq!(text(&away), r#"{"type":"station","state":"away","message":"m"}"#);
        let decision = Decision { kind: 1, session_id: "a".into(), reason: "r".into(), ..Decision::default() };
        assert!(text(&ToExtension::Decision((&decision).into()))
            .starts_with(r#"{"type":"decision","session_id":"a","kind":"STEER""#));
    }
}
