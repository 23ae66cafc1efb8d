//! Which of the browser's sockets carry a session. Pure: sockets and `now` go in, five-tuples come out.
//!
//! A browser keeps several connections to one server. Those that carry the film are told by their bytes; what a
//! connection has carried counts half as much after each [`HALF_LIFE`], so a player that rests with a full buffer
//! keeps its connections. For UDP the kernel counts no bytes: a connected socket to the server is QUIC if TCP
//! carries nothing; one that is not connected (Firefox) is taken where there is no TCP connection worth its name.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::diag::{Socket, TCP, UDP};
use super::messages::Server;
use crate::wire::steerline::flow::v1::FiveTuple;

const HALF_LIFE: Duration = Duration::from_secs(5);
/// A connection that carried less than this share of what the busiest did is no media connection.
const LEAST_SHARE: f64 = 0.05;
/// A connection that has carried less than this is a handshake, or a page's small things.
const SMALL_BYTES: u64 = 64 * 1024;
/// TCP that has carried nothing for so long does not speak against QUIC.
const TCP_RESTS: Duration = Duration::from_secs(10);
/// What the contract allows.
const MOST_FLOWS: usize = 32;
const MOST_UNCONNECTED: usize = 8;
const MDNS: u16 = 5353;
/// Sockets that were not seen for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// A socket in its life: an inode alone may come again.
type Key = (u64, SocketAddr, SocketAddr);

#[derive(Debug)]
struct Past {
    bytes: u64,
    recent: f64,
    seen: Duration,
    gained: Option<Duration>,
}

#[derive(Debug, Default)]
pub struct Chooser {
    past: HashMap<Key, Past>,
}

fn key(socket: &Socket) -> Key {
    (socket.inode, socket.local, socket.remote)
}

impl Chooser {
    /// Takes note of what the browser's sockets have carried until `now`.
    pub fn observe(&mut self, sockets: &[Socket], now: Duration) {
        for socket in sockets.iter().filter(|socket| socket.protocol == TCP) {
            let Some(bytes) = socket.bytes_received else { continue };
            let past = self.past.entry(key(socket)).or_insert(Past { bytes: 0, recent: 0.0, seen: now, gained: None });
            let halves = now.saturating_sub(past.seen).as_secs_f64() / HALF_LIFE.as_secs_f64();
            let gained = bytes.saturating_sub(past.bytes);
            past.recent = past.recent * 0.5_f64.powf(halves) + gained as f64;
            past.bytes = bytes;
            past.seen = now;
            if gained > 0 {
                past.gained = Some(now);
            }
        }
        self.past.retain(|_, past| now.saturating_sub(past.seen) < FORGOTTEN);
    }

    /// The connections that carry media of these servers. `sockets` are the browser's; `local_for` tells the address
    /// that this machine speaks to a server from, for sockets that are not bound to one.
    pub fn choose(
        &self,
        sockets: &[Socket],
        servers: &[Server],
        local_for: impl Fn(IpAddr) -> Option<IpAddr>,
        now: Duration,
    ) -> Vec<FiveTuple> {
        let mut chosen: Vec<FiveTuple> = Vec::new();
        for server in servers {
            let address = server.address.to_canonical();
            // With Alt-Svc the port is not the URL's: the address counts.
            let to_server = |socket: &&Socket| socket.remote.ip() == address && socket.remote.port() != 0;
            let tcp: Vec<&Socket> = sockets.iter().filter(|socket| socket.protocol == TCP).filter(to_server).collect();
            let udp: Vec<&Socket> = sockets.iter().filter(|socket| socket.protocol == UDP).filter(to_server).collect();
            let flows: Vec<FiveTuple> = if !udp.is_empty() && !self.carries(&tcp, now) {
                udp.iter().filter_map(|socket| flow(socket, socket.remote, &local_for)).collect()
            } else if tcp.iter().all(|socket| socket.bytes_received.is_some_and(|bytes| bytes < SMALL_BYTES))
                && !unconnected(sockets, address).is_empty()
            {
                let end = SocketAddr::new(address, server.port);
                unconnected(sockets, address).iter().filter_map(|socket| flow(socket, end, &local_for)).collect()
            } else {
                self.busy(&tcp).iter().filter_map(|socket| flow(socket, socket.remote, &local_for)).collect()
            };
            for flow in flows {
                if !chosen.contains(&flow) && chosen.len() < MOST_FLOWS {
                    chosen.push(flow);
                }
            }
        }
        chosen
    }

    /// One of these connections has carried something worth its name, lately.
    fn carries(&self, tcp: &[&Socket], now: Duration) -> bool {
        tcp.iter().any(|socket| match self.past.get(&key(socket)) {
            Some(past) => past.bytes >= SMALL_BYTES && past.gained.is_some_and(|at| now.saturating_sub(at) < TCP_RESTS),
            // The kernel does not tell bytes: TCP gets the benefit of the doubt.
            None => socket.bytes_received.is_none(),
        })
    }

    /// Those that carry the bytes; all, where none has carried any yet or bytes are not told.
    fn busy<'a>(&self, tcp: &[&'a Socket]) -> Vec<&'a Socket> {
        let recent = |socket: &Socket| self.past.get(&key(socket)).map_or(0.0, |past| past.recent);
        let most = tcp.iter().map(|socket| recent(socket)).fold(0.0, f64::max);
        let busy = |socket: &&&Socket| recent(socket) >= most * LEAST_SHARE || socket.bytes_received.is_none();
        tcp.iter().filter(busy).copied().collect()
    }
}

/// UDP sockets that speak to many, the newest first: Firefox opens one per QUIC connection.
fn unconnected(sockets: &[Socket], server: IpAddr) -> Vec<&Socket> {
    let speaks = |socket: &&Socket| {
        socket.protocol == UDP
            && socket.remote.ip().is_unspecified()
            && ![0, MDNS].contains(&socket.local.port())
            && !socket.local.ip().is_loopback()
            && (socket.local.is_ipv4() == server.is_ipv4() || socket.local.ip().is_unspecified())
    };
    let mut found: Vec<&Socket> = sockets.iter().filter(speaks).collect();
    found.sort_by_key(|socket| std::cmp::Reverse(socket.inode));
    found.truncate(MOST_UNCONNECTED);
    found
}

fn flow(socket: &Socket, server: SocketAddr, local_for: impl Fn(IpAddr) -> Option<IpAddr>) -> Option<FiveTuple> {
    let local = match socket.local.ip() {
        ip if ip.is_unspecified() => local_for(server.ip())?,
        ip => ip,
    };
    Some(FiveTuple {
        protocol: socket.protocol.into(),
        client_address: local.to_canonical().to_string(),
        client_port: socket.local.port().into(),
        server_address: server.ip().to_string(),
        server_port: server.port().into(),
    })
}

#[cfg(test)]
#[path = "flows_tests.rs"]
mod tests;
