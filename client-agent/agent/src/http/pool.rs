//! Idle connections, kept as browsers keep them: the one used last is used first, and no more than six per host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use super::connection::Connection;

/// What browsers allow per host with HTTP/1.1.
pub const MOST_PER_HOST: usize = 6;

#[derive(Default)]
pub struct Pool {
    hosts: Mutex<HashMap<String, Host>>,
}

struct Host {
    idle: Vec<Connection>,
    /// A permit per request under way. As idle connections go first, no more are ever open than were at work.
    permits: Arc<Semaphore>,
}

impl Pool {
    /// Waits until one more request may go to the host of `url`.
    pub async fn admit(&self, url: &Url) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.host(&mut self.lock(), url).permits);
        permits.acquire_owned().await.ok()
    }

    /// The idle connection used last that is still open.
    pub fn take(&self, url: &Url) -> Option<Connection> {
        let mut hosts = self.lock();
        let idle = &mut self.host(&mut hosts, url).idle;
        idle.retain(|connection| !connection.sender.is_closed());
        idle.pop()
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn give_back(&self, url: &Url, connection: Connection) {
        self.host(&mut self.lock(), url).idle.push(connection);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn host<'a>(&self, hosts: &'a mut HashMap<String, Host>, url: &Url) -> &'a mut Host {
        let host = url.host_str().unwrap_or_default();
        let origin = format!("{}://{host}:{}", url.scheme(), url.port_or_known_default().unwrap_or(0));
        hosts
            .entry(origin)
            .or_insert_with(|| Host { idle: Vec::new(), permits: Arc::new(Semaphore::new(MOST_PER_HOST)) })
    }
}
