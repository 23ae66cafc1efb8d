//! `steerline-agent install` and `uninstall`: tell browsers of this user where the host is.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::browsers::{Browser, Home, HOST_NAME};
use crate::terminal::say;

const MARK: &str = "# Written by `steerline-agent install`; `steerline-agent uninstall` removes it.";

/// What the host is started with.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    pub station: Option<String>,
    pub ca: Option<PathBuf>,
    pub server_name: Option<String>,
    pub record: Option<PathBuf>,
}

/// Writes the starter and each browser's manifest. Errors name the file.
pub fn install(
    browsers: &[Browser],
    home: &Home,
    profile: Option<&Path>,
    extension_ids: &[String],
    arguments: &Arguments,
) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("where this program is cannot be told: {error}"))?;
    let starter = home.starter();
    write(&starter, &script(&program, arguments), 0o755)?;
    for browser in browsers {
        let manifest = manifest_file(*browser, home, profile);
        let text = format!("{:#}\n", browser.manifest(&starter, extension_ids));
        write(&manifest, &text, 0o644)?;
        say!("{}: installed ({})", browser.name(), manifest.display());
    }
    Ok(())
}

/// Removes the browsers' manifests, and the starter with the last of them. Nothing there is fine.
pub fn uninstall(browsers: &[Browser], home: &Home, profile: Option<&Path>) -> Result<(), String> {
    for browser in browsers {
        let manifest = manifest_file(*browser, home, profile);
        let word = if remove(&manifest)? { "uninstalled" } else { "was not installed" };
        say!("{}: {word} ({})", browser.name(), manifest.display());
    }
    let used = Browser::ALL.iter().any(|browser| manifest_file(*browser, home, None).exists());
    if !used && remove(&home.starter())? {
        say!("the starter was removed ({})", home.starter().display());
    }
    Ok(())
}

pub fn manifest_file(browser: Browser, home: &Home, profile: Option<&Path>) -> PathBuf {
    browser.folder(home, profile).join(format!("{HOST_NAME}.json"))
}

fn script(program: &Path, arguments: &Arguments) -> String {
    let mut words = vec!["exec".to_string(), quoted(&program.to_string_lossy()), "host".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_string(), quoted(&value)]);
        }
    };
    option("--station", arguments.station.clone());
    option("--ca", arguments.ca.as_ref().map(|path| path.to_string_lossy().into_owned()));
    option("--server-name", arguments.server_name.clone());
    option("--record", arguments.record.as_ref().map(|path| path.to_string_lossy().into_owned()));
    // What the browser says of the extension comes last; it is not needed.
    format!("#!/bin/sh\n{MARK}\n{} -- \"$@\"\n", words.join(" "))
}

/// As a word of the shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// All or nothing: a browser may read it at any time.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().ok_or_else(|| format!("{}: has no folder", path.display()))?;
    fs::create_dir_all(folder).map_err(wrong)?;
    let part = path.with_extension("part");
    let mut file = fs::File::create(&part).map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(wrong)?;
    fs::rename(&part, path).map_err(wrong)
}

fn remove(path: &Path) -> Result<bool, String> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starter_keeps_what_it_is_given_whatever_is_in_it() {
        let arguments = Arguments {
            station: Some("https://198.18.3.1:50051".into()),
            ca: Some("/home/o'neill/my ca.pem".into()),
            server_name: None,
            record: None,
        };
        let text = script(Path::new("/opt/steer line/steerline-agent"), &arguments);
        let line = text.lines().last().unwrap();
        assert_eq!(
            line,
            r#"exec '/opt/steer line/steerline-agent' host --station 'https://198.18.3.1:50051' --ca '/home/o'\''neill/my ca.pem' -- "$@""#
        );
    }
}
