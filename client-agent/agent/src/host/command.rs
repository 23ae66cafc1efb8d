//! The subcommands `host`, `install`, `uninstall` and `status`. Exit codes: 0 good, 1 something is wrong, 2 wrong
//! command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use super::browsers::Home;
use super::record::Record;
use super::status::Starter;
use super::{install as files, status as checks};
use crate::cli::{Browsers, Install, Station};
use crate::http::with_causes;
use crate::run::endpoint;
use crate::terminal::{complain, say};

const STATION_ANSWERS: Duration = Duration::from_secs(5);

fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves an extension until the browser closes the pipe.
pub async fn host(options: &Station) -> ExitCode {
    let station = options.station.as_ref().map(|station| {
        endpoint(station, options.ca.as_deref(), options.server_name.as_deref())
            .map(|endpoint| (endpoint, station.to_string()))
    });
    let record = Record::open(options.record.as_deref());
    match station.transpose().and_then(|station| Ok((station, record?))) {
        Ok((station, record)) => {
            let regular = super::run(station, record, std::os::unix::process::parent_id()).await;
            ExitCode::from(u8::from(!regular))
        }
        Err(error) => {
            complain!("host: {error}");
            super::refuse(&error);
            ExitCode::FAILURE
        }
    }
}

pub fn install(options: &Install) -> ExitCode {
    exit(try_install(options))
}

fn try_install(options: &Install) -> Result<(), String> {
    let browsers = &options.browsers;
    if browsers.browser.is_empty() {
        return Err("install: --browser is compulsory: chromium, chrome, edge or firefox".into());
    }
    let home = Home::find(browsers.dir.as_deref())?;
    let Station { station, ca, server_name, record, .. } = &options.station;
    if let Some(station) = station {
        // A wrong file is named now, not when a film plays.
        endpoint(station, ca.as_deref(), server_name.as_deref())?;
    }
    let absolute = |name: &str, path: &Option<PathBuf>| {
        path.as_deref().map(std::path::absolute).transpose().map_err(|error| format!("{name}: {error}"))
    };
    let (ca, record) = (absolute("--ca", ca)?, absolute("--record", record)?);
    Record::open(record.as_deref())?;
    let station = station.as_ref().map(ToString::to_string);
    if station.is_none() {
        complain!("install: without --station the extension has nobody to report to");
    }
    let arguments = files::Arguments { station, ca, server_name: server_name.clone(), record };
    files::install(&browsers.browser, &home, browsers.user_data_dir.as_deref(), &options.extension_id, &arguments)
}

pub fn uninstall(options: &Browsers) -> ExitCode {
    exit(
        Home::find(options.dir.as_deref())
            .and_then(|home| files::uninstall(options.named_or_all(), &home, options.user_data_dir.as_deref())),
    )
}

/// One line per browser, and one per station.
pub async fn status(options: &Browsers) -> ExitCode {
    let home = match Home::find(options.dir.as_deref()) {
        Ok(home) => home,
        Err(error) => return exit(Err(error)),
    };
    let mut good = true;
    let mut starter = None;
    let mut installed = 0;
    for browser in options.named_or_all() {
        let name = browser.name();
        match checks::browser(*browser, &home, options.user_data_dir.as_deref()) {
            None if options.browser.is_empty() => {}
            None => {
                say!(
                    "{name}: not installed; run: steerline-agent install --browser {name} --station https://HOST:PORT"
                );
                good = false;
            }
            Some(Ok(found)) => {
                say!("{name}: the extension finds this program");
                installed += 1;
                starter = Some(found);
            }
            Some(Err(error)) => {
                say!("{name}: {error}");
                installed += 1;
                good = false;
            }
        }
    }
    if installed == 0 && options.browser.is_empty() {
        say!("installed for no browser; run: steerline-agent install --browser NAME --station https://HOST:PORT");
        return ExitCode::FAILURE;
    }
    if let Some(starter) = starter {
        match station(&starter).await {
            Ok(line) => say!("{line}"),
            Err(line) => {
                say!("{line}");
                good = false;
            }
        }
    }
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn station(starter: &Starter) -> Result<String, String> {
    let Some(text) = &starter.station else {
        return Err("station: none was named at installation; install again with --station https://HOST:PORT".into());
    };
    let url = Url::parse(text).map_err(|error| format!("station {text}: {error}; install again"))?;
    let endpoint = endpoint(&url, starter.ca.as_deref(), starter.server_name.as_deref())
        .map_err(|error| format!("station: {error}; install again"))?;
    match tokio::time::timeout(STATION_ANSWERS, endpoint.connect()).await {
        Ok(Ok(_)) => Ok(format!("station {text}: answers")),
        Ok(Err(error)) => Err(format!("station {text}: does not answer: {}", with_causes(&error))),
        Err(_) => Err(format!("station {text}: does not answer within {} s", STATION_ANSWERS.as_secs())),
    }
}
