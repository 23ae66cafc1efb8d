//! The browser's sockets, now: the kernel's list, those of the browser's processes.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::AddressFamily;

use super::diag::{self, Socket, TCP, UDP};
use super::procfs;

/// Whose a socket is, is asked again no sooner than this: reading a big browser's descriptors takes milliseconds.
const ASK_AGAIN: Duration = Duration::from_millis(200);
const MOST_KNOWN: usize = 10_000;

pub struct Sockets {
    browser: u32,
    /// By inode and ends: is it the browser's?
    known: HashMap<(u64, SocketAddr, SocketAddr), bool>,
    asked: Option<Duration>,
}

impl Sockets {
    /// `browser`: the process that started us.
    pub fn of(browser: u32) -> Sockets {
        Sockets { browser, known: HashMap::new(), asked: None }
    }

    /// The browser's TCP and UDP sockets. Whose a new one is, is asked only where one of these servers could be meant:
    /// a machine's other programs open many.
    pub fn now(&mut self, servers: &[IpAddr], now: Duration) -> Vec<Socket> {
        let mut all = list();
        let could = |socket: &Socket| {
            let unconnected = socket.protocol == UDP && socket.remote.ip().is_unspecified();
            unconnected || servers.contains(&socket.remote.ip())
        };
        let strange = all
            .iter()
            .any(|socket| !self.known.contains_key(&(socket.inode, socket.local, socket.remote)) && could(socket));
        if strange && self.asked.is_none_or(|at| now.saturating_sub(at) >= ASK_AGAIN) {
            self.asked = Some(now);
            let ours = procfs::inodes(&procfs::tree(self.browser));
            // What is gone from the kernel's list is forgotten.
            self.known = all
                .iter()
                .take(MOST_KNOWN)
                .map(|socket| ((socket.inode, socket.local, socket.remote), ours.contains(&socket.inode)))
                .collect();
        }
        all.retain(|socket| self.known.get(&(socket.inode, socket.local, socket.remote)) == Some(&true));
        all
    }
}

fn list() -> Vec<Socket> {
    let mut all = Vec::new();
    for protocol in [TCP, UDP] {
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            match diag::dump(family, protocol) {
                Ok(sockets) => all.extend(sockets),
                // A kernel without the module for it, or a sandbox that forbids it.
                Err(_) => return procfs::sockets(),
            }
        }
    }
    all
}

/// The address from which this machine speaks to a server. Nothing is sent for that.
pub fn local_for(server: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((server, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
