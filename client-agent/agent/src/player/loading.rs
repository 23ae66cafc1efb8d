//! The player's downloads: what is asked for next, in which rendition, and what becomes of the answer.

use std::sync::Arc;
use std::time::Duration;

use super::rule::Sight;
use super::track::Track;
use super::words::{Event, Failure, Fetch, State, TrackKind};
use super::Player;
use crate::film::Rendition;

/// An advice that is not renewed for this long is forgotten.
const ADVICE_HOLDS: Duration = Duration::from_secs(30);
/// What TCP, IP, Ethernet and HTTP add to the media's rate.
const OVERHEAD: f64 = 1.05;
/// Throughput is taken over so many video segments.
const THROUGHPUT_SEGMENTS: usize = 3;

impl Player {
    /// The next download, marked as under way; none when nothing may be asked for now.
    pub fn next_fetch(&mut self, now: Duration) -> Option<Fetch> {
        if self.state.is_final() {
            return None;
        }
        self.next_video(now).or_else(|| self.next_audio(now))
    }

    fn next_video(&mut self, now: Duration) -> Option<Fetch> {
        let film = Arc::clone(&self.film);
        let current = self.chosen.unwrap_or(self.chooser.current());
        self.may_ask(&self.video, &film.video[current], now)?;
        let rendition = match self.chosen.take() {
            Some(chosen) => chosen,
            None => self.choose(now),
        };
        let fetch = fetch(TrackKind::Video, &mut self.video, &film.video[rendition], rendition);
        match &fetch {
            Some(Fetch { segment: None, .. }) => self.chosen = Some(rendition),
            Some(_) => {}
            // This rendition ends before the others do: so does the film.
            None => self.video.finish(film.duration, rendition),
        }
        fetch
    }

    fn next_audio(&mut self, now: Duration) -> Option<Fetch> {
        let film = Arc::clone(&self.film);
        let (Some(rendition), Some(track)) = (&film.audio, &self.audio) else { return None };
        self.may_ask(track, rendition, now)?;
        fetch(TrackKind::Audio, self.audio.as_mut()?, rendition, 0)
    }

    fn choose(&mut self, now: Duration) -> usize {
        let from = self.chooser.current();
        let sight = Sight {
            buffered: self.buffered(),
            playing: self.state == State::Playing,
            stalled: self.state == State::Rebuffering,
        };
        let choice = self.chooser.choose(sight, self.highest_advised(now));
        if choice.rendition != from {
            self.events.push(Event::Quality { at: now, from, to: choice.rendition, reason: choice.reason });
        }
        choice.rendition
    }

    fn highest_advised(&self, now: Duration) -> usize {
        let Some((allowed_bps, until)) = self.advice else { return self.film.top() };
        if now >= until {
            return self.film.top();
        }
        let fits = |index: &usize| self.film.rate_kbps(*index) as f64 * 1000.0 * OVERHEAD <= allowed_bps as f64;
        (0..self.film.video.len()).rev().find(fits).unwrap_or(0)
    }

    /// Whether a track may ask for its next segment: `Some` when it may.
    fn may_ask(&self, track: &Track, rendition: &Rendition, now: Duration) -> Option<()> {
        let blocked = track.under_way || track.complete || now < track.retry_at;
        (!blocked && self.asks_at(track, rendition)? <= self.position).then_some(())
    }

    /// The position of the playhead from which on a track asks for its next segment.
    pub(super) fn asks_at(&self, track: &Track, rendition: &Rendition) -> Option<Duration> {
        let (_, end) = rendition.span(rendition.next_after(track.buffered_end)?);
        // A goal below what playback starts with must not keep it from starting.
        let goal = self.settings.goal.max(self.settings.start_at + (end.saturating_sub(track.buffered_end)));
        Some(end.saturating_sub(goal))
    }

    /// A download is complete. `took` is the time from the request to the last byte.
    pub fn fetched(&mut self, fetch: &Fetch, bytes: u64, took: Duration) {
        let film = Arc::clone(&self.film);
        let (track, rendition) = match (fetch.track, &film.audio, &mut self.audio) {
            (TrackKind::Audio, Some(rendition), Some(track)) => (track, rendition),
            _ => (&mut self.video, &film.video[fetch.rendition]),
        };
        track.succeeded();
        if fetch.segment.is_none() {
            track.initialized.insert(fetch.rendition);
            return;
        }
        track.add(fetch.end, fetch.rendition);
        if rendition.next_after(track.buffered_end).is_none() {
            track.finish(film.duration, fetch.rendition);
        }
        if fetch.track == TrackKind::Video {
            self.downloads.push_back((bytes, took));
            if self.downloads.len() > THROUGHPUT_SEGMENTS {
                self.downloads.pop_front();
            }
        }
    }

    /// A download failed. It is tried again, until there is no hope left.
    pub fn failed(&mut self, fetch: &Fetch, failure: &Failure, now: Duration) {
        let track = match (fetch.track, &mut self.audio) {
            (TrackKind::Audio, Some(track)) => track,
            _ => &mut self.video,
        };
        let (lasting, reason) = match failure {
            Failure::Lasting(reason) => (true, reason),
            Failure::Passing(reason) => (false, reason),
        };
        if track.failed(lasting, self.settings.give_up_after, now) && !self.state.is_final() {
            self.stop(State::FatalError, now, reason.clone());
        }
    }

    /// The network's advice: the rate that the session can sustain.
    pub fn advise(&mut self, sustainable_bps: u64, now: Duration) {
        if self.settings.obey_advice {
            self.advice = Some((sustainable_bps, now + ADVICE_HOLDS));
        }
    }
}

/// What a track downloads next in this rendition: the initialization first. Marks it as under way.
fn fetch(kind: TrackKind, track: &mut Track, rendition: &Rendition, index: usize) -> Option<Fetch> {
    if let Some(url) = rendition.initialization.as_ref().filter(|_| !track.initialized.contains(&index)) {
        track.under_way = true;
        let zero = Duration::ZERO;
        return Some(Fetch { track: kind, rendition: index, segment: None, start: zero, end: zero, url: url.clone() });
    }
    let segment = rendition.segment(rendition.next_after(track.buffered_end)?).ok()?;
    track.under_way = true;
    Some(Fetch {
        track: kind,
        rendition: index,
        segment: Some(segment.index),
        start: segment.start,
        end: segment.end,
        url: segment.url,
    })
}
