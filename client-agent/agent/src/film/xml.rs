//! The part of an MPD (ISO/IEC 23009-1) that this player reads, element by element as it stands in the file.
//! Nothing is judged here; `parse` does that. Elements and attributes that are not named are passed over.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename = "MPD")]
pub struct Mpd {
    #[serde(rename = "@type")]
    pub kind: Option<String>,
    #[serde(rename = "@mediaPresentationDuration")]
    pub duration: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub base_urls: Vec<String>,
    #[serde(rename = "Period", default)]
    pub periods: Vec<Period>,
}

#[derive(Debug, Deserialize)]
pub struct Period {
    #[serde(rename = "@duration")]
    pub duration: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub base_urls: Vec<String>,
    #[serde(rename = "AdaptationSet", default)]
    pub sets: Vec<AdaptationSet>,
    #[serde(rename = "SegmentTemplate")]
    pub template: Option<SegmentTemplate>,
    #[serde(rename = "SegmentList")]
    pub list: Option<SegmentList>,
}

#[derive(Debug, Deserialize)]
pub struct AdaptationSet {
    #[serde(rename = "@contentType")]
    pub content_type: Option<String>,
    #[serde(rename = "@mimeType")]
    pub mime_type: Option<String>,
    #[serde(rename = "@height")]
    pub height: Option<u32>,
    #[serde(rename = "BaseURL", default)]
    pub base_urls: Vec<String>,
    #[serde(rename = "SegmentTemplate")]
    pub template: Option<SegmentTemplate>,
    #[serde(rename = "SegmentList")]
    pub list: Option<SegmentList>,
    #[serde(rename = "Representation", default)]
    pub representations: Vec<Representation>,
}

#[derive(Debug, Deserialize)]
pub struct Representation {
    #[serde(rename = "@id")]
    pub id: Option<String>,
    #[serde(rename = "@bandwidth")]
    pub bandwidth: Option<u64>,
    #[serde(rename = "@height")]
    pub height: Option<u32>,
    #[serde(rename = "@mimeType")]
    pub mime_type: Option<String>,
    #[serde(rename = "BaseURL", default)]
    pub base_urls: Vec<String>,
    #[serde(rename = "SegmentTemplate")]
    pub template: Option<SegmentTemplate>,
    #[serde(rename = "SegmentList")]
    pub list: Option<SegmentList>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct SegmentTemplate {
    #[serde(rename = "@media")]
    pub media: Option<String>,
    #[serde(rename = "@initialization")]
    pub initialization: Option<String>,
    #[serde(rename = "@timescale")]
    pub timescale: Option<u64>,
    #[serde(rename = "@duration")]
    pub duration: Option<u64>,
    #[serde(rename = "@startNumber")]
    pub start_number: Option<u64>,
    #[serde(rename = "@endNumber")]
    pub end_number: Option<u64>,
    #[serde(rename = "@presentationTimeOffset")]
    pub offset: Option<u64>,
    #[serde(rename = "SegmentTimeline")]
    pub timeline: Option<SegmentTimeline>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct SegmentTimeline {
    #[serde(rename = "S", default)]
    pub entries: Vec<TimelineEntry>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct TimelineEntry {
    #[serde(rename = "@t")]
    pub time: Option<u64>,
    #[serde(rename = "@d")]
    pub duration: u64,
    #[serde(rename = "@r")]
    pub repeat: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct SegmentList {
    #[serde(rename = "@timescale")]
    pub timescale: Option<u64>,
    #[serde(rename = "@duration")]
    pub duration: Option<u64>,
    #[serde(rename = "@presentationTimeOffset")]
    pub offset: Option<u64>,
    #[serde(rename = "Initialization")]
    pub initialization: Option<Initialization>,
    #[serde(rename = "SegmentTimeline")]
    pub timeline: Option<SegmentTimeline>,
    #[serde(rename = "SegmentURL", default)]
    pub urls: Vec<SegmentUrl>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Initialization {
    #[serde(rename = "@sourceURL")]
    pub source: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct SegmentUrl {
    #[serde(rename = "@media")]
    pub media: Option<String>,
}

impl SegmentTemplate {
    /// What an element says, completed by what the element around it says (ISO/IEC 23009-1, 5.3.9.1).
    pub fn inherit(mut self, outer: &SegmentTemplate) -> SegmentTemplate {
        self.media = self.media.or_else(|| outer.media.clone());
        self.initialization = self.initialization.or_else(|| outer.initialization.clone());
        self.timescale = self.timescale.or(outer.timescale);
        self.start_number = self.start_number.or(outer.start_number);
        self.end_number = self.end_number.or(outer.end_number);
        self.offset = self.offset.or(outer.offset);
        // A timeline and a constant duration exclude each other: the inner element's choice counts.
        if self.duration.is_none() && self.timeline.is_none() {
            self.duration = outer.duration;
            self.timeline = outer.timeline.clone();
        }
        self
    }
}
