//! One stream to the station for all players of this process: connects, comes back with back-off, and never
//! makes a player wait. What to send is decided in `queue`, when to try again in `backoff`.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::RngExt;
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedSender};
use tokio::sync::oneshot;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Response, Status, Streaming};

use super::backoff::Backoff;
use super::queue::{Queue, Rejected};
use crate::clock::Clock;
use crate::http::with_causes;
use crate::terminal::complain;
use crate::wire::steerline::flow::v1::{Decision, NetworkAdvice};
use crate::wire::steerline::report::v1::report_response::Message;
use crate::wire::steerline::report::v1::report_service_client::ReportServiceClient;
use crate::wire::steerline::report::v1::{PlaybackReport, Rejection, RejectionReason, ReportRequest, ReportResponse};

/// At the end: how long to wait for the last acknowledgements.
const FAREWELL: Duration = Duration::from_secs(2);
const OUTBOUND: usize = 64;
/// Players' reports on their way to this task; when it is full a report is dropped rather than a player held up.
const INBOX: usize = 4096;

/// What the station says to one session.
#[derive(Debug, Clone)]
pub enum FromStation {
    Critical(bool),
    Advice(NetworkAdvice),
    Decision(Box<Decision>),
    Rejection(Rejection),
}

/// Who hears what the station says.
pub enum Audience {
    /// Each session its own news.
    Sessions(HashMap<String, UnboundedSender<FromStation>>),
    /// One listener hears all, for sessions that come and go.
    Host(UnboundedSender<Heard>),
}

/// What a listener to all sessions hears.
#[derive(Debug, Clone)]
pub enum Heard {
    Session(String, FromStation),
    /// The station answers, for the first time or again.
    Connected,
    /// It does not, and why.
    Away(String),
}

/// The way for players to report.
#[derive(Clone)]
pub struct Reporter {
    inbox: Sender<Command>,
}

enum Command {
    Report(Box<PlaybackReport>),
    Finish(oneshot::Sender<Totals>),
}

/// What became of the reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub acknowledged: u64,
    pub rejected: u64,
    /// Dropped unsent, or not acknowledged at the end.
    pub lost: u64,
    pub connections: u64,
}

impl Reporter {
    /// Hands a report over; never waits.
    pub fn send(&self, report: PlaybackReport) {
        // A full inbox means the process is starved of CPU: the next report supersedes this one.
        let _ = self.inbox.try_send(Command::Report(Box::new(report)));
    }

    /// Sends what is left, waits a moment for the acknowledgements, and closes the stream.
    pub async fn finish(self) -> Totals {
        let (done, totals) = oneshot::channel();
        if self.inbox.send(Command::Finish(done)).await.is_err() {
            return Totals::default();
        }
        totals.await.unwrap_or_default()
    }
}

/// Starts the task that speaks to the station.
pub fn start(endpoint: Endpoint, station: String, clock: Clock, chance: StdRng, audience: Audience) -> Reporter {
    let (inbox, commands) = mpsc::channel(INBOX);
    let line = Line {
        endpoint,
        station,
        clock,
        chance,
        audience,
        commands,
        queue: Queue::default(),
        backoff: Backoff::default(),
        totals: Totals::default(),
        finish: None,
        told: HashSet::new(),
        was_away: false,
    };
    tokio::spawn(line.run());
    Reporter { inbox }
}

struct Line {
    endpoint: Endpoint,
    /// Its address, for people.
    station: String,
    clock: Clock,
    chance: StdRng,
    audience: Audience,
    commands: Receiver<Command>,
    queue: Queue,
    backoff: Backoff,
    totals: Totals,
    /// Where to tell the totals, and until when to wait.
    finish: Option<(oneshot::Sender<Totals>, Duration)>,
    /// Errors that were told since the last connection: each is told once.
    told: HashSet<String>,
    was_away: bool,
}

type Call = Pin<Box<dyn Future<Output = Result<Response<Streaming<ReportResponse>>, Status>> + Send>>;

/// The answers: a server may hold back its headers until its first answer, which waits for our first report.
enum Answers {
    Awaited(Call),
    Open(Box<Streaming<ReportResponse>>),
}

impl Answers {
    /// The next answer; none when the station ended the stream. Nothing is lost when this is dropped halfway.
    async fn next(&mut self) -> Result<Option<ReportResponse>, Status> {
        loop {
            match self {
                Answers::Open(stream) => return stream.message().await,
                Answers::Awaited(call) => *self = Answers::Open(Box::new(call.await?.into_inner())),
            }
        }
    }
}

impl Line {
    async fn run(mut self) {
        while !self.is_over() {
            let error = match self.connect().await {
                Ok(client) => self.converse(client).await,
                Err(error) => Some(error),
            };
            if self.is_over() {
                break;
            }
            if let Some(error) = error {
                self.tell_away(error);
            }
            let wait = self.backoff.next(self.chance.random());
            self.wait(wait).await;
        }
        self.totals.lost = self.queue.dropped() + self.queue.len() as u64;
        if let Some((done, _)) = self.finish {
            let _ = done.send(self.totals);
        }
    }

    /// Connects, while reports gather.
    async fn connect(&mut self) -> Result<ReportServiceClient<tonic::transport::Channel>, String> {
        let endpoint = self.endpoint.clone();
        let mut connecting = Box::pin(endpoint.connect());
        loop {
            let (clock, farewell) = (self.clock, self.farewell());
            tokio::select! {
                connected = &mut connecting => {
                    return connected.map(ReportServiceClient::new).map_err(|error| with_causes(&error));
                }
                command = self.commands.recv() => self.take(command),
                () = until(clock, farewell) => return Err("no connection before the end".into()),
            }
        }
    }

    /// Waits, while reports gather.
    async fn wait(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        while !self.is_over() && self.clock.now() < end {
            let (clock, farewell) = (self.clock, self.farewell());
            tokio::select! {
                () = until(clock, Some(end)) => return,
                command = self.commands.recv() => self.take(command),
                () = until(clock, farewell) => return,
            }
        }
    }

    /// Sends and listens until the stream ends; says why it did, if not by us.
    async fn converse(&mut self, mut client: ReportServiceClient<tonic::transport::Channel>) -> Option<String> {
        let (out, outbound) = mpsc::channel(OUTBOUND);
        let call: Call = Box::pin(async move { client.report(ReceiverStream::new(outbound)).await });
        let mut answers = Answers::Awaited(call);
        self.queue.restart();
        loop {
            if self.finish.is_some() && self.queue.is_empty() {
                return None;
            }
            let (clock, farewell) = (self.clock, self.farewell());
            tokio::select! {
                answer = answers.next() => match answer {
                    Ok(Some(answer)) => self.hear(answer),
                    Ok(None) => return Some("the station closed the stream".into()),
                    Err(status) => return Some(explain(&status)),
                },
                permit = out.reserve(), if self.queue.has_unsent() => {
                    let Ok(permit) = permit else { return Some("the stream broke off".into()) };
                    let report = self.queue.take(self.clock.now());
                    permit.send(ReportRequest { report });
                }
                command = self.commands.recv() => self.take(command),
                () = until(clock, farewell) => return None,
            }
        }
    }

    fn hear(&mut self, answer: ReportResponse) {
        if self.was_away || self.totals.connections == 0 {
            if self.was_away {
                complain!("the station {} has our reports again", self.station);
            }
            self.was_away = false;
            self.totals.connections += 1;
            self.tell_host(Heard::Connected);
        }
        self.backoff.reset();
        self.told.clear();
        match answer.message {
            Some(Message::Acknowledgement(ack)) => {
                let before = self.queue.len();
                self.queue.acknowledge(&ack.session_id, ack.sequence_number);
                self.totals.acknowledged += (before - self.queue.len()) as u64;
            }
            Some(Message::Assessment(assessment)) => {
                self.pass(&assessment.session_id, FromStation::Critical(assessment.critical));
            }
            Some(Message::Advice(advice)) => self.pass(&advice.session_id.clone(), FromStation::Advice(advice)),
            Some(Message::Decision(decision)) => {
                self.pass(&decision.session_id.clone(), FromStation::Decision(Box::new(decision)));
            }
            Some(Message::Rejection(rejection)) => {
                let out_of_order = rejection.reason() == RejectionReason::OutOfOrder;
                let id = rejection.session_id.clone();
                if self.queue.reject(&id, rejection.sequence_number, out_of_order) == Rejected::Refused {
                    self.totals.rejected += 1;
                    self.pass(&id, FromStation::Rejection(rejection));
                }
            }
            // A newer station may say more than we know.
            None => {}
        }
    }

    fn pass(&self, session_id: &str, message: FromStation) {
        match &self.audience {
            Audience::Sessions(sessions) => {
                if let Some(session) = sessions.get(session_id) {
                    // A session that is over does not listen any more.
                    let _ = session.send(message);
                }
            }
            Audience::Host(_) => self.tell_host(Heard::Session(session_id.to_string(), message)),
        }
    }

    fn tell_host(&self, heard: Heard) {
        if let Audience::Host(host) = &self.audience {
            // A host that is about to end does not listen any more.
            let _ = host.send(heard);
        }
    }

    fn take(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Report(report)) => self.queue.push(*report, self.clock.now()),
            Some(Command::Finish(done)) => self.finish = Some((done, self.clock.now() + FAREWELL)),
            // Every player is gone without a farewell: nobody is left to report for.
            None => {
                let (done, _) = oneshot::channel();
                self.finish = Some((done, Duration::ZERO));
            }
        }
    }

    fn farewell(&self) -> Option<Duration> {
        self.finish.as_ref().map(|(_, until)| *until)
    }

    fn is_over(&self) -> bool {
        let now = self.clock.now();
        self.finish.as_ref().is_some_and(|(_, until)| self.queue.is_empty() || now >= *until)
    }

    fn tell_away(&mut self, error: String) {
        self.was_away = true;
        self.tell_host(Heard::Away(error.clone()));
        let text = format!("no reports reach the station {}: {error}", self.station);
        if self.told.insert(text.clone()) {
            complain!("{text}; playing on, trying again");
        }
    }
}

/// Waits until a time of this clock; for ever without one.
async fn until(clock: Clock, at: Option<Duration>) {
    match at {
        Some(at) => tokio::time::sleep_until(clock.instant(at)).await,
        None => std::future::pending().await,
    }
}

fn explain(status: &Status) -> String {
    let causes = std::error::Error::source(status).map(with_causes).unwrap_or_default();
    let message = format!("{:?}: {}", status.code(), status.message());
    if causes.is_empty() || message.contains(&causes) {
        message
    } else {
        format!("{message} ({causes})")
    }
}
