//! One track (video or sound): what is buffered, and what is under way.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// A failed download is tried again after this, doubled each time ...
const FIRST_RETRY: Duration = Duration::from_millis(200);
/// ... up to this.
const LAST_RETRY: Duration = Duration::from_secs(4);
/// A server that says so often that a segment is not there is believed.
const LASTING_FAILURES: u32 = 3;

#[derive(Debug, Default)]
pub struct Track {
    /// End of the media that is complete from the playhead on.
    pub buffered_end: Duration,
    /// Nothing more to download.
    pub complete: bool,
    pub under_way: bool,
    /// Renditions whose initialization is here.
    pub initialized: BTreeSet<usize>,
    /// What is buffered and was shown last: end of each piece and its rendition.
    pieces: VecDeque<(Duration, usize)>,
    failures: u32,
    failing_since: Option<Duration>,
    pub retry_at: Duration,
}

impl Track {
    pub fn buffered(&self, position: Duration) -> Duration {
        self.buffered_end.saturating_sub(position)
    }

    /// A segment is complete.
    pub fn add(&mut self, end: Duration, rendition: usize) {
        self.buffered_end = self.buffered_end.max(end);
        match self.pieces.back_mut() {
            Some((last, same)) if *same == rendition => *last = self.buffered_end,
            _ => self.pieces.push_back((self.buffered_end, rendition)),
        }
    }

    /// There is no more. Tracks differ by some frames at the end: what is there reaches the end of the film.
    pub fn finish(&mut self, end: Duration, rendition: usize) {
        self.complete = true;
        self.add(end, rendition);
    }

    pub fn succeeded(&mut self) {
        self.under_way = false;
        self.failures = 0;
        self.failing_since = None;
    }

    /// Notes a failure. True: there is no hope left.
    pub fn failed(&mut self, lasting: bool, give_up_after: Duration, now: Duration) -> bool {
        self.under_way = false;
        self.failures += 1;
        let since = *self.failing_since.get_or_insert(now);
        let wait = FIRST_RETRY.saturating_mul(1 << (self.failures - 1).min(8)).min(LAST_RETRY);
        self.retry_at = now + wait;
        now - since >= give_up_after || (lasting && self.failures >= LASTING_FAILURES)
    }

    /// The rendition at the playhead.
    pub fn rendition_at(&self, position: Duration) -> Option<usize> {
        let piece = self.pieces.iter().find(|(end, _)| *end > position).or(self.pieces.back());
        piece.map(|(_, rendition)| *rendition)
    }

    /// Plays from one position to another: how long each rendition was shown. What lies behind is forgotten.
    pub fn play(&mut self, from: Duration, to: Duration, mut shown: impl FnMut(usize, Duration)) {
        let mut at = from;
        while at < to {
            let Some(&(end, rendition)) = self.pieces.front() else { return };
            let until = end.min(to);
            shown(rendition, until.saturating_sub(at));
            at = at.max(until);
            // The last piece stays: its picture stands still in a stall.
            if end > to || self.pieces.len() == 1 {
                return;
            }
            self.pieces.pop_front();
        }
    }
}
