//! From the MPD's text to a `Film`, or an error that names what is missing or not supported.

use std::time::Duration;

use quick_xml::events::Event;
use url::Url;

use super::times::{duration, end_of, times};
use super::xml::{AdaptationSet, Mpd, Period, Representation, SegmentList, SegmentTemplate};
use super::{template, to_duration, wrong, Film, FilmError, Names, Rendition, Segments};

const MOST_RENDITIONS: usize = 64;

/// Reads an MPD found at `url`. Supported: static, one Period, SegmentTemplate or SegmentList.
pub fn parse(text: &str, url: &Url) -> Result<Film, FilmError> {
    let root = root_element(text);
    if root.as_deref() != Some("MPD") {
        let found = root.map_or("no element".to_string(), |name| format!("the root element {name}"));
        return wrong(format!("not an MPD (DASH manifest, XML with the root element MPD): it has {found}"));
    }
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

/// The name of the first element: the XML reader below would take any.
fn root_element(text: &str) -> Option<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => {
                return Some(element.local_name().as_ref().to_string());
            }
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
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

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
