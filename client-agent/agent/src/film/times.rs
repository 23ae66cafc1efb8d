//! When segments begin: constant lengths, timelines, and durations in words.

use std::time::Duration;

use super::xml::SegmentTimeline;
use super::{to_duration, wrong, FilmError, Times};

/// More segments than this are a mistake, or an attack on memory: 100,000 of 2 s are 55 hours.
const MOST_SEGMENTS: u64 = 100_000;

/// When segments begin, and how many there are.
pub fn times(
    length: Option<u64>,
    timeline: Option<&SegmentTimeline>,
    timescale: u64,
    offset: u64,
    declared: Option<Duration>,
) -> Result<(Times, u64), FilmError> {
    if let Some(timeline) = timeline {
        let entries = unroll(timeline, timescale, offset, declared)?;
        let count = entries.len() as u64;
        return Ok((Times::Timeline(entries), count));
    }
    let Some(length) = length.filter(|length| *length > 0) else {
        return wrong("neither @duration (above 0) nor a SegmentTimeline says how long segments are");
    };
    let Some(declared) = declared else {
        return wrong("neither MPD@mediaPresentationDuration nor Period@duration says how long the film is");
    };
    let ticks = declared.as_nanos() * u128::from(timescale) / 1_000_000_000;
    let count = ticks.div_ceil(u128::from(length));
    if count > u128::from(MOST_SEGMENTS) {
        return wrong(format!("{count} segments; allowed are 1 to {MOST_SEGMENTS}"));
    }
    Ok((Times::Constant(length), count as u64))
}

/// A timeline's entries one by one (`@r` repeats; -1 repeats to the next entry or the end of the film).
fn unroll(
    timeline: &SegmentTimeline,
    timescale: u64,
    offset: u64,
    declared: Option<Duration>,
) -> Result<Vec<(u64, u64)>, FilmError> {
    let end =
        declared.map(|end| offset.saturating_add((end.as_nanos() * u128::from(timescale) / 1_000_000_000) as u64));
    let mut entries = Vec::new();
    let mut time = offset;
    for (index, entry) in timeline.entries.iter().enumerate() {
        if entry.duration == 0 {
            return wrong("a SegmentTimeline's S has @d = 0; it must be above 0");
        }
        let start = entry.time.unwrap_or(time);
        if start < time && index > 0 {
            return wrong(format!("a SegmentTimeline runs backwards, from {time} to {start}"));
        }
        time = start;
        let until = timeline.entries.get(index + 1).and_then(|next| next.time).or(end);
        let repeats = match entry.repeat.unwrap_or(0) {
            fixed @ 0.. => fixed as u64,
            _ => match until {
                Some(until) => until.saturating_sub(time).div_ceil(entry.duration).max(1) - 1,
                None => return wrong("a SegmentTimeline's S has @r = -1 and the film's duration is not known"),
            },
        };
        if entries.len() as u64 + repeats >= MOST_SEGMENTS {
            return wrong(format!("a SegmentTimeline of more than {MOST_SEGMENTS} segments"));
        }
        for _ in 0..=repeats {
            entries.push((time, entry.duration));
            time = time
                .checked_add(entry.duration)
                .ok_or_else(|| FilmError("a SegmentTimeline's time is above 2^64".into()))?;
        }
    }
    // What begins after the film's end is never played.
    if let Some(end) = end {
        entries.retain(|(start, _)| *start < end);
    }
    Ok(entries)
}

pub fn end_of(times: &Times, timescale: u64, offset: u64) -> Duration {
    match times {
        Times::Constant(_) => Duration::ZERO,
        Times::Timeline(entries) => entries.last().map_or(Duration::ZERO, |(start, length)| {
            to_duration(start.saturating_add(*length).saturating_sub(offset), timescale)
        }),
    }
}

/// An `xs:duration` of days, hours, minutes and seconds, such as `PT15M0.5S`.
pub fn duration(text: &str) -> Result<Duration, FilmError> {
    let bad = || FilmError(format!("\"{text}\" is no duration; expected is the form PT1H2M3.5S, up to 1000 hours"));
    let mut seconds = 0.0;
    let (days, time) = text.trim().strip_prefix('P').ok_or_else(bad)?.split_once('T').ok_or_else(bad)?;
    let units = [(days, &[('D', 86_400.0)][..]), (time, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)][..])];
    for (mut rest, units) in units {
        for (unit, factor) in units {
            if let Some((number, after)) = rest.split_once(*unit) {
                seconds += number.parse::<f64>().map_err(|_| bad())? * factor;
                rest = after;
            }
        }
        if !rest.is_empty() {
            return Err(bad());
        }
    }
    // The comparison also refuses NaN and infinity, which `parse` would take.
    if (0.0..=3_600_000.0).contains(&seconds) {
        Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
    } else {
        Err(bad())
    }
}
