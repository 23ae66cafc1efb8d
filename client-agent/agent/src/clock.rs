//! The only place that reads clocks. Everything else is told the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Time since the program started, and the world's time reckoned from there: it never runs backwards, whatever
/// is done to the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    started_unix: Duration,
}

impl Clock {
    pub fn start() -> Clock {
        let started_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { started: Instant::now(), started_unix }
    }

    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// A time of this clock as time since the epoch.
    pub fn unix(&self, at: Duration) -> Duration {
        self.started_unix + at
    }

    /// How long ago a time of day was, in milliseconds since the epoch, by the machine's clock; zero for one to come.
    pub fn age(&self, unix_ms: i64) -> Duration {
        let then = Duration::from_millis(u64::try_from(unix_ms).unwrap_or_default());
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(then)
    }

    /// A time of this clock as tokio's.
    pub fn instant(&self, at: Duration) -> Instant {
        self.started + at
    }
}
