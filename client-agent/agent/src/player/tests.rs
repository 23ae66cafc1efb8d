//! The player against a fluid network: a line whose rate is shared by the downloads under way.

use super::*;
use crate::player::words::{Failure, Fetch, TrackKind};
use proptest::prelude::*;
use rule::Rule;
use url::Url;

const MS: Duration = Duration::from_millis(1);

fn film(seconds: u64, segment_ms: u64) -> Arc<Film> {
    let text = format!(
        r#"<MPD type="static" mediaPresentationDuration="PT{seconds}S"><Period>
        <AdaptationSet contentType="video"><SegmentTemplate timescale="1000" duration="{segment_ms}"
          media="$RepresentationID$/$Number$" initialization="$RepresentationID$/i"/>
          <Representation id="a" bandwidth="2600000" height="480"/>
          <Representation id="b" bandwidth="750000" height="360"/></AdaptationSet>
        <AdaptationSet contentType="audio"><SegmentTemplate timescale="1000" duration="{segment_ms}"
          media="$RepresentationID$/$Number$"/><Representation id="s" bandwidth="128000"/></AdaptationSet>
        </Period></MPD>"#
    );
    Arc::new(crate::film::parse(&text, &Url::parse("http://h/m.mpd").unwrap()).unwrap())
}

fn settings(rule: Rule) -> Settings {
    Settings {
        goal: Duration::from_secs(55),
        start_at: Duration::from_millis(2500),
        rule,
        obey_advice: true,
        give_up_after: Duration::from_secs(60),
    }
}

struct Simulation {
    player: Player,
    now: Duration,
    under_way: Vec<(Fetch, f64, Duration)>,
    events: Vec<Event>,
    asked: Vec<Fetch>,
}

impl Simulation {
    fn new(film: Arc<Film>, settings: Settings) -> Simulation {
        let player = Player::new(film, settings);
        Simulation { player, now: Duration::ZERO, under_way: Vec::new(), events: Vec::new(), asked: Vec::new() }
    }

    fn bits(&self, fetch: &Fetch) -> f64 {
        let film = self.player.film();
        let rate = match (fetch.track, &film.audio) {
            (TrackKind::Audio, Some(audio)) => audio.bandwidth_bps,
            _ => film.video[fetch.rendition].bandwidth_bps,
        };
        (rate as f64 * (fetch.end.saturating_sub(fetch.start)).as_secs_f64()).max(6400.0)
    }

    /// Runs to `end` in steps of a millisecond, with this rate.
    fn run(&mut self, end: Duration, rate_bps: f64) {
        while self.now < end && !self.player.state().is_final() {
            let now = self.now;
            self.events.extend(self.player.advance(now));
            while let Some(fetch) = self.player.next_fetch(now) {
                let bits = self.bits(&fetch);
                self.asked.push(fetch.clone());
                self.under_way.push((fetch, bits, now));
            }
            let share = rate_bps * 0.001 / self.under_way.len().max(1) as f64;
            self.under_way.iter_mut().for_each(|(_, left, _)| *left -= share);
            self.now += MS;
            let (done, rest) = self.under_way.drain(..).partition(|(_, left, _)| *left <= 0.0);
            self.under_way = rest;
            for (fetch, _, began) in done {
                let bytes = (self.bits(&fetch) / 8.0) as u64;
                self.player.fetched(&fetch, bytes, self.now - began);
            }
        }
    }

    fn states(&self) -> Vec<(State, f64)> {
        let state = |event: &Event| match event {
            Event::State { to, at, .. } => Some((*to, at.as_secs_f64())),
            Event::Quality { .. } => None,
        };
        self.events.iter().filter_map(state).collect()
    }

    fn buffered(&self) -> f64 {
        self.player.snapshot(self.now).buffered.as_secs_f64()
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn undisturbed_it_fills_to_its_goal_and_holds_it_at_the_top_rate() {
    let mut run = Simulation::new(film(900, 2000), settings(Rule::buffer(s(55))));
    run.run(s(30), 9.5e6);
    for second in 31..120 {
        run.run(s(second), 9.5e6);
        assert!((52.0..=55.0).contains(&run.buffered()), "{}", run.buffered());
    }
    assert_eq!(run.states().iter().map(|(state, _)| *state).collect::<Vec<_>>(), [State::Playing]);
    assert_eq!(run.player.shown()[0], Duration::ZERO);
}

#[test]
fn the_sources_arithmetic_holds() {
    // One of 21 flows on a line of 9.56 Mbit/s gets 0.455: 55 s of buffer from t = 60 s last until about 125 s.
    let mut run = Simulation::new(film(900, 2000), settings(Rule::Off));
    run.run(s(60), 9.56e6);
    run.run(s(160), 9.56e6 / 21.0);
    let stall = run.states().iter().find(|(state, _)| *state == State::Rebuffering).unwrap().1;
    assert!((115.0..135.0).contains(&stall), "stalled at {stall}");
}

#[test]
fn a_starving_player_steps_down_before_it_stalls_and_up_again() {
    let mut run = Simulation::new(film(900, 2000), settings(Rule::buffer(s(55))));
    run.run(s(60), 9.5e6);
    run.run(s(150), 1.3e6);
    let snapshot = run.player.snapshot(run.now);
    assert_eq!((snapshot.fetched, snapshot.stall_count), (0, 0));
    run.run(s(200), 9.5e6);
    assert_eq!(run.player.snapshot(run.now).shown, Some(1));
    let switches = run.events.iter().filter(|event| matches!(event, Event::Quality { .. })).count();
    assert!((2..=4).contains(&switches), "{switches} switches");
}

#[test]
fn a_stall_begins_when_the_buffer_is_empty_and_ends_with_two_and_a_half_seconds() {
    let mut run = Simulation::new(film(900, 2000), settings(Rule::Off));
    run.run(s(5), 9.5e6);
    let left = run.buffered();
    run.run(s(60), 1.0);
    let (state, at) = run.states()[1];
    assert_eq!(state, State::Rebuffering);
    assert!((at - 5.0 - left).abs() < 0.01);
    assert!(run.player.take_starved() && !run.player.take_starved());
    run.run(s(70), 9.5e6);
    assert_eq!(run.states()[2].0, State::Playing);
    let snapshot = run.player.snapshot(run.now);
    assert!((snapshot.stalled.as_secs_f64() - (run.states()[2].1 - at)).abs() < 0.002);
}

#[test]
fn a_film_shorter_than_the_start_threshold_plays() {
    let mut run = Simulation::new(film(1, 1000), settings(Rule::buffer(s(55))));
    run.run(s(10), 9.5e6);
    assert_eq!(run.player.state(), State::Ended);
    assert!((run.states()[1].1 - run.states()[0].1 - 1.0).abs() < 1e-9);
}

#[test]
fn a_film_without_sound_plays() {
    let silent = Film { audio: None, ..(*film(6, 2000)).clone() };
    let mut run = Simulation::new(Arc::new(silent), settings(Rule::buffer(s(55))));
    run.run(s(20), 9.5e6);
    assert_eq!((run.player.state(), run.player.snapshot(run.now).stall_count), (State::Ended, 0));
    assert!(run.asked.iter().all(|fetch| fetch.track == TrackKind::Video));
}

#[test]
fn a_goal_smaller_than_a_segment_still_plays() {
    let small = Settings { goal: s(4), ..settings(Rule::buffer(s(55))) };
    let mut run = Simulation::new(film(40, 10_000), small);
    run.run(s(60), 2e7);
    assert_eq!((run.player.state(), run.player.snapshot(run.now).stall_count), (State::Ended, 0));
}

#[test]
fn advice_caps_the_rate_until_it_is_old() {
    let mut run = Simulation::new(film(900, 2000), settings(Rule::buffer(s(55))));
    run.run(s(20), 9.5e6);
    run.player.advise(1_000_000, run.now);
    run.run(s(45), 9.5e6);
    assert_eq!(run.player.snapshot(run.now).fetched, 0);
    run.run(s(60), 9.5e6);
    assert_eq!(run.player.snapshot(run.now).fetched, 1);
}

#[test]
fn what_is_not_there_is_fatal_after_three_attempts_and_what_fails_after_a_minute() {
    for (failure, least, most) in
        [(Failure::Lasting("404".into()), 0.5, 1.0), (Failure::Passing("reset".into()), 60.0, 64.5)]
    {
        let mut player = Player::new(film(60, 2000), settings(Rule::buffer(s(55))));
        let mut now = Duration::ZERO;
        while !player.state().is_final() && now < s(100) {
            player.advance(now);
            while let Some(fetch) = player.next_fetch(now) {
                player.failed(&fetch, &failure, now);
            }
            now = player.wake_at(now).unwrap_or(now).max(now + MS);
        }
        assert_eq!(player.state(), State::FatalError);
        assert!((least..=most).contains(&now.as_secs_f64()), "{failure:?} at {now:?}");
    }
}

#[test]
fn the_viewer_may_leave_at_any_time() {
    let mut run = Simulation::new(film(60, 2000), settings(Rule::buffer(s(55))));
    run.run(s(10), 9.5e6);
    run.player.quit(run.now, "enough");
    run.player.quit(run.now, "twice");
    assert_eq!(run.player.advance(run.now).len(), 1);
    assert_eq!(run.player.next_fetch(run.now), None);
    assert_eq!(run.player.wake_at(run.now), None);
}

#[test]
fn a_late_wake_does_not_change_when_things_happened() {
    let mut run = Simulation::new(film(900, 2000), settings(Rule::Off));
    run.run(s(5), 9.5e6);
    run.player.advance(run.now);
    let empty_at = run.now + run.player.snapshot(run.now).buffered;
    let late = run.now + s(100);
    let events = run.player.advance(late);
    let stall = |event: &Event| matches!(event, Event::State { to: State::Rebuffering, at, .. } if *at == empty_at);
    assert!(events.len() == 1 && stall(&events[0]), "{events:?}, empty at {empty_at:?}");
    assert_eq!(run.player.snapshot(late).stalled, late - empty_at);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever the network does: the buffer never exceeds the goal, each second is spent in exactly one state, what
    /// was shown is what the playhead passed, each segment is asked for once and in order, and the film ends.
    #[test]
    fn laws_of_playback(
        rates in proptest::collection::vec(prop_oneof![Just(0.0), 1e5..2e7f64], 1..8),
        segment_ms in prop_oneof![Just(1000u64), Just(2000), Just(3700)],
        rule in prop_oneof![Just(Rule::buffer(s(55))), Just(Rule::Off)],
    ) {
        let mut run = Simulation::new(film(60, segment_ms), settings(rule));
        for (index, rate) in rates.iter().enumerate() {
            run.run(s(5 * (index as u64 + 1)), *rate);
            let snapshot = run.player.snapshot(run.now);
            prop_assert!(snapshot.buffered <= s(55));
            prop_assert!(snapshot.audio_buffered.unwrap() <= s(55));
            let shown: Duration = run.player.shown().iter().sum();
            prop_assert!(shown == snapshot.position, "shown {shown:?}, played {:?}", snapshot.position);
            if let Some(startup) = snapshot.startup.filter(|_| !snapshot.state.is_final()) {
                let accounted = startup + snapshot.position + snapshot.stalled;
                prop_assert!(run.now.abs_diff(accounted) <= 2 * MS, "{:?} of {:?}", accounted, run.now);
            }
        }
        run.run(s(400), 2e7);
        prop_assert_eq!(run.player.state(), State::Ended);
        for kind in [TrackKind::Video, TrackKind::Audio] {
            let asked: Vec<usize> =
                run.asked.iter().filter(|fetch| fetch.track == kind).filter_map(|fetch| fetch.segment).collect();
            let count = run.player.film().video[0].count();
            prop_assert_eq!(asked, (0..count).collect::<Vec<_>>());
        }
    }
}
