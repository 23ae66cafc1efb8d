//! One player at work: the shell around `player::Player` that downloads, reports and records.

mod words;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{json, Value};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use url::Url;

use crate::clock::Clock;
use crate::film::{self, Film};
use crate::http::{Answer, Body, Client, Flow, FlowEvent, HttpError};
use crate::player::words::{Event, Fetch, Settings, Snapshot, State};
use crate::player::Player;
use crate::record::{seconds, Line, Playback, Recorder};
use crate::report::stream::{FromStation, Reporter};
use crate::report::{report, Head};
use crate::terminal::{complain, say};
use crate::wire::steerline::report::v1::ReportCause;

const REPORT_EVERY: Duration = Duration::from_secs(1);
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// No manifest is longer; what is longer is not one.
const MOST_MANIFEST: usize = 16 * 1024 * 1024;

/// What one player needs from the process around it.
pub struct Surroundings {
    pub session_id: String,
    pub url: Url,
    pub settings: Settings,
    /// The viewer leaves after this time.
    pub duration: Option<Duration>,
    /// From 0 to 1: where in the second this player's periodic reports fall.
    pub phase: f64,
    pub clock: Clock,
    pub client: Arc<Client>,
    pub flows: UnboundedReceiver<FlowEvent>,
    pub station: UnboundedReceiver<FromStation>,
    /// Kept so that `station` never ends, also where there is no station.
    pub station_sender: UnboundedSender<FromStation>,
    pub reporter: Option<Reporter>,
    pub recorder: Recorder,
    /// Becomes true when the process shall end.
    pub stop: watch::Receiver<bool>,
    pub quiet: bool,
}

/// How a session ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub session_id: String,
    pub last: Snapshot,
    /// Height (or rate, where there is none) and time of what was on the screen.
    pub shown: Vec<(String, Duration)>,
    /// Why the film could not be played to the end.
    pub error: Option<String>,
}

/// Why a session did not begin, in words for people.
#[derive(Debug, Clone)]
pub struct NotStarted(pub String);

type Download = Pin<Box<dyn std::future::Future<Output = (Fetch, Duration, Result<Answer, HttpError>)> + Send>>;

/// Plays until the film ends, the viewer leaves, or an error ends it.
pub async fn play(mut around: Surroundings) -> Result<Option<Outcome>, NotStarted> {
    let started_at = around.clock.now();
    let loaded = tokio::select! {
        loaded = load(&around.client, &around.url) => loaded.map_err(NotStarted)?,
        () = stopped(&mut around.stop) => return Ok(None),
    };
    for note in &loaded.notes {
        if !around.quiet {
            complain!("{}: {note}", around.session_id);
        }
    }
    let film = Arc::new(loaded);
    let player = Player::new(Arc::clone(&film), around.settings.clone());
    // Higher than any number of an earlier process under the same name: a restarted agent is heard.
    let sequence_number = around.clock.unix(started_at).as_millis() as u64;
    let first_report = started_at + REPORT_EVERY.mul_f64(around.phase.clamp(0.0, 1.0));
    let session = Session {
        started_at,
        next_report: first_report.max(around.clock.now()),
        next_sample: around.clock.now(),
        around,
        film,
        player,
        open: BTreeSet::new(),
        sequence_number,
        critical: None,
        error: None,
    };
    Ok(Some(session.run().await))
}

async fn load(client: &Client, url: &Url) -> Result<Film, String> {
    let answer = client.get(url, Body::Keep(MOST_MANIFEST)).await.map_err(|error| format!("{url}: {error}"))?;
    let text = String::from_utf8(answer.body).map_err(|_| format!("{url}: not an MPD: not UTF-8"))?;
    film::parse(&text, &answer.url).map_err(|error| format!("{url}: {error}"))
}

struct Session {
    around: Surroundings,
    started_at: Duration,
    film: Arc<Film>,
    player: Player,
    open: BTreeSet<Flow>,
    sequence_number: u64,
    next_report: Duration,
    next_sample: Duration,
    critical: Option<bool>,
    error: Option<String>,
}

impl Session {
    async fn run(mut self) -> Outcome {
        let mut downloads: FuturesUnordered<Download> = FuturesUnordered::new();
        self.state_line("", "STARTING", "the manifest is read");
        self.report(ReportCause::StateChange);
        loop {
            // Flows first: a report that follows then names them.
            while let Ok(event) = self.around.flows.try_recv() {
                self.flow_changed(event);
            }
            self.advance();
            if self.player.state().is_final() {
                return self.end();
            }
            while let Some(fetch) = self.player.next_fetch(self.elapsed()) {
                downloads.push(download(Arc::clone(&self.around.client), self.around.clock, fetch));
            }
            self.advance();
            let due = self.on_time();
            let around = &mut self.around;
            tokio::select! {
                Some((fetch, took, result)) = downloads.next() => self.downloaded(&fetch, took, result),
                Some(event) = around.flows.recv() => self.flow_changed(event),
                Some(message) = around.station.recv() => self.hear(message),
                () = stopped(&mut around.stop) => self.quit("the process was told to stop"),
                () = tokio::time::sleep_until(around.clock.instant(due)) => {}
            }
        }
    }

    /// Time since this player started: the player's `now`.
    fn elapsed(&self) -> Duration {
        self.around.clock.now().saturating_sub(self.started_at)
    }

    /// Does what is due, and says when something is due again (by the process's clock).
    fn on_time(&mut self) -> Duration {
        let now = self.around.clock.now();
        if now >= self.next_sample {
            self.line("sample", Value::Object(serde_json::Map::new()));
            self.next_sample = after(self.next_sample, SAMPLE_EVERY, now);
        }
        if now >= self.next_report {
            self.report(ReportCause::Periodic);
            self.next_report = after(self.next_report, REPORT_EVERY, now);
        }
        let end = self.around.duration.map(|duration| self.started_at + duration);
        let player = self.player.wake_at(self.elapsed()).map(|at| self.started_at + at);
        [Some(self.next_sample), Some(self.next_report), end, player].into_iter().flatten().min().unwrap_or(now)
    }

    fn advance(&mut self) {
        let now = self.elapsed();
        if self.around.duration.is_some_and(|duration| now >= duration) {
            self.quit("the time of --duration is over");
        }
        for event in self.player.advance(now) {
            self.tell(event);
        }
    }

    fn quit(&mut self, reason: &str) {
        let now = self.elapsed();
        self.player.quit(now, reason);
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::State { from, to, reason, at } => {
                if to == State::FatalError {
                    self.error = Some(reason.clone());
                }
                self.say(at, &format!("{}: {reason}", words::word(to)));
                self.state_line(&words::word(from), &words::word(to), &reason);
                self.report(ReportCause::StateChange);
            }
            Event::Quality { from, to, reason, at } => {
                let (from, to) = (words::label(&self.film, from), words::label(&self.film, to));
                self.say(at, &format!("{from} -> {to}: {reason}"));
                self.line("quality", json!({"from": from, "to": to, "reason": reason}));
                self.report(ReportCause::QualitySwitch);
            }
        }
    }

    fn downloaded(&mut self, fetch: &Fetch, took: Duration, result: Result<Answer, HttpError>) {
        let track = fetch.track;
        match result {
            Ok(answer) => {
                self.player.fetched(fetch, answer.bytes, took);
                self.advance();
                self.line("segment", words::segment(fetch, &answer, took));
            }
            Err(error) => {
                let text = error.to_string();
                self.say(self.elapsed(), &format!("a {} segment failed: {text}", words::word(track)));
                self.line("failure", json!({"track": track, "index": fetch.segment, "error": text}));
                let now = self.elapsed();
                self.player.failed(fetch, &error.into(), now);
            }
        }
    }

    fn flow_changed(&mut self, event: FlowEvent) {
        match event {
            FlowEvent::Opened(flow) => self.open.insert(flow),
            FlowEvent::Closed(flow) => self.open.remove(&flow),
        };
        self.line("flows", words::flows(&self.open, event));
        self.report(ReportCause::FlowsChanged);
    }

    fn hear(&mut self, message: FromStation) {
        match message {
            FromStation::Critical(critical) => self.critical = Some(critical),
            FromStation::Advice(advice) => {
                let now = self.elapsed();
                self.player.advise(advice.sustainable_bps.max(0) as u64, now);
                self.line("advice", json!({"sustainable_bps": advice.sustainable_bps, "reason": advice.reason}));
            }
            FromStation::Decision(decision) => self.line("decision", words::decision(&decision)),
            FromStation::Rejection(rejection) => {
                let (number, reason) = (rejection.sequence_number, words::reason(&rejection));
                let (field, message) = (&rejection.field, &rejection.message);
                complain!(
                    "{}: the station rejects report {number}: {reason}: {field}: {message}",
                    self.around.session_id
                );
                self.line("rejection", words::rejection(&rejection));
            }
        }
    }

    fn report(&mut self, cause: ReportCause) {
        let Some(reporter) = &self.around.reporter else { return };
        let now = self.around.clock.now();
        let player = self.player.snapshot(self.elapsed());
        self.sequence_number += 1;
        let head = Head {
            session_id: &self.around.session_id,
            sequence_number: self.sequence_number,
            timestamp_ms: self.around.clock.unix(now).as_millis() as i64,
            cause,
            starved: self.player.take_starved(),
            bitrate_kbps: self.film.rate_kbps(player.fetched),
            top_bitrate_kbps: self.film.rate_kbps(self.film.top()),
            goal: self.around.settings.goal,
        };
        let flows: Vec<Flow> = self.open.iter().copied().collect();
        reporter.send(report(&head, &player, &flows));
    }

    fn line(&self, kind: &'static str, more: Value) {
        let player = self.player.snapshot(self.elapsed());
        self.around.recorder.write(&Line {
            time_s: seconds(self.around.clock.unix(self.around.clock.now())),
            session_id: &self.around.session_id,
            kind,
            playback: Playback::of(&player, &self.film, self.critical),
            more,
        });
    }

    fn state_line(&self, from: &str, to: &str, reason: &str) {
        self.line("state", json!({"from": from, "to": to, "reason": reason}));
    }

    /// Tells the person at the terminal.
    fn say(&self, at: Duration, text: &str) {
        if !self.around.quiet {
            say!("{:8.1} s  {}  {text}", at.as_secs_f64(), self.around.session_id);
        }
    }

    fn end(self) -> Outcome {
        let shown = self.player.shown().iter().enumerate();
        let outcome = Outcome {
            session_id: self.around.session_id.clone(),
            last: self.player.snapshot(self.elapsed()),
            shown: shown.map(|(index, time)| (words::label(&self.film, index), *time)).collect(),
            error: self.error.clone(),
        };
        let shown: serde_json::Map<String, Value> =
            outcome.shown.iter().map(|(label, time)| (label.clone(), json!(seconds(*time)))).collect();
        self.line("end", json!({"shown_s": shown, "error": self.error}));
        outcome
    }
}

/// Waits until the process shall end.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // Nobody is left who could say so.
        std::future::pending::<()>().await;
    }
}

fn download(client: Arc<Client>, clock: Clock, fetch: Fetch) -> Download {
    Box::pin(async move {
        let began = clock.now();
        let result = client.get(&fetch.url, Body::Count).await;
        (fetch, clock.now().saturating_sub(began), result)
    })
}

/// The next tick of a rhythm after `now`: ticks that were missed are not made up for.
fn after(tick: Duration, every: Duration, now: Duration) -> Duration {
    let next = tick + every;
    if next > now {
        next
    } else {
        now + every
    }
}
