//! Reports from when they are made until the station has acknowledged them: what is sent next, and as what.
//! Pure: `now` goes in, nothing is sent here.
//!
//! A session keeps its last [`MOST_PER_SESSION`] reports; the oldest goes when one more comes. After a
//! connection was lost all that is not acknowledged is sent once more, in order. What is older than
//! [`FRESH`] is then history (REPLAYED), and no longer the state that the station should act on.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::wire::steerline::report::v1::{PlaybackReport, ReportCause};

pub const MOST_PER_SESSION: usize = 60;
/// Reports come once a second: an older one has a successor.
pub const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Entry {
    report: PlaybackReport,
    made_at: Duration,
    /// Sent on the connection that is open now.
    sent: bool,
    /// Sent on an earlier connection: the station may have it.
    sent_before: bool,
}

/// What became of a rejected report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The station had it already: its acknowledgement was lost with the connection.
    KnownAlready,
    Refused,
}

#[derive(Debug, Default)]
pub struct Queue {
    /// In the order in which they were made, over all sessions.
    entries: VecDeque<Entry>,
    per_session: HashMap<String, usize>,
    /// How many at the front of `entries` are sent.
    sent: usize,
    dropped: u64,
}

impl Queue {
    /// Takes one more report.
    pub fn push(&mut self, report: PlaybackReport, now: Duration) {
        let count = self.per_session.entry(report.session_id.clone()).or_default();
        if *count >= MOST_PER_SESSION {
            let oldest = self.entries.iter().position(|entry| entry.report.session_id == report.session_id);
            if let Some(removed) = oldest.and_then(|index| self.remove(index)) {
                // One that was sent and is not acknowledged is with the station, most likely.
                self.dropped += u64::from(!removed.sent);
            }
        }
        *self.per_session.entry(report.session_id.clone()).or_default() += 1;
        self.entries.push_back(Entry { report, made_at: now, sent: false, sent_before: false });
    }

    /// A new connection: everything that is not acknowledged is to be sent.
    pub fn restart(&mut self) {
        self.sent = 0;
        for entry in &mut self.entries {
            entry.sent_before |= entry.sent;
            entry.sent = false;
        }
    }

    /// There is a report to send.
    pub fn has_unsent(&self) -> bool {
        self.sent < self.entries.len()
    }

    /// The next report to send, marked as sent.
    pub fn take(&mut self, now: Duration) -> Option<PlaybackReport> {
        let entry = self.entries.get_mut(self.sent)?;
        self.sent += 1;
        entry.sent = true;
        let mut report = entry.report.clone();
        if now.saturating_sub(entry.made_at) > FRESH {
            report.set_cause(ReportCause::Replayed);
        }
        Some(report)
    }

    /// The station has this report, and with it all that was sent before it for this session: the stream keeps
    /// their order.
    pub fn acknowledge(&mut self, session_id: &str, sequence_number: u64) {
        let mut index = 0;
        while index < self.sent {
            let report = &self.entries[index].report;
            if report.session_id == session_id && report.sequence_number <= sequence_number {
                self.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// The station refuses this report: it is not sent again.
    pub fn reject(&mut self, session_id: &str, sequence_number: u64, out_of_order: bool) -> Rejected {
        let same =
            |entry: &Entry| entry.report.session_id == session_id && entry.report.sequence_number == sequence_number;
        let known = self
            .entries
            .iter()
            .position(same)
            .and_then(|index| self.remove(index))
            .is_some_and(|entry| entry.sent_before && out_of_order);
        if known {
            Rejected::KnownAlready
        } else {
            Rejected::Refused
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reports that no station will ever see.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn remove(&mut self, index: usize) -> Option<Entry> {
        let entry = self.entries.remove(index)?;
        self.sent -= usize::from(index < self.sent);
        if let Some(count) = self.per_session.get_mut(&entry.report.session_id) {
            *count -= 1;
            if *count == 0 {
                self.per_session.remove(&entry.report.session_id);
            }
        }
        Some(entry)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
