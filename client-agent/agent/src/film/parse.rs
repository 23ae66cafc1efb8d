//! From the MPD's text to a `Film`, or an error that names what is missing or not supported.

use std::time::Duration;

use url::Url;

use super::xml::{AdaptationSet, Mpd, Period, Representation, SegmentList, SegmentTemplate, SegmentTimeline};
use super::{template, to_duration, Film, FilmError, Names, Rendition, Segments, Times};

/// More segments than this are a mistake, or an attack on memory: 100,000 of 2 s are 55 hours.
const MOST_SEGMENTS: u64 = 100_000;
const MOST_RENDITIONS: usize = 64;

fn wrong<T>(message: impl Into<String>) -> Result<T, FilmError> {
    Err(FilmError(message.into()))
}

/// Reads an MPD found at `url`. Supported: static, one Period, SegmentTemplate or SegmentList.
pub fn parse(text: &str, url: &Url) -> Result<Film, FilmError> {
    let mpd: Mpd = quick_xml::de::from_str(text)
        .map_err(|error| FilmError(format!("not an MPD (DASH manifest, XML with the root element MPD): {error}")))?;
    match mpd.kind.as_deref() {
        None | Some("static") => {}
        Some(other) => return wrong(format!("MPD@type is \"{other}\"; supported is \"static\" (on demand), not live")),
    }
    let [period] = mpd.periods.as_slice() else {
        return wrong(format!("the MPD has {} Period elements; supported is exactly 1", mpd.periods.len()));
    };
    let declared = match period.duration.as_deref().or(mpd.duration.as_deref()) {
        Some(text) => Some(duration(text)?),
        None => None,
    };
    let base = join(&join(url, &mpd.base_urls)?, &period.base_urls)?;

    let mut notes = Vec::new();
    let video_set = choose(period, "video", &mut notes)
        .ok_or_else(|| FilmError("the MPD has no AdaptationSet of contentType or mimeType video".into()))?;
    let mut video = renditions(period, video_set, &base, declared)?;
    video.sort_by_key(|rendition| rendition.bandwidth_bps);
    let audio = match choose(period, "audio", &mut notes) {
        None => None,
        Some(set) => {
            let mut all = renditions(period, set, &base, declared)?;
            all.sort_by_key(|rendition| rendition.bandwidth_bps);
            if all.len() > 1 {
                notes.push(format!("{} audio Representations: the one with the highest rate plays", all.len()));
            }
            all.pop()
        }
    };
    let longest = video.iter().map(|rendition| rendition.segments.film_duration).max();
    let duration = declared.or(longest).unwrap_or_default();
    if duration.is_zero() {
        return wrong("the film's duration is 0 s; it must be longer");
    }
    Ok(Film { duration, video, audio, notes })
}

/// The first AdaptationSet of this kind that has a Representation.
fn choose<'a>(period: &'a Period, kind: &str, notes: &mut Vec<String>) -> Option<&'a AdaptationSet> {
    let is_kind = |set: &&AdaptationSet| {
        let mime = set.mime_type.as_ref().or_else(|| set.representations.first()?.mime_type.as_ref());
        !set.representations.is_empty()
            && match (&set.content_type, mime) {
                (Some(content), _) => content == kind,
                (None, Some(mime)) => mime.split('/').next() == Some(kind),
                (None, None) => false,
            }
    };
    let count = period.sets.iter().filter(is_kind).count();
    if count > 1 {
        notes.push(format!("{count} {kind} AdaptationSets: the first plays"));
    }
    period.sets.iter().find(is_kind)
}

fn renditions(
    period: &Period,
    set: &AdaptationSet,
    base: &Url,
    declared: Option<Duration>,
) -> Result<Vec<Rendition>, FilmError> {
    if set.representations.len() > MOST_RENDITIONS {
        return wrong(format!(
            "an AdaptationSet has {} Representations; allowed are 1 to {MOST_RENDITIONS}",
            set.representations.len()
        ));
    }
    let base = join(base, &set.base_urls)?;
    set.representations.iter().map(|one| rendition(period, set, one, &base, declared)).collect()
}

fn rendition(
    period: &Period,
    set: &AdaptationSet,
    one: &Representation,
    base: &Url,
    declared: Option<Duration>,
) -> Result<Rendition, FilmError> {
    let id = one.id.clone().unwrap_or_default();
    let named = |error: FilmError| FilmError(format!("Representation \"{id}\": {}", error.0));
    let Some(bandwidth_bps) = one.bandwidth.filter(|rate| (1..=10_000_000_000).contains(rate)) else {
        return Err(named(FilmError("@bandwidth is missing or not from 1 to 10000000000 bit/s".into())));
    };
    let base = join(base, &one.base_urls).map_err(named)?;
    let (segments, initialization) = addressing(period, set, one, &base, bandwidth_bps, declared).map_err(named)?;
    let rendition =
        Rendition { id: id.clone(), height: one.height.or(set.height), bandwidth_bps, initialization, segments };
    // The name of the last segment is tried now, so that no name fails in the middle of the film.
    rendition.segment(rendition.count() - 1).map_err(named)?;
    Ok(rendition)
}

fn addressing(
    period: &Period,
    set: &AdaptationSet,
    one: &Representation,
    base: &Url,
    bandwidth: u64,
    declared: Option<Duration>,
) -> Result<(Segments, Option<Url>), FilmError> {
    let levels = [&one.template, &set.template, &period.template];
    if let Some(template) = levels.into_iter().flatten().cloned().reduce(|inner, outer| inner.inherit(&outer)) {
        let id = one.id.as_deref().unwrap_or_default();
        return by_template(&template, base, id, bandwidth, declared);
    }
    match one.list.as_ref().or(set.list.as_ref()).or(period.list.as_ref()) {
        Some(list) => by_list(list, base, declared),
        None => {
            wrong("neither SegmentTemplate nor SegmentList; single files with an index (SegmentBase) are not supported")
        }
    }
}

fn by_template(
    template: &SegmentTemplate,
    base: &Url,
    id: &str,
    bandwidth: u64,
    declared: Option<Duration>,
) -> Result<(Segments, Option<Url>), FilmError> {
    let Some(media) = template.media.clone() else {
        return wrong("SegmentTemplate has no @media");
    };
    let timescale = scale(template.timescale)?;
    let offset = template.offset.unwrap_or(0);
    let start_number = template.start_number.unwrap_or(1);
    let (times, mut count) = times(template.duration, template.timeline.as_ref(), timescale, offset, declared)?;
    if let Some(end) = template.end_number {
        count = count.min(end.saturating_add(1).saturating_sub(start_number));
    }
    if count == 0 {
        return wrong("SegmentTemplate has no segment");
    }
    let initialization = match &template.initialization {
        None => None,
        Some(pattern) => {
            let values = template::Values { representation_id: id, bandwidth, number: 0, time: 0 };
            Some(resolve(base, &template::expand(pattern, values).map_err(FilmError)?)?)
        }
    };
    let film_duration = declared.unwrap_or_else(|| end_of(&times, timescale, offset));
    let names = Names::Pattern { base: base.clone(), media, start_number };
    Ok((Segments { film_duration, count: count as usize, timescale, offset, times, names }, initialization))
}

fn by_list(list: &SegmentList, base: &Url, declared: Option<Duration>) -> Result<(Segments, Option<Url>), FilmError> {
    let timescale = scale(list.timescale)?;
    let offset = list.offset.unwrap_or(0);
    let urls = list
        .urls
        .iter()
        .map(|entry| match &entry.media {
            Some(media) => resolve(base, media),
            None => wrong("a SegmentURL has no @media; byte ranges are not supported"),
        })
        .collect::<Result<Vec<Url>, FilmError>>()?;
    let length = to_duration(list.duration.unwrap_or(0).saturating_mul(urls.len() as u64), timescale);
    let declared = declared.or((!length.is_zero()).then_some(length));
    let (times, count) = times(list.duration, list.timeline.as_ref(), timescale, offset, declared)?;
    let count = (count as usize).min(urls.len());
    if count == 0 {
        return wrong("SegmentList has no SegmentURL");
    }
    let initialization = match list.initialization.as_ref().and_then(|element| element.source.as_ref()) {
        None => None,
        Some(source) => Some(resolve(base, source)?),
    };
    let film_duration = declared.unwrap_or_else(|| end_of(&times, timescale, offset));
    Ok((Segments { film_duration, count, timescale, offset, times, names: Names::List(urls) }, initialization))
}

/// When segments begin, and how many there are.
fn times(
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

fn end_of(times: &Times, timescale: u64, offset: u64) -> Duration {
    match times {
        Times::Constant(_) => Duration::ZERO,
        Times::Timeline(entries) => entries.last().map_or(Duration::ZERO, |(start, length)| {
            to_duration(start.saturating_add(*length).saturating_sub(offset), timescale)
        }),
    }
}

fn scale(timescale: Option<u64>) -> Result<u64, FilmError> {
    match timescale.unwrap_or(1) {
        // The bound keeps every product of ticks within 64 bits.
        scale @ 1..=10_000_000_000 => Ok(scale),
        scale => wrong(format!("@timescale is {scale}; allowed are 1 to 10000000000")),
    }
}

/// The first BaseURL counts; the others are alternatives.
fn join(base: &Url, bases: &[String]) -> Result<Url, FilmError> {
    bases.first().map_or_else(|| Ok(base.clone()), |text| resolve(base, text.trim()))
}

fn resolve(base: &Url, text: &str) -> Result<Url, FilmError> {
    let url = base.join(text).map_err(|error| FilmError(format!("\"{text}\" is no URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => wrong(format!("\"{text}\" has the scheme {other}; allowed are http and https")),
    }
}

/// An `xs:duration` of days, hours, minutes and seconds, such as `PT15M0.5S`.
fn duration(text: &str) -> Result<Duration, FilmError> {
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

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
