//! The player itself: buffer, playhead, states and what to download next. Pure: no I/O and no clock; every
//! method takes `now`, the time since the player started, and it never goes back.
//!
//! Drive it so: after anything happened call [`Player::advance`], then [`Player::next_fetch`] until it returns
//! none, then wait for a download to end or for [`Player::wake_at`].

mod loading;
pub mod rule;
mod track;
pub mod words;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::film::Film;
use rule::Chooser;
use track::Track;
use words::{Event, Settings, Snapshot, State};

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

#[cfg(test)]
mod tests;
