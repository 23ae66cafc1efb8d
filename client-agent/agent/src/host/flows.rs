//! Which of the browser's sockets carry a session. Pure: sockets and `now` go in, five-tuples come out.
//!
//! A browser keeps several connections to one server. Those that carry the film are told by their bytes; what a
//! connection has carried counts half as much after each [`HALF_LIFE`], so a player that rests with a full buffer
//! keeps its connections. Tabs share connections: what arrives while a session has no request under way is not its
//! own. For UDP the kernel counts no bytes: a connected socket (Chromium) is QUIC where the page or the silence of
//! TCP says so; one that is not connected (Firefox) where the page says so, or there is no TCP worth its name. A browser
//! that opens its connections anew fetches over TCP until QUIC has answered, and then over both for a while.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::diag::{Socket, TCP, UDP};
use super::messages::Server;
use crate::wire::steerline::flow::v1::FiveTuple;

const HALF_LIFE: Duration = Duration::from_secs(5);
/// A connection that carried less than this share of what the session's busiest did is no media connection. Sound has
/// often a connection of its own, and a fiftieth of the film's rate.
const LEAST_SHARE: f64 = 0.01;
/// One that has carried less than this for the session in all (a page, a playlist) needs a greater share.
const LEAST_BYTES: f64 = 16.0 * 1024.0;
const GREATER_SHARE: f64 = 0.1;
/// A connection that has carried less than this is a handshake, or a page's small things.
const SMALL_BYTES: u64 = 64 * 1024;
/// Less than this in a second of open requests is silence: keep-alives, a playlist.
const SILENT_BYTES: u64 = 4 * 1024;
/// TCP that has been silent for so long, while requests were under way, does not speak against QUIC.
const TCP_SILENT: Duration = Duration::from_millis(900);
/// So long after the last word or byte of it the other protocol is still taken for one that is spoken.
const LINGERS: Duration = Duration::from_secs(3);
/// What the contract allows.
const MOST_FLOWS: usize = 32;
const MOST_UNCONNECTED: usize = 8;
const MDNS: u16 = 5353;
/// Sockets that were not seen for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// A socket in its life: an inode alone may come again.
type Key = (u64, SocketAddr, SocketAddr);

#[derive(Debug, Clone, Copy)]
struct Past {
    bytes: u64,
    /// For this session: of late, and in all.
    recent: f64,
    whole: f64,
    seen: Duration,
    /// When it last brought something, since the session's first report.
    fed: Option<Duration>,
}

/// What the browser's connections have carried for one session.
#[derive(Debug, Default)]
pub struct Chooser {
    past: HashMap<Key, Past>,
    /// By server: how long TCP has been silent although requests were under way.
    silent: HashMap<IpAddr, Duration>,
    /// By server: when the page last said that an answer came by HTTP/3.
    http3: HashMap<IpAddr, Duration>,
    /// Servers with requests under way at the last report: what has arrived since may be this session's.
    busy: Vec<IpAddr>,
    observed: Option<Duration>,
}

impl Past {
    fn new(now: Duration) -> Past {
        Past { bytes: 0, recent: 0.0, whole: 0.0, seen: now, fed: None }
    }
}

fn key(socket: &Socket) -> Key {
    (socket.inode, socket.local, socket.remote)
}

/// With Alt-Svc the port is not the URL's: the address counts.
fn to(socket: &Socket, server: IpAddr) -> bool {
    socket.remote.ip() == server && socket.remote.port() != 0
}

impl Chooser {
    /// For a session that begins: what `sockets` have carried so far was others'.
    pub fn after(sockets: &[Socket], now: Duration) -> Chooser {
        let past = |socket: &Socket| Some((key(socket), Past { bytes: socket.bytes_received?, ..Past::new(now) }));
        Chooser { past: sockets.iter().filter_map(past).collect(), ..Chooser::default() }
    }

    /// Takes note, at a report, of what has arrived since the one before.
    pub fn observe(&mut self, sockets: &[Socket], servers: &[Server], now: Duration) {
        let first = self.observed.is_none();
        let step = self.observed.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        self.observed = Some(now);
        self.busy = servers.iter().filter(|server| server.busy != Some(false)).map(Server::canonical).collect();
        for server in servers.iter().map(Server::canonical) {
            let busy = self.busy.contains(&server);
            let mut arrived = 0;
            for socket in sockets.iter().filter(|socket| socket.protocol == TCP && to(socket, server)) {
                let Some(bytes) = socket.bytes_received else { continue };
                let past = self.past.entry(key(socket)).or_insert(Past::new(now));
                let gained = bytes.saturating_sub(past.bytes);
                arrived += gained;
                let own = if busy { gained as f64 } else { 0.0 };
                past.recent = decayed(past, now) + own;
                past.whole += own;
                past.bytes = bytes;
                past.seen = now;
                // What came before the first report may be the page's.
                if own >= SILENT_BYTES as f64 && !first {
                    past.fed = Some(now);
                }
            }
            let silent = self.silent.entry(server).or_default();
            if arrived >= SILENT_BYTES {
                *silent = Duration::ZERO;
            } else if busy {
                *silent += step.min(TCP_SILENT);
            }
        }
        let by_http3 = servers.iter().filter(|server| server.http3 == Some(true));
        self.http3.extend(by_http3.map(|server| (server.canonical(), now)));
        self.past.retain(|_, past| now.saturating_sub(past.seen) < FORGOTTEN);
        self.silent.retain(|address, _| servers.iter().any(|server| server.canonical() == *address));
        self.http3.retain(|_, said| now.saturating_sub(*said) < LINGERS);
    }

    /// The connections that carry media of these servers, now; also between two reports. `sockets` are the browser's;
    /// `local_for` tells the address that this machine speaks to a server from, for sockets that are bound to none.
    pub fn choose(
        &self,
        sockets: &[Socket],
        servers: &[Server],
        local_for: impl Fn(IpAddr) -> Option<IpAddr>,
        now: Duration,
    ) -> Vec<FiveTuple> {
        let theirs = |socket: &&Socket| servers.iter().any(|server| to(socket, server.canonical()));
        let most = sockets.iter().filter(theirs).map(|socket| self.carried(socket, now).0).fold(0.0, f64::max);
        let carries = |socket: &&&Socket| {
            let (recent, whole) = self.carried(socket, now);
            let share = if whole >= LEAST_BYTES { LEAST_SHARE } else { GREATER_SHARE };
            recent >= most * share || socket.bytes_received.is_none()
        };
        let mut chosen: Vec<FiveTuple> = Vec::new();
        for server in servers {
            let address = server.canonical();
            let of = |protocol: u8| -> Vec<&Socket> {
                sockets.iter().filter(|socket| socket.protocol == protocol && to(socket, address)).collect()
            };
            let (tcp, udp) = (of(TCP), of(UDP));
            let own_end = |socket: &Socket| flow(socket, socket.remote, &local_for);
            let mut flows: Vec<FiveTuple> = Vec::new();
            let quic = if !udp.is_empty() && self.is_quic(server, &tcp) {
                flows.extend(udp.iter().filter_map(|socket| own_end(socket)));
                true
            } else if speaks_unconnected(server, &tcp) && !unconnected(sockets, address).is_empty() {
                let end = SocketAddr::new(address, server.http3_port.unwrap_or(server.port));
                flows.extend(unconnected(sockets, address).iter().filter_map(|socket| flow(socket, end, &local_for)));
                true
            } else {
                false
            };
            let beside = |socket: &&&Socket| !quic || server.http3 == Some(true) && self.feeds(socket, now);
            flows.extend(tcp.iter().filter(carries).filter(beside).filter_map(|socket| own_end(socket)));
            if !quic && self.http3.get(&address).is_some_and(|said| now.saturating_sub(*said) < LINGERS) {
                flows.extend(udp.iter().filter_map(|socket| own_end(socket)));
            }
            for flow in flows {
                if !chosen.contains(&flow) && chosen.len() < MOST_FLOWS {
                    chosen.push(flow);
                }
            }
        }
        chosen
    }

    /// What a connection has carried for this session, of late and in all.
    fn carried(&self, socket: &Socket, now: Duration) -> (f64, f64) {
        let past = self.past.get(&key(socket));
        let since = if self.busy.contains(&socket.remote.ip()) {
            socket.bytes_received.unwrap_or(0).saturating_sub(past.map_or(0, |past| past.bytes))
        } else {
            0
        };
        let (recent, whole) = past.map_or((0.0, 0.0), |past| (decayed(past, now), past.whole));
        (recent + since as f64, whole + since as f64)
    }

    /// Does this connection bring more than a page, beside QUIC?
    fn feeds(&self, socket: &Socket, now: Duration) -> bool {
        let past = self.past.get(&key(socket));
        let fed = past.and_then(|past| past.fed).is_some_and(|at| now.saturating_sub(at) < LINGERS);
        let unseen = socket.bytes_received.unwrap_or(0).saturating_sub(past.map_or(0, |past| past.bytes));
        let feeding = self.observed.is_some() && unseen >= SILENT_BYTES;
        (fed || feeding) && self.carried(socket, now).0 >= SMALL_BYTES as f64
    }

    /// Does this server, to which there is a connected UDP socket, speak QUIC for this session?
    fn is_quic(&self, server: &Server, tcp: &[&Socket]) -> bool {
        // The kernel does not tell bytes: TCP gets the benefit of the doubt.
        let told = tcp.iter().all(|socket| socket.bytes_received.is_some());
        let small = tcp.iter().all(|socket| socket.bytes_received.is_some_and(|bytes| bytes < SMALL_BYTES));
        let silent = self.silent.get(&server.canonical()).is_some_and(|silent| *silent >= TCP_SILENT);
        server.http3.unwrap_or(told && (small || silent))
    }
}

fn decayed(past: &Past, now: Duration) -> f64 {
    past.recent * 0.5_f64.powf(now.saturating_sub(past.seen).as_secs_f64() / HALF_LIFE.as_secs_f64())
}

/// Does it speak QUIC over a socket that is connected to nobody, as Firefox does?
fn speaks_unconnected(server: &Server, tcp: &[&Socket]) -> bool {
    let small = |socket: &&Socket| socket.bytes_received.is_some_and(|bytes| bytes < SMALL_BYTES);
    server.http3.unwrap_or_else(|| tcp.iter().all(small))
}

/// UDP sockets that speak to many, the newest first: Firefox opens one per QUIC connection.
fn unconnected(sockets: &[Socket], server: IpAddr) -> Vec<&Socket> {
    let speaks = |socket: &&Socket| {
        socket.protocol == UDP
            && socket.remote.ip().is_unspecified()
            && ![0, MDNS].contains(&socket.local.port())
            && (!socket.local.ip().is_loopback() || server.is_loopback())
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
