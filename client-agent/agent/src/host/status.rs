//! `steerline-agent status`: what is wrong, in one line each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::browsers::{Browser, Home, HOST_NAME};
use super::install::manifest_file;

/// What the starter gives to the host, read back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Starter {
    pub program: PathBuf,
    pub station: Option<String>,
    pub ca: Option<PathBuf>,
    pub server_name: Option<String>,
}

/// The state of one browser: none where it is not installed for it, else what is wrong (or nothing).
pub fn browser(browser: Browser, home: &Home, profile: Option<&Path>) -> Option<Result<Starter, String>> {
    let file = manifest_file(browser, home, profile);
    let text = fs::read_to_string(&file).ok()?;
    Some(check(browser, &file, &text))
}

fn check(browser: Browser, file: &Path, text: &str) -> Result<Starter, String> {
    let again = format!("run: steerline-agent install --browser {}", browser.name());
    let shown = file.display();
    let manifest: Value =
        serde_json::from_str(text).map_err(|error| format!("{shown} is no JSON ({error}); {again}"))?;
    if manifest["name"] != HOST_NAME || manifest["type"] != "stdio" {
        return Err(format!("{shown} is not ours; {again}"));
    }
    let allowed = if browser == Browser::Firefox { "allowed_extensions" } else { "allowed_origins" };
    if manifest[allowed].as_array().is_none_or(Vec::is_empty) {
        return Err(format!("{shown} allows no extension ({allowed}); {again}"));
    }
    let path = PathBuf::from(manifest["path"].as_str().unwrap_or_default());
    if !path.is_absolute() {
        return Err(format!("{shown} names no absolute path; {again}"));
    }
    executable(&path).map_err(|error| format!("the starter {error}; {again}"))?;
    let script = fs::read_to_string(&path).map_err(|error| format!("{}: {error}; {again}", path.display()))?;
    let starter = read(&script).ok_or_else(|| format!("{} is not what was installed; {again}", path.display()))?;
    executable(&starter.program).map_err(|error| format!("the program {error}; {again}"))?;
    Ok(starter)
}

fn executable(path: &Path) -> Result<(), String> {
    let data = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if data.is_file() && data.permissions().mode() & 0o111 != 0 {
        Ok(())
    } else {
        Err(format!("{} is no executable file", path.display()))
    }
}

/// The words of the starter's last line, as the shell would read them.
fn read(script: &str) -> Option<Starter> {
    let words = words(script.lines().last()?);
    let mut words = words.into_iter();
    if words.next()? != "exec" {
        return None;
    }
    let mut starter = Starter { program: words.next()?.into(), ..Starter::default() };
    if words.next()? != "host" {
        return None;
    }
    loop {
        match words.next()?.as_str() {
            "--" => return Some(starter),
            "--station" => starter.station = words.next(),
            "--ca" => starter.ca = words.next().map(PathBuf::from),
            // Of the host alone.
            "--record" => drop(words.next()?),
            "--server-name" => starter.server_name = words.next(),
            _ => return None,
        }
    }
}

/// Splits as the shell does, as far as `install` writes: spaces, single quotes, and a backslash.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut inside, mut quoted) = (Vec::new(), String::new(), false, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => (quoted, inside) = (!quoted, true),
            '\\' if !quoted => word.extend(letters.next()),
            ' ' if !quoted => {
                if inside {
                    words.push(std::mem::take(&mut word));
                    inside = false;
                }
            }
            other => {
                word.push(other);
                inside = true;
            }
        }
    }
    if inside {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_install_writes_is_read_back() {
        let line =
            r#"exec '/opt/steer line/agent' host --station 'https://h:1' --ca '/home/o'\''neill/ca.pem' -- "$@""#;
        let starter = read(&format!("#!/bin/sh\n{line}\n")).unwrap();
        assert_eq!(starter.program, PathBuf::from("/opt/steer line/agent"));
        assert_eq!(starter.station.as_deref(), Some("https://h:1"));
        assert_eq!(starter.ca, Some("/home/o'neill/ca.pem".into()));
        assert_eq!(read("#!/bin/sh\nrm -rf x"), None);
    }
}
