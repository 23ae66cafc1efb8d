use super::*;

fn at() -> Url {
    Url::parse("http://198.18.0.1/video/film.mpd?x=1").unwrap()
}

fn mpd(inner: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"
        mediaPresentationDuration="PT10S"><Period>{inner}</Period></MPD>"#
    )
}

const NUMBERS: &str = r#"<AdaptationSet contentType="video" segmentAlignment="true">
  <SegmentTemplate timescale="1000" duration="2000" startNumber="5" media="$RepresentationID$/$Number$.m4s"
    initialization="$RepresentationID$/init.mp4"/>
  <Representation id="hi" bandwidth="2600000" height="480" codecs="avc1.64001f"/>
  <Representation id="lo" bandwidth="750000" height="360"/></AdaptationSet>
  <AdaptationSet mimeType="audio/mp4"><Representation id="snd" bandwidth="128000">
  <BaseURL>sound/</BaseURL>
  <SegmentTemplate timescale="48000" media="$Time$.m4s">
  <SegmentTimeline><S t="0" d="96000" r="3"/><S d="90000"/></SegmentTimeline></SegmentTemplate>
  </Representation></AdaptationSet>"#;

#[test]
fn renditions_come_lowest_rate_first_with_their_names() {
    let film = parse(&mpd(NUMBERS), &at()).unwrap();
    assert_eq!(film.duration, Duration::from_secs(10));
    assert_eq!(film.video.iter().map(|one| one.height.unwrap()).collect::<Vec<_>>(), [360, 480]);
    assert_eq!(film.rate_kbps(film.top()), 2728);
    let top = &film.video[1];
    assert_eq!(top.count(), 5);
    let segment = top.segment(4).unwrap();
    assert_eq!(segment.url.as_str(), "http://198.18.0.1/video/hi/9.m4s");
    assert_eq!((segment.start, segment.end), (Duration::from_secs(8), Duration::from_secs(10)));
    assert_eq!(top.initialization.as_ref().unwrap().path(), "/video/hi/init.mp4");
}

#[test]
fn a_timeline_gives_times_and_base_urls_nest() {
    let film = parse(&mpd(NUMBERS), &at()).unwrap();
    let audio = film.audio.unwrap();
    assert_eq!(audio.count(), 5);
    let last = audio.segment(4).unwrap();
    assert_eq!(last.url.as_str(), "http://198.18.0.1/video/sound/384000.m4s");
    assert_eq!(last.end, Duration::from_millis(9875));
}

#[test]
fn a_timeline_that_repeats_to_the_end_fills_the_film() {
    let text = NUMBERS.replace(r#"r="3"/><S d="90000"/>"#, r#"r="-1"/>"#);
    let audio = parse(&mpd(&text), &at()).unwrap().audio.unwrap();
    assert_eq!(audio.count(), 5);
}

#[test]
fn the_offset_is_in_the_names_and_not_in_the_times() {
    let text = NUMBERS.replace(r#"t="0""#, r#"t="48000""#).replace(
        r#"<SegmentTemplate timescale="48000""#,
        r#"<SegmentTemplate presentationTimeOffset="48000" timescale="48000""#,
    );
    let audio = parse(&mpd(&text), &at()).unwrap().audio.unwrap();
    let first = audio.segment(0).unwrap();
    assert_eq!(first.start, Duration::ZERO);
    assert!(first.url.path().ends_with("/48000.m4s"));
}

#[test]
fn a_segment_list_works_too() {
    let text = mpd(r#"<AdaptationSet contentType="video"><Representation id="v" bandwidth="1000">
      <SegmentList duration="5"><Initialization sourceURL="i.mp4"/><SegmentURL media="a.m4s"/>
      <SegmentURL media="b.m4s"/></SegmentList></Representation></AdaptationSet>"#);
    let film = parse(&text, &at()).unwrap();
    assert_eq!(film.video[0].segment(1).unwrap().url.path(), "/video/b.m4s");
}

#[test]
fn the_next_segment_is_the_one_that_brings_something() {
    let film = parse(&mpd(NUMBERS), &at()).unwrap();
    let top = &film.video[1];
    assert_eq!(top.next_after(Duration::ZERO), Some(0));
    assert_eq!(top.next_after(Duration::from_secs(2)), Some(1));
    assert_eq!(top.next_after(Duration::from_millis(1990)), Some(1));
    assert_eq!(top.next_after(Duration::from_millis(3000)), Some(1));
    assert_eq!(top.next_after(Duration::from_secs(10)), None);
}

#[test]
fn what_is_not_supported_is_named() {
    let cases = [
        ("<html/>".to_string(), "not an MPD"),
        ("<?xml version=\"1.0\"?><!-- x --><smil><body/></smil>".to_string(), "the root element smil"),
        (mpd(NUMBERS).replace("</Period>", ""), "not an MPD"),
        (String::new(), "not an MPD"),
        (mpd(NUMBERS).replace("static", "dynamic"), "MPD@type is \"dynamic\""),
        (mpd(NUMBERS).replace("</Period>", "</Period><Period/>"), "2 Period elements"),
        (mpd(""), "no AdaptationSet"),
        (mpd(NUMBERS).replace("PT10S", "10 s"), "is no duration"),
        (mpd(NUMBERS).replace("PT10S", "PTNANS"), "is no duration"),
        (mpd(NUMBERS).replace("PT10S", "PT0S"), "no segment"),
        (mpd(NUMBERS).replace("PT10S", "PT900H"), "allowed are 1 to 100000"),
        (mpd(NUMBERS).replace("2600000", "0"), "Representation \"hi\": @bandwidth"),
        (mpd(NUMBERS).replace("timescale=\"1000\"", "timescale=\"0\""), "@timescale is 0"),
        (mpd(NUMBERS).replace("$Number$", "$Num$"), "$Num$"),
        (mpd(NUMBERS).replace("sound/", "ftp://x/"), "scheme ftp"),
        (mpd(NUMBERS).replace("d=\"90000\"", "d=\"0\""), "@d = 0"),
        (mpd(NUMBERS).replace("r=\"3\"", "r=\"9223372036854775807\""), "more than 100000"),
    ];
    for (text, expected) in cases {
        let error = parse(&text, &at()).unwrap_err().0;
        assert!(error.contains(expected), "{error:?} does not name {expected:?}");
    }
    let base = mpd(r#"<AdaptationSet contentType="video"><Representation id="v" bandwidth="1">
        <BaseURL>film.mp4</BaseURL><SegmentBase/></Representation></AdaptationSet>"#);
    assert!(parse(&base, &at()).unwrap_err().0.contains("SegmentBase"));
}

/// Pieces of an MPD, right and wrong, to be put together in any order.
const PIECES: [&str; 14] = [
    "<MPD type=\"static\" mediaPresentationDuration=\"PT9S\">",
    "<Period duration=\"PT1H1M1.5S\">",
    "<AdaptationSet contentType=\"video\">",
    "<SegmentTemplate media=\"$Number$\" timescale=\"18446744073709551615\" duration=\"1\"/>",
    "<SegmentTemplate media=\"$Time$\" timescale=\"1\" startNumber=\"18446744073709551615\" duration=\"1\"/>",
    "<SegmentTemplate media=\"$Time$\" presentationTimeOffset=\"18446744073709551615\"><SegmentTimeline>",
    "<S t=\"18446744073709551615\" d=\"18446744073709551615\" r=\"3\"/>",
    "<S d=\"1\" r=\"-1\"/>",
    "</SegmentTimeline></SegmentTemplate>",
    "<Representation id=\"v\" bandwidth=\"9\"/>",
    "<BaseURL>//[</BaseURL>",
    "</AdaptationSet>",
    "</Period>",
    "</MPD>",
];

proptest::proptest! {
    /// Whatever comes from the network is a film or an error, and no panic; a film's segments can all be named.
    #[test]
    fn no_text_brings_the_reader_down(
        picked in proptest::collection::vec(proptest::sample::subsequence(&PIECES[..], 0..14), 1..3),
        noise in "\\PC{0,40}",
    ) {
        for text in [picked.concat().concat(), format!("{}{noise}", picked.concat().concat()), noise.clone()] {
            if let Ok(film) = parse(&text, &at()) {
                for rendition in film.video.iter().chain(&film.audio) {
                    for index in [0, rendition.count() - 1] {
                        let _ = rendition.segment(index);
                        proptest::prop_assert!(rendition.span(index).1 <= film.duration);
                    }
                    let _ = rendition.next_after(film.duration);
                }
            }
        }
    }
}
