//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use url::Url;

use crate::host::browsers::Browser;

#[derive(Debug, Parser)]
#[command(name = "steerline-agent", version, about = "Tells the network how many seconds a video has left")]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plays a DASH film without a screen: downloads it as a browser does, stalls and resumes as one does, and
    /// reports to an application station
    Play(Box<Play>),
    /// Serves the browser extension over native messaging; browsers start this, not people
    Host(Station),
    /// Tells browsers of this user where the extension finds this program
    Install(Install),
    /// Takes that back
    Uninstall(Browsers),
    /// Says what is wrong between extension, this program and the station, in one line each
    Status(Browsers),
}

const EXIT_CODES: &str = "\
Exit codes: 0 played to the end, to --duration or to a signal; 2 wrong command line; 3 the film cannot be read or is \
not supported; 4 playback failed on the way; 5 a file named by an option is wrong; 6 the record is incomplete.";

const PLAY_HELP: &str = "\
How it plays: two connections or more per server, kept and used again; video and sound at the same time. The next \
segment is asked for while buffer + segment <= --goal. Playback starts, and resumes after a stall, when 2.5 s are \
buffered.

The rate rule (--rule buffer): it starts at the top rate; it steps down to the next lower rate when less than 8 s are \
buffered once playback has begun (not in the initial fill, which lasts until 8 s are first reached, the buffer shrinks \
or playback stalls); it steps up when 25 s or more are buffered. \
A segment under way is never given up. With a small --goal the thresholds are no more than 0.25 and 0.6 of it.

Reports go out once a second and at each change of state, quality or connections. Without a station, or while it is \
away, the film plays on; the last 60 reports of each session are kept and sent later as REPLAYED.

Examples:
  steerline-agent play http://198.19.0.1/video/manifest.mpd --duration 60 --record run.jsonl
  steerline-agent play http://198.19.0.1/video/manifest.mpd --station https://198.18.3.1:50051 --ca ca.pem
  steerline-agent play URL --players 200 --stagger 0.1 --quiet

Exit codes: 0 played to the end, to --duration or to a signal (SIGINT, SIGTERM); 2 wrong command line; 3 the film \
cannot be read or is not supported; 4 playback failed on the way; 5 a file named by an option is wrong; 6 the record \
is incomplete.";

#[derive(Debug, Args)]
#[command(after_help = PLAY_HELP)]
pub struct Play {
    /// The film's MPD (DASH manifest), http or https
    #[arg(value_name = "URL", value_parser = web_url)]
    pub url: Url,

    /// The application station that gets the reports: https://HOST:PORT (http on loopback only); without it none are
    /// sent
    #[arg(long, value_name = "URL", value_parser = station_url, help_heading = "Reporting")]
    pub station: Option<Url>,
    /// The authority (PEM) that has signed the station's certificate; without it those of the web
    #[arg(long, value_name = "FILE", requires = "station", help_heading = "Reporting")]
    pub ca: Option<PathBuf>,
    /// The name in the station's certificate, where it is not the host of --station
    #[arg(long, value_name = "NAME", requires = "station", help_heading = "Reporting")]
    pub server_name: Option<String>,
    /// Sessions are called PREFIX-1, PREFIX-2 ...; 1 to 56 of A-Z a-z 0-9 . _ - [default: headless- and a random
    /// number]
    #[arg(long, value_name = "PREFIX", value_parser = session_prefix, help_heading = "Reporting")]
    pub session_prefix: Option<String>,
    /// Never ask for more than the rate that the network advises; an advice holds for 30 s
    #[arg(long, help_heading = "Reporting")]
    pub obey_advice: bool,

    /// The viewer leaves after this many seconds [default: plays to the end]
    #[arg(long, value_name = "S", value_parser = seconds::<1, 604_800>)]
    pub duration: Option<Duration>,
    /// How many players this process is, each with its own connections; 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub players: u32,
    /// Seconds from the start of one player to that of the next; 0 to 600
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds::<0, 600>)]
    pub stagger: Duration,
    /// Which rendition the next segment is asked in: by the stated rule, or always the highest
    #[arg(long, value_enum, default_value_t = RuleName::Buffer)]
    pub rule: RuleName,
    /// Seconds of buffered playtime that the player fills to; 4 to 600
    #[arg(long, value_name = "S", default_value = "55", value_parser = seconds::<4, 600>)]
    pub goal: Duration,
    /// A segment that cannot be had for this many seconds ends playback; 1 to 3600
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds::<1, 3600>)]
    pub give_up_after: Duration,
    /// Connect to web servers from this address of the machine
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// The authority (PEM) that has signed the web server's certificate, for https; without it those of the web
    #[arg(long, value_name = "FILE")]
    pub media_ca: Option<PathBuf>,
    /// Write what happens as JSON lines: samples (2 a second), states, qualities, segments, flows, decisions ...
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Makes the jitter of reports and attempts repeatable
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// No lines about states and qualities on standard output; the table at the end and errors stay
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where reports go.
#[derive(Debug, Args)]
pub struct Station {
    /// The application station that gets the reports: https://HOST:PORT (http on loopback only)
    #[arg(long, value_name = "URL", value_parser = station_url)]
    pub station: Option<Url>,
    /// The authority (PEM) that has signed the station's certificate; without it those of the web
    #[arg(long, value_name = "FILE", requires = "station")]
    pub ca: Option<PathBuf>,
    /// The name in the station's certificate, where it is not the host of --station
    #[arg(long, value_name = "NAME", requires = "station")]
    pub server_name: Option<String>,
    /// Add a JSON line to this file for each report and each answer: connections, state, buffer
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// What the browser says of the extension; not needed
    #[arg(hide = true, last = true)]
    pub from_browser: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    pub browsers: Browsers,
    #[command(flatten)]
    pub station: Station,
    /// Also allow this extension: its id in Chromium, Chrome or Edge, 32 letters a to p; may be given several times
    #[arg(long, value_name = "ID", value_parser = extension_id)]
    pub extension_id: Vec<String>,
}

/// Which browsers, and where.
#[derive(Debug, Args)]
pub struct Browsers {
    /// The browser; may be given several times [install: compulsory; else: all]
    #[arg(long, value_enum, value_name = "NAME")]
    pub browser: Vec<Browser>,
    /// The home folder, instead of the user's own
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// The profile folder that the browser is started with (--user-data-dir of Chromium, Chrome and Edge)
    #[arg(long, value_name = "FOLDER")]
    pub user_data_dir: Option<PathBuf>,
}

impl Browsers {
    /// Those that are named, else all.
    pub fn named_or_all(&self) -> &[Browser] {
        if self.browser.is_empty() {
            &Browser::ALL
        } else {
            &self.browser
        }
    }
}

fn extension_id(text: &str) -> Result<String, String> {
    if text.len() == 32 && text.bytes().all(|byte| (b'a'..=b'p').contains(&byte)) {
        Ok(text.into())
    } else {
        Err("allowed are 32 letters a to p".into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuleName {
    Buffer,
    Off,
}

fn web_url(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("{error}; expected is http://HOST/PATH or https://HOST/PATH"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => Err(format!("the scheme is {other}; allowed are http and https")),
    }
}

fn station_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; expected is https://HOST:PORT"))?;
    let loopback = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if loopback => Ok(url),
        "http" => Err("reports leave this machine only with TLS: https://HOST:PORT (http on loopback only)".into()),
        other => Err(format!("the scheme is {other}; allowed is https (and http on loopback)")),
    }
}

fn session_prefix(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=56).contains(&text.len()) && text.bytes().all(good) {
        Ok(text.into())
    } else {
        Err("allowed are 1 to 56 of A-Z a-z 0-9 . _ -".into())
    }
}

fn seconds<const LEAST: u32, const MOST: u32>(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        // The comparison also refuses NaN.
        Ok(seconds) if (f64::from(LEAST)..=f64::from(MOST)).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("allowed are {LEAST} to {MOST} seconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn play(arguments: &[&str]) -> Result<Play, String> {
        let all = ["steerline-agent", "play"].iter().chain(arguments);
        let cli = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
        match cli.command {
            Command::Play(play) => Ok(*play),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_the_stated_ones() {
        let play = play(&["http://h/m.mpd"]).unwrap();
        assert_eq!((play.players, play.goal, play.rule), (1, Duration::from_secs(55), RuleName::Buffer));
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_is_allowed() {
        let cases: [(&[&str], &str); 9] = [
            (&["ftp://h/m.mpd"], "allowed are http and https"),
            (&["m.mpd"], "expected is http://HOST/PATH"),
            (&["http://h/m", "--station", "http://198.18.3.1:5"], "only with TLS"),
            (&["http://h/m", "--goal", "NaN"], "allowed are 4 to 600 seconds"),
            (&["http://h/m", "--goal=-1"], "allowed are 4 to 600 seconds"),
            (&["http://h/m", "--players", "1001"], "1001 is not in 1..=1000"),
            (&["http://h/m", "--session-prefix", "a b"], "A-Z a-z 0-9"),
            (&["http://h/m", "--ca", "x.pem"], "--station"),
            (&["http://h/m", "--rule", "bola"], "possible values: buffer, off"),
        ];
        for (arguments, expected) in cases {
            let error = play(arguments).unwrap_err();
            assert!(error.contains(expected), "{error}\ndoes not say {expected:?}");
        }
    }
}
