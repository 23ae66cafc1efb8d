//! The process: starts the players, stops them at a signal, tells how it went.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::cli::{Play, RuleName};
use crate::clock::Clock;
use crate::http::{self, Client, Dialer};
use crate::player::rule::Rule;
use crate::player::words::Settings;
use crate::record::Recorder;
use crate::report::stream::{self, Audience, FromStation, Reporter};
use crate::session::{self, NotStarted, Outcome, Surroundings};
use crate::summary;
use crate::terminal::{complain, say};

/// Playback starts, and resumes after a stall, when this much is buffered.
const START_AT: Duration = Duration::from_millis(2500);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const STATION_CONNECT: Duration = Duration::from_secs(5);

/// How the process ends; the number is its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Played = 0,
    NoFilm = 3,
    Failed = 4,
    WrongFile = 5,
    RecordIncomplete = 6,
}

/// Plays as the command line says.
pub async fn play(options: Play) -> Exit {
    match prepare(&options) {
        Ok(prepared) => run(options, prepared).await,
        Err(error) => {
            complain!("{error}");
            Exit::WrongFile
        }
    }
}

/// Where the station's answers to one session go.
type Mailbox = (UnboundedSender<FromStation>, UnboundedReceiver<FromStation>);

struct Prepared {
    recorder: Recorder,
    tls: Arc<tokio_rustls::rustls::ClientConfig>,
    endpoint: Option<Endpoint>,
}

/// Everything that can be wrong before a player starts.
fn prepare(options: &Play) -> Result<Prepared, String> {
    let tls = http::client_config(options.media_ca.as_deref()).map_err(|error| format!("--media-ca {error}"))?;
    let endpoint = options
        .station
        .as_ref()
        .map(|station| endpoint(station, options.ca.as_deref(), options.server_name.as_deref()))
        .transpose()?;
    let recorder = Recorder::create(options.record.as_deref())?;
    Ok(Prepared { recorder, tls, endpoint })
}

/// How to reach a station. `ca` and `server_name` as on the command line. Errors name the option.
pub(crate) fn endpoint(station: &url::Url, ca: Option<&Path>, server_name: Option<&str>) -> Result<Endpoint, String> {
    let wrong = |error: tonic::transport::Error| format!("--station {station}: {}", http::with_causes(&error));
    let endpoint = Endpoint::from_shared(station.as_str().to_string())
        .map_err(wrong)?
        .connect_timeout(STATION_CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .user_agent(concat!("steerline-agent/", env!("CARGO_PKG_VERSION")))
        .map_err(wrong)?;
    if station.scheme() == "http" {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new();
    if let Some(name) = server_name {
        tls = tls.domain_name(name);
    }
    tls = match ca {
        Some(path) => {
            // Read here, so that a wrong file is named before anything starts.
            http::roots(path).map_err(|error| format!("--ca {error}"))?;
            let pem = std::fs::read(path).map_err(|error| format!("--ca {}: {error}", path.display()))?;
            tls.ca_certificate(Certificate::from_pem(pem))
        }
        None => tls.with_webpki_roots(),
    };
    endpoint.tls_config(tls).map_err(wrong)
}

async fn run(options: Play, prepared: Prepared) -> Exit {
    let clock = Clock::start();
    let mut chance = match options.seed {
        Some(seed) => StdRng::seed_from_u64(seed),
        None => StdRng::from_rng(&mut rand::rng()),
    };
    // Never from the seed: two processes with the same seed are still two viewers.
    let prefix = options.session_prefix.clone().unwrap_or_else(|| format!("headless-{:08x}", rand::random::<u32>()));
    let names: Vec<String> = (1..=options.players).map(|number| format!("{prefix}-{number}")).collect();
    // Each player has some sockets: a process may often have only 1024 files.
    let _ = rlimit::increase_nofile_limit(u64::from(options.players) * 8 + 256);

    let mailboxes: Vec<Mailbox> = names.iter().map(|_| mpsc::unbounded_channel()).collect();
    let reporter = prepared.endpoint.map(|endpoint| {
        let senders = mailboxes.iter().map(|(sender, _)| sender.clone());
        let sessions: HashMap<_, _> = names.iter().cloned().zip(senders).collect();
        let station = options.station.as_ref().map(ToString::to_string).unwrap_or_default();
        stream::start(endpoint, station, clock, StdRng::from_rng(&mut chance), Audience::Sessions(sessions))
    });

    let (stop, stopped) = watch::channel(false);
    stop_at_signals(stop);
    let shared = Shared { options, clock, tls: prepared.tls, reporter, recorder: prepared.recorder, stopped };
    let mut players = JoinSet::new();
    for (number, (name, mailbox)) in names.into_iter().zip(mailboxes).enumerate() {
        let around = shared.surroundings(name, mailbox, chance.random());
        let start = clock.instant(shared.options.stagger * number as u32);
        let mut stopped = shared.stopped.clone();
        players.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(start) => session::play(around).await,
                () = session::stopped(&mut stopped) => Ok(None),
            }
        });
    }
    let (outcomes, errors) = gather(players).await;
    let totals = match shared.reporter {
        Some(reporter) => Some(reporter.finish().await),
        None => None,
    };
    say!("{}", summary::table(&outcomes, totals).trim_end());
    exit(&outcomes, &errors, &shared.recorder)
}

/// What all players of the process share.
struct Shared {
    options: Play,
    clock: Clock,
    tls: Arc<tokio_rustls::rustls::ClientConfig>,
    reporter: Option<Reporter>,
    recorder: Recorder,
    stopped: watch::Receiver<bool>,
}

impl Shared {
    fn surroundings(&self, session_id: String, mailbox: Mailbox, phase: f64) -> Surroundings {
        let options = &self.options;
        let (events, flows) = mpsc::unbounded_channel();
        let client = Client::new(Dialer { bind: options.bind, tls: Arc::clone(&self.tls), events });
        let (station_sender, station) = mailbox;
        Surroundings {
            session_id,
            url: options.url.clone(),
            settings: Settings {
                goal: options.goal,
                start_at: START_AT,
                rule: match options.rule {
                    RuleName::Buffer => Rule::buffer(options.goal),
                    RuleName::Off => Rule::Off,
                },
                obey_advice: options.obey_advice,
                give_up_after: options.give_up_after,
            },
            duration: options.duration,
            phase,
            clock: self.clock,
            client: Arc::new(client),
            flows,
            station,
            station_sender,
            reporter: self.reporter.clone(),
            recorder: self.recorder.clone(),
            stop: self.stopped.clone(),
            quiet: options.quiet,
        }
    }
}

/// Waits for all players. An error that several have is told once.
async fn gather(mut players: JoinSet<Result<Option<Outcome>, NotStarted>>) -> (Vec<Outcome>, Vec<String>) {
    let (mut outcomes, mut errors) = (Vec::new(), Vec::<String>::new());
    while let Some(ended) = players.join_next().await {
        match ended {
            Ok(Ok(Some(outcome))) => outcomes.push(outcome),
            Ok(Ok(None)) => {}
            Ok(Err(NotStarted(error))) => {
                if !errors.contains(&error) {
                    complain!("{error}");
                    errors.push(error);
                }
            }
            // A player that panics is a mistake of ours: the process ends with its trace.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    (outcomes, errors)
}

fn exit(outcomes: &[Outcome], errors: &[String], recorder: &Recorder) -> Exit {
    if !errors.is_empty() {
        Exit::NoFilm
    } else if outcomes.iter().any(|outcome| outcome.error.is_some()) {
        Exit::Failed
    } else if recorder.has_failed() {
        Exit::RecordIncomplete
    } else {
        Exit::Played
    }
}

/// The first SIGINT or SIGTERM lets the viewers leave.
fn stop_at_signals(stop: watch::Sender<bool>) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // The sender lives on with this task, so that players never see the channel closed.
        let _ = stop.send(true);
        std::future::pending::<()>().await;
    });
}
