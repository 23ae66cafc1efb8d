//! Where each browser looks for native messaging hosts, and how the manifest for it reads.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{json, Value};

/// The name under which the extension asks for us.
pub const HOST_NAME: &str = "steerline.agent";
/// Follows from the key in the extension's Chromium manifest.
pub const CHROMIUM_ID: &str = "dhhahajopihmhogjpodcniomgmlejjoi";
pub const FIREFOX_ID: &str = "extension@steerline";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Browser {
    Chromium,
    Chrome,
    Edge,
    Firefox,
}

impl Browser {
    pub const ALL: [Browser; 4] = [Browser::Chromium, Browser::Chrome, Browser::Edge, Browser::Firefox];

    pub fn name(self) -> &'static str {
        match self {
            Browser::Chromium => "chromium",
            Browser::Chrome => "chrome",
            Browser::Edge => "edge",
            Browser::Firefox => "firefox",
        }
    }

    /// The folder of this user's manifests. `profile` replaces the browser's own folder, as its --user-data-dir does.
    pub fn folder(self, home: &Home, profile: Option<&Path>) -> PathBuf {
        let own = match self {
            Browser::Firefox => return home.path.join(".mozilla/native-messaging-hosts"),
            Browser::Chromium => "chromium",
            Browser::Chrome => "google-chrome",
            Browser::Edge => "microsoft-edge",
        };
        profile.map_or_else(|| home.config.join(own), Path::to_path_buf).join("NativeMessagingHosts")
    }

    pub fn manifest(self, program: &Path, extension_ids: &[String]) -> Value {
        let mut manifest = json!({
            "name": HOST_NAME,
            "description": "Steerline: tells the network how many seconds a video has left",
            "path": program,
            "type": "stdio",
        });
        if self == Browser::Firefox {
            manifest["allowed_extensions"] = json!([FIREFOX_ID]);
        } else {
            let ids = std::iter::once(CHROMIUM_ID).chain(extension_ids.iter().map(String::as_str));
            manifest["allowed_origins"] = ids.map(|id| format!("chrome-extension://{id}/")).collect();
        }
        manifest
    }
}

/// A user's home, and the folder for settings in it.
#[derive(Debug, Clone)]
pub struct Home {
    pub path: PathBuf,
    pub config: PathBuf,
}

impl Home {
    /// `given` replaces the user's own. Errors: there is none.
    pub fn find(given: Option<&Path>) -> Result<Home, String> {
        if let Some(path) = given {
            let path = std::path::absolute(path).map_err(|error| format!("--dir {}: {error}", path.display()))?;
            return Ok(Home { config: path.join(".config"), path });
        }
        let path = std::env::home_dir()
            .filter(|path| path.is_absolute())
            .ok_or("no home folder: HOME is not set (or name one with --dir)")?;
        let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Ok(Home { config: xdg.unwrap_or_else(|| path.join(".config")), path })
    }

    /// The script that browsers start: they give no arguments of ours.
    pub fn starter(&self) -> PathBuf {
        self.path.join(".local/share/steerline/native-host")
    }
}
