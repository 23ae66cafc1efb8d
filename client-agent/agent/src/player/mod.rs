//! The player itself: buffer, playhead, states and what to download next. Pure: no I/O and no clock; every
//! method takes `now`, the time since the player started, and it never goes back.
//!
//! Drive it so: after anything happened call [`Player::advance`], then [`Player::next_fetch`] until it returns
//! none, then wait for a download to end or for [`Player::wake_at`].

pub mod rule;
mod track;
pub mod words;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::film::{Film, Rendition};
use rule::{Chooser, Sight};
use track::Track;
use words::{Event, Failure, Fetch, Settings, Snapshot, State, TrackKind};

/// An advice that is not renewed for this long is forgotten.
const ADVICE_HOLDS: Duration = Duration::from_secs(30);
/// What TCP, IP, Ethernet and HTTP add to the media's rate.
const OVERHEAD: f64 = 1.05;
/// Throughput is taken over so many video segments.
const THROUGHPUT_SEGMENTS: usize = 3;

pub struct Player {
    film: Arc<Film>,
    settings: Settings,
    state: State,
    /// The playhead, and when it was there.
    position: Duration,
    position_at: Duration,
    video: Track,
    audio: Option<Track>,
    chooser: Chooser,
    /// The rendition chosen for the next video segment, while its initialization is under way.
    chosen: Option<usize>,
    /// Allowed rate in bit/s, and until when.
    advice: Option<(u64, Duration)>,
    stall_count: u32,
    stalled: Duration,
    stalled_since: Option<Duration>,
    starved: bool,
    startup: Option<Duration>,
    shown: Vec<Duration>,
    /// Bytes and time of the last video segments.
    downloads: VecDeque<(u64, Duration)>,
    events: Vec<Event>,
}

impl Player {
    pub fn new(film: Arc<Film>, settings: Settings) -> Player {
        let audio = film.audio.as_ref().map(|_| Track::default());
        Player {
            chooser: Chooser::new(settings.rule, film.top()),
            shown: vec![Duration::ZERO; film.video.len()],
            state: State::Starting,
            position: Duration::ZERO,
            position_at: Duration::ZERO,
            video: Track::default(),
            audio,
            chosen: None,
            advice: None,
            stall_count: 0,
            stalled: Duration::ZERO,
            stalled_since: None,
            starved: false,
            startup: None,
            downloads: VecDeque::new(),
            events: Vec::new(),
            film,
            settings,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn film(&self) -> &Film {
        &self.film
    }

    /// How long each video rendition was on the screen.
    pub fn shown(&self) -> &[Duration] {
        &self.shown
    }

    /// True once after each time the buffer ran empty (CMCD `bs`).
    pub fn take_starved(&mut self) -> bool {
        std::mem::take(&mut self.starved)
    }

    /// Moves the playhead to `now`, changes the state where it must, and returns what happened since the last call.
    pub fn advance(&mut self, now: Duration) -> Vec<Event> {
        match self.state {
            State::Starting | State::Rebuffering if self.ready() => {
                let reason = format!("{:.1} s are buffered", self.buffered().as_secs_f64());
                self.position_at = now;
                self.startup.get_or_insert(now);
                if let Some(since) = self.stalled_since.take() {
                    self.stalled += now.saturating_sub(since);
                }
                self.enter(State::Playing, now, reason);
            }
            State::Playing => self.play(now),
            _ => {}
        }
        std::mem::take(&mut self.events)
    }

    fn play(&mut self, now: Duration) {
        let limit = self.buffered_end();
        let wanted = self.position + now.saturating_sub(self.position_at);
        let reached = wanted.min(limit);
        let shown = &mut self.shown;
        self.video.play(self.position, reached, |rendition, time| shown[rendition] += time);
        // Where the buffer ran empty, it did so before now: the exact moment counts.
        let at = now.saturating_sub(wanted - reached);
        (self.position, self.position_at) = (reached, at);
        if reached >= self.film.duration {
            self.enter(State::Ended, at, "the film is over".into());
        } else if reached >= limit {
            self.stall_count += 1;
            self.starved = true;
            self.stalled_since = Some(at);
            self.enter(State::Rebuffering, at, "the buffer ran empty".into());
        }
    }

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
    fn asks_at(&self, track: &Track, rendition: &Rendition) -> Option<Duration> {
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

    /// The viewer leaves.
    pub fn quit(&mut self, now: Duration, reason: &str) {
        let earlier = self.advance(now);
        self.events.extend(earlier);
        if !self.state.is_final() {
            self.stop(State::Quit, now, reason.to_string());
        }
    }

    fn stop(&mut self, state: State, now: Duration, reason: String) {
        if let Some(since) = self.stalled_since.take() {
            self.stalled += now.saturating_sub(since);
        }
        self.enter(state, now, reason);
    }

    fn enter(&mut self, to: State, at: Duration, reason: String) {
        self.events.push(Event::State { at, from: self.state, to, reason });
        self.state = to;
    }

    /// When something changes by itself: the buffer runs empty, the film ends, a segment may be asked for.
    pub fn wake_at(&self, now: Duration) -> Option<Duration> {
        if self.state.is_final() {
            return None;
        }
        let playing = self.state == State::Playing;
        let when_at = |position: Duration| self.position_at + position.saturating_sub(self.position);
        let end = playing.then(|| when_at(self.buffered_end()));
        let video = &self.film.video[self.chosen.unwrap_or(self.chooser.current())];
        let tracks = [Some((&self.video, video)), self.audio.as_ref().zip(self.film.audio.as_ref())];
        let asks = tracks.into_iter().flatten().filter_map(|(track, rendition)| {
            if track.under_way || track.complete {
                return None;
            }
            let position = self.asks_at(track, rendition)?;
            let moment = if position <= self.position {
                now
            } else if playing {
                when_at(position)
            } else {
                return None;
            };
            Some(moment.max(track.retry_at))
        });
        asks.chain(end).min()
    }

    fn ready(&self) -> bool {
        let complete = self.video.complete && self.audio.as_ref().is_none_or(|track| track.complete);
        complete || self.buffered() >= self.settings.start_at
    }

    fn buffered_end(&self) -> Duration {
        let video = self.video.buffered_end;
        self.audio.as_ref().map_or(video, |track| track.buffered_end.min(video))
    }

    fn buffered(&self) -> Duration {
        self.buffered_end().saturating_sub(self.position)
    }

    /// The player as it is; call [`Player::advance`] before.
    pub fn snapshot(&self, now: Duration) -> Snapshot {
        let (bytes, time) =
            self.downloads.iter().fold((0, Duration::ZERO), |(bytes, time), (more, took)| (bytes + more, time + *took));
        let going_on = self.stalled_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        Snapshot {
            state: self.state,
            position: self.position,
            buffered: self.buffered(),
            video_buffered: self.video.buffered(self.position),
            audio_buffered: self.audio.as_ref().map(|track| track.buffered(self.position)),
            fetched: self.chooser.current(),
            shown: self.startup.and_then(|_| self.video.rendition_at(self.position)),
            throughput_bps: (!time.is_zero()).then(|| (bytes as f64 * 8.0 / time.as_secs_f64()) as u64),
            stall_count: self.stall_count,
            stalled: self.stalled + going_on,
            startup: self.startup,
            remaining: self.film.duration.saturating_sub(self.position),
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

#[cfg(test)]
mod tests;
