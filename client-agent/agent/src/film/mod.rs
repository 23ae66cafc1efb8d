//! A film: what an MPD offers, as values the player can decide on. No XML, no network.

mod parse;
mod template;
mod times;
mod xml;

use std::time::Duration;

use url::Url;

pub use parse::parse;

/// What is wrong with an MPD, or not supported, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilmError(pub String);

impl std::fmt::Display for FilmError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for FilmError {}

/// A static presentation of one period: video in one or more renditions, and perhaps sound in one.
#[derive(Debug, Clone)]
pub struct Film {
    pub duration: Duration,
    /// Lowest rate first; never empty.
    pub video: Vec<Rendition>,
    pub audio: Option<Rendition>,
    /// What was passed over, for people.
    pub notes: Vec<String>,
}

/// One encoding of video or sound (a Representation).
#[derive(Debug, Clone)]
pub struct Rendition {
    pub id: String,
    /// Lines of the picture; none for sound, or where the MPD does not tell.
    pub height: Option<u32>,
    pub bandwidth_bps: u64,
    pub initialization: Option<Url>,
    segments: Segments,
}

/// One segment: media time from the start of the film, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub index: usize,
    pub start: Duration,
    pub end: Duration,
    pub url: Url,
}

/// When the segments of a rendition begin and how they are called.
#[derive(Debug, Clone)]
struct Segments {
    film_duration: Duration,
    count: usize,
    timescale: u64,
    /// Media time (in ticks) at which the film begins.
    offset: u64,
    times: Times,
    names: Names,
}

#[derive(Debug, Clone)]
enum Times {
    /// All segments of this length, in ticks.
    Constant(u64),
    /// Start and length of each, in ticks of media time.
    Timeline(Vec<(u64, u64)>),
}

#[derive(Debug, Clone)]
enum Names {
    Pattern { base: Url, media: String, start_number: u64 },
    List(Vec<Url>),
}

impl Film {
    /// The rate of a video rendition together with the sound, in kbit/s.
    pub fn rate_kbps(&self, rendition: usize) -> u64 {
        let audio_bps = self.audio.as_ref().map_or(0, |audio| audio.bandwidth_bps);
        (self.video[rendition].bandwidth_bps + audio_bps).div_ceil(1000)
    }

    /// The highest rendition of the video.
    pub fn top(&self) -> usize {
        self.video.len() - 1
    }
}

impl Rendition {
    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.segments.count
    }

    /// Start and end of a segment, cut at the end of the film.
    pub fn span(&self, index: usize) -> (Duration, Duration) {
        let (start, length) = self.segments.ticks(index);
        let at = |ticks| to_duration(ticks, self.segments.timescale).min(self.segments.film_duration);
        (at(start), at(start.saturating_add(length)))
    }

    /// The first segment that brings something after `time`; none when there is no more.
    pub fn next_after(&self, time: Duration) -> Option<usize> {
        // Renditions cut at not quite the same frame are still aligned: a shred is not worth a segment.
        let shred = Duration::from_millis(50);
        // `partition_point` on the indexes: ends rise with the index.
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            if self.span(middle).1 > time + shred {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low < self.count()).then_some(low)
    }

    /// The segment of this index. The names were tried when the film was read, so that none fails here.
    pub fn segment(&self, index: usize) -> Result<Segment, FilmError> {
        let (start, end) = self.span(index);
        let url = match &self.segments.names {
            Names::List(urls) => urls[index].clone(),
            Names::Pattern { base, media, start_number } => {
                let name = template::expand(
                    media,
                    template::Values {
                        representation_id: &self.id,
                        bandwidth: self.bandwidth_bps,
                        number: start_number.saturating_add(index as u64),
                        time: self.segments.media_time(index),
                    },
                )
                .map_err(FilmError)?;
                base.join(&name).map_err(|error| FilmError(format!("segment name \"{name}\" is no URL: {error}")))?
            }
        };
        Ok(Segment { index, start, end, url })
    }
}

impl Segments {
    /// Start (from the start of the film) and length of a segment, in ticks.
    fn ticks(&self, index: usize) -> (u64, u64) {
        match &self.times {
            Times::Constant(length) => (index as u64 * length, *length),
            Times::Timeline(entries) => {
                let (start, length) = entries[index];
                (start.saturating_sub(self.offset), length)
            }
        }
    }

    /// The start of a segment as the file counts it, in ticks: what `$Time$` stands for.
    fn media_time(&self, index: usize) -> u64 {
        match &self.times {
            Times::Constant(length) => (index as u64 * length).saturating_add(self.offset),
            Times::Timeline(entries) => entries[index].0,
        }
    }
}

fn wrong<T>(message: impl Into<String>) -> Result<T, FilmError> {
    Err(FilmError(message.into()))
}

/// Ticks of a time scale as a duration, exact to the nanosecond.
fn to_duration(ticks: u64, timescale: u64) -> Duration {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(timescale);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
