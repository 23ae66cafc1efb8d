//! `steerline-agent host`: the program that browsers start for the extension. It reads reports from the pipe, adds the
//! connections that carry each session, sends them to the station, and passes on what the station says.

pub mod browsers;
pub mod command;
mod diag;
mod flows;
mod frames;
mod install;
mod messages;
mod pipe;
mod procfs;
mod record;
mod sockets;
mod status;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::SeedableRng;
use tokio::sync::mpsc::{self, Receiver, UnboundedReceiver};
use tokio::time::MissedTickBehavior;
use tonic::transport::Endpoint;

use self::flows::Chooser;
use self::messages::{FromExtension, Report, Server, StationState, ToExtension, PROTOCOL};
use self::pipe::{reader, writer, Input};
use self::record::Record;
use self::sockets::Sockets;
use crate::clock::Clock;
use crate::report::stream::{self, Audience, FromStation, Heard, Reporter};
use crate::terminal::complain;
use crate::wire::steerline::flow::v1::{FiveTuple, PlayerState};
use crate::wire::steerline::report::v1::{PlaybackReport, ReportCause};

const LAST_WORDS: Duration = Duration::from_secs(1);
/// Sessions at a time; the extension has no more.
const MOST_SESSIONS: usize = 64;
/// Reports that come together share one look at the sockets.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Between reports the connections are looked at as often; a change is reported at once.
const WATCH_EVERY: Duration = Duration::from_millis(400);
/// A report that is older when it comes off the pipe (this program, or the machine, was asleep) is history.
const FRESH: Duration = Duration::from_secs(3);

/// Serves one extension until the browser closes the pipe. True: that was the regular end.
pub async fn run(station: Option<(Endpoint, String)>, record: Record, browser: u32) -> bool {
    let clock = Clock::start();
    let (hear, heard) = mpsc::unbounded_channel();
    let name = station.as_ref().map(|(_, name)| name.clone()).unwrap_or_default();
    let reporter = station.map(|(endpoint, name)| {
        stream::start(endpoint, name, clock, StdRng::from_rng(&mut rand::rng()), Audience::Host(hear))
    });
    let (out, written) = writer();
    let mut host =
        Host { clock, out, reporter, record, sockets: Sockets::of(browser), looked: None, sessions: HashMap::new() };
    host.say(&ToExtension::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION"), station: name });
    if host.reporter.is_none() {
        host.say(&ToExtension::Station { state: StationState::None, message: String::new() });
    }
    let regular = host.serve(reader(), heard).await;
    host.farewell().await;
    // The last words are still on their way to the browser, which may not read them.
    let _ = tokio::time::timeout(LAST_WORDS, written).await;
    regular
}

/// Says to the extension why there is no host, where nothing else can be done.
fn refuse(error: &str) {
    let message = ToExtension::Error { message: error.to_string() };
    if let Ok(bytes) = serde_json::to_vec(&message) {
        // The browser may be gone as well.
        let _ = frames::write(&mut std::io::stdout(), &bytes);
    }
}

struct Session {
    last: PlaybackReport,
    servers: Vec<Server>,
    chooser: Chooser,
    /// It was asked to report anew, and has not yet.
    asked: bool,
}

impl Session {
    /// Its player may fetch media: its connections are watched between two reports as well.
    fn fetches(&self) -> bool {
        matches!(
            self.last.player_state(),
            PlayerState::Starting | PlayerState::Playing | PlayerState::Seeking | PlayerState::Rebuffering
        )
    }
}

struct Host {
    clock: Clock,
    out: SyncSender<Vec<u8>>,
    reporter: Option<Reporter>,
    record: Record,
    sockets: Sockets,
    looked: Option<(Duration, Vec<diag::Socket>)>,
    sessions: HashMap<String, Session>,
}

impl Host {
    /// True: the browser closed the pipe between two messages.
    async fn serve(&mut self, mut input: Receiver<Input>, mut heard: UnboundedReceiver<Heard>) -> bool {
        let mut watch = tokio::time::interval(WATCH_EVERY);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let fetching = self.sessions.values().any(Session::fetches);
            tokio::select! {
                input = input.recv() => match input {
                    Some(Input::Message(message)) => self.take(&message),
                    Some(Input::End(frames::Broken::Closed)) | None => return true,
                    Some(Input::End(broken)) => {
                        complain!("host: {broken}");
                        self.say(&ToExtension::Error { message: broken.to_string() });
                        return false;
                    }
                },
                Some(heard) = heard.recv() => self.pass(heard),
                _ = watch.tick(), if fetching => self.watch(),
            }
        }
    }

    fn take(&mut self, message: &[u8]) {
        match serde_json::from_slice(message) {
            Ok(FromExtension::Report { report }) => self.report(&report),
            Ok(FromExtension::Hello { protocol }) if protocol != PROTOCOL => {
                let message = format!("the extension speaks protocol {protocol}, this program {PROTOCOL}: update both");
                self.say(&ToExtension::Error { message });
            }
            Ok(FromExtension::Hello { .. } | FromExtension::Unknown) => {}
            Err(error) => self.say(&ToExtension::Error { message: format!("a message that is none: {error}") }),
        }
    }

    fn report(&mut self, report: &Report) {
        let (session_id, sequence_number) = (report.session_id.clone(), report.sequence_number);
        self.say(&ToExtension::Ack { session_id: session_id.clone(), sequence_number });
        let wire = match report.to_wire() {
            Ok(wire) => wire,
            Err(message) => {
                let field = message.split(':').next().unwrap_or_default().into();
                self.say(&ToExtension::Rejection { session_id, field, message });
                return;
            }
        };
        let known = self.sessions.remove(&session_id);
        if known.is_none() && self.sessions.len() >= MOST_SESSIONS {
            let message = format!("more than {MOST_SESSIONS} sessions at a time");
            self.say(&ToExtension::Rejection { session_id, field: "session_id".into(), message });
            return;
        }
        let (before, mut chooser) = match known {
            Some(session) => (Some(session.last.flows), session.chooser),
            None => (None, self.chooser()),
        };
        let now = self.clock.now();
        let sockets = self.look(&report.servers, now);
        chooser.observe(sockets, &report.servers, now);
        let flows = chooser.choose(sockets, &report.servers, sockets::local_for, now);
        let changed = before.as_ref().is_none_or(|before| !same(before, &flows));
        let mut wire = PlaybackReport { flows, ..wire };
        if before.is_some() && changed && wire.cause() == ReportCause::Periodic {
            wire.set_cause(ReportCause::FlowsChanged);
        }
        if self.clock.age(wire.timestamp_ms) > FRESH {
            wire.set_cause(ReportCause::Replayed);
        }
        if changed {
            let flows = wire.flows.iter().map(Into::into).collect();
            self.say(&ToExtension::Flows { session_id: session_id.clone(), flows });
        }
        self.record.report(self.clock.unix(now), report, &wire);
        if let Some(reporter) = &self.reporter {
            reporter.send(wire.clone());
        }
        if wire.player_state() != PlayerState::Quit {
            let servers = report.servers.clone();
            self.sessions.insert(session_id, Session { last: wire, servers, chooser, asked: false });
        }
    }

    /// For a session that begins. While others play, what has arrived so far was theirs; else it may be its own.
    fn chooser(&self) -> Chooser {
        match &self.looked {
            Some((at, sockets)) if !self.sessions.is_empty() => Chooser::after(sockets, *at),
            _ => Chooser::default(),
        }
    }

    /// The browser's sockets, as they are or were a moment ago.
    fn look(&mut self, servers: &[Server], now: Duration) -> &[diag::Socket] {
        if self.looked.as_ref().is_none_or(|(at, _)| now.saturating_sub(*at) >= LOOK_AGAIN) {
            let others = self.sessions.values().flat_map(|session| &session.servers);
            let addresses: Vec<IpAddr> = servers.iter().chain(others).map(Server::canonical).collect();
            self.looked = Some((now, self.sockets.now(&addresses, now)));
        }
        self.looked.as_ref().map(|(_, sockets)| sockets.as_slice()).unwrap_or_default()
    }

    /// Between reports: a session whose connections have changed is asked to report anew, once.
    fn watch(&mut self) {
        let now = self.clock.now();
        self.look(&[], now);
        let sockets = self.looked.as_ref().map(|(_, sockets)| sockets.as_slice()).unwrap_or_default();
        let mut changed = Vec::new();
        for (session_id, session) in self.sessions.iter_mut().filter(|(_, session)| session.fetches() && !session.asked)
        {
            let flows = session.chooser.choose(sockets, &session.servers, sockets::local_for, now);
            if !same(&session.last.flows, &flows) {
                session.asked = true;
                changed.push(session_id.clone());
            }
        }
        for session_id in changed {
            self.say(&ToExtension::Again { session_id });
        }
    }

    fn pass(&mut self, heard: Heard) {
        let message = match heard {
            Heard::Connected => ToExtension::Station { state: StationState::Connected, message: String::new() },
            Heard::Away(message) => ToExtension::Station { state: StationState::Away, message },
            Heard::Session(session_id, news) => match news {
                FromStation::Critical(critical) => ToExtension::Assessment { session_id, critical },
                FromStation::Advice(advice) => ToExtension::Advice {
                    session_id,
                    sustainable_kbps: advice.sustainable_bps / 1000,
                    reason: advice.reason,
                },
                FromStation::Decision(decision) => ToExtension::Decision(decision.as_ref().into()),
                FromStation::Rejection(rejection) => {
                    ToExtension::Rejection { session_id, field: rejection.field, message: rejection.message }
                }
            },
        };
        self.say(&message);
    }

    /// The browser is gone: so are its players, and the network need not wait for a time-out to learn that.
    async fn farewell(self) {
        let Some(reporter) = self.reporter else { return };
        let wall = i64::try_from(self.clock.unix(self.clock.now()).as_millis()).unwrap_or(i64::MAX);
        for Session { last, .. } in self.sessions.into_values() {
            reporter.send(PlaybackReport {
                sequence_number: last.sequence_number + 1,
                timestamp_ms: last.timestamp_ms.max(wall),
                cause: ReportCause::StateChange.into(),
                player_state: PlayerState::Quit.into(),
                playback_rate: 0.0,
                ..last
            });
        }
        reporter.finish().await;
    }

    fn say(&mut self, message: &ToExtension) {
        self.record.said(self.clock.unix(self.clock.now()), message);
        match serde_json::to_vec(message) {
            // A browser that reads nothing loses answers, not the viewer's reports.
            Ok(bytes) => drop(self.out.try_send(bytes)),
            Err(error) => complain!("host: an answer cannot be written: {error}"),
        }
    }
}

/// The same connections, in whatever order.
fn same(one: &[FiveTuple], other: &[FiveTuple]) -> bool {
    one.len() == other.len() && one.iter().all(|flow| other.contains(flow))
}
