//! The values that go into and come out of the player.

use std::time::Duration;

use serde::Serialize;
use url::Url;

use super::rule::Rule;

/// Player states of CTA-5004 (CMCD `sta`) that a player without a viewer's hand can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Initial loading.
    Starting,
    Playing,
    /// A stall.
    Rebuffering,
    Ended,
    FatalError,
    /// The viewer left.
    Quit,
}

impl State {
    /// Nothing follows this state.
    pub fn is_final(self) -> bool {
        matches!(self, State::Ended | State::FatalError | State::Quit)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackKind {
    Video,
    Audio,
}

/// How the player plays.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The next segment is asked for while what is buffered and this segment are no more than this.
    pub goal: Duration,
    /// Playback starts, and resumes after a stall, when this much is buffered.
    pub start_at: Duration,
    pub rule: Rule,
    /// Advice of the network caps the rate.
    pub obey_advice: bool,
    /// A segment that cannot be had for this long is a fatal error.
    pub give_up_after: Duration,
}

/// What to download next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    pub track: TrackKind,
    pub rendition: usize,
    /// None: the rendition's initialization.
    pub segment: Option<usize>,
    /// Media time that it brings; zero for an initialization.
    pub start: Duration,
    pub end: Duration,
    pub url: Url,
}

/// Why a download failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may work the next time: no connection, broken off, the server's own error.
    Passing(String),
    /// The server says it is not there.
    Lasting(String),
}

/// What happened, and when.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    State { at: Duration, from: State, to: State, reason: String },
    Quality { at: Duration, from: usize, to: usize, reason: &'static str },
}

/// The player at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub state: State,
    /// The playhead.
    pub position: Duration,
    /// Media ahead of the playhead: the least of video and audio.
    pub buffered: Duration,
    pub video_buffered: Duration,
    pub audio_buffered: Option<Duration>,
    /// What the next video segment was, or is being, asked in.
    pub fetched: usize,
    /// What is on the screen (in a stall: still); none before the first picture.
    pub shown: Option<usize>,
    /// Over the last video segments; none before the first.
    pub throughput_bps: Option<u64>,
    pub stall_count: u32,
    /// The stall that is going on included.
    pub stalled: Duration,
    /// From the start to the first picture.
    pub startup: Option<Duration>,
    pub remaining: Duration,
}
