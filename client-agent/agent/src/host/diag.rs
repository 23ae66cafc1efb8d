//! Asks the kernel for its sockets (sock_diag(7)): addresses, inode and bytes received. Needs no privileges.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{self, netlink, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// One socket of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    pub protocol: u8,
    pub inode: u64,
    pub local: SocketAddr,
    /// Unspecified for a socket that is not connected.
    pub remote: SocketAddr,
    /// Since the connection began; none for UDP and where the kernel does not tell.
    pub bytes_received: Option<u64>,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// NLM_F_REQUEST | NLM_F_DUMP
const DUMP: u16 = 0x301;
const HEADER: usize = 16;
/// struct inet_diag_req_v2
const REQUEST: usize = 56;
/// struct inet_diag_msg
const ANSWER: usize = 72;
const INET_DIAG_INFO: u16 = 2;
/// tcpi_bytes_received in struct tcp_info
const BYTES_RECEIVED: usize = 128;
/// Established, and closing sockets that may still receive: FIN_WAIT1, FIN_WAIT2. UDP: 1 connected, 7 not.
const TCP_STATES: u32 = (1 << 1) | (1 << 4) | (1 << 5);
const UDP_STATES: u32 = (1 << 1) | (1 << 7);
const WAIT: Duration = Duration::from_millis(500);
/// The kernel fills at most 32 KiB per message of a dump.
const BUFFER: usize = 64 * 1024;

/// All sockets of one family and protocol.
pub fn dump(family: AddressFamily, protocol: u8) -> io::Result<Vec<Socket>> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(WAIT))?;
    net::send(&socket, &request(family.as_raw() as u8, protocol), SendFlags::empty())?;
    let mut sockets = Vec::new();
    let mut buffer = vec![0_u8; BUFFER];
    loop {
        let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if !parse(&buffer[..length], protocol, &mut sockets)? {
            return Ok(sockets);
        }
    }
}

fn request(family: u8, protocol: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, protocol, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(if protocol == TCP { TCP_STATES } else { UDP_STATES }.to_ne_bytes());
    bytes.resize(HEADER + REQUEST, 0);
    bytes
}

/// Takes the sockets out of one datagram. True: there is more to come.
fn parse(mut bytes: &[u8], protocol: u8, sockets: &mut Vec<Socket>) -> io::Result<bool> {
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0) as usize;
        if length < HEADER || length > bytes.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink message of impossible length"));
        }
        let body = &bytes[HEADER..length];
        match u16::from_ne_bytes([bytes[4], bytes[5]]) {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR if body.len() >= 4 => match u32_at(body, 0) as i32 {
                0 => return Ok(false),
                code => return Err(io::Error::from_raw_os_error(-code)),
            },
            SOCK_DIAG_BY_FAMILY => sockets.extend(socket(body, protocol)),
            _ => {}
        }
        bytes = &bytes[aligned(length).min(bytes.len())..];
    }
    Ok(true)
}

fn socket(body: &[u8], protocol: u8) -> Option<Socket> {
    if body.len() < ANSWER {
        return None;
    }
    let family = i32::from(body[0]);
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let address = |at: usize| address(family, &body[at..at + 16]);
    Some(Socket {
        protocol,
        inode: u64::from(u32_at(body, 68)),
        local: SocketAddr::new(address(8)?, port(4)),
        remote: SocketAddr::new(address(24)?, port(6)),
        bytes_received: bytes_received(&body[ANSWER..]),
    })
}

fn address(family: i32, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        family if family == i32::from(AddressFamily::INET.as_raw()) => {
            Some(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into())
        }
        family if family == i32::from(AddressFamily::INET6.as_raw()) => {
            let bytes: [u8; 16] = bytes.try_into().ok()?;
            // A socket for both families shows IPv4 as ::ffff:a.b.c.d; on the wire it is IPv4.
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

fn bytes_received(mut attributes: &[u8]) -> Option<u64> {
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        if length < 4 || length > attributes.len() {
            return None;
        }
        if kind == INET_DIAG_INFO {
            let bytes = attributes[4..length].get(BYTES_RECEIVED..BYTES_RECEIVED + 8)?;
            return Some(u64::from_ne_bytes(bytes.try_into().ok()?));
        }
        attributes = &attributes[aligned(length).min(attributes.len())..];
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_connection_is_found_with_its_bytes() {
        for (host, family) in [("127.0.0.1:0", AddressFamily::INET), ("[::1]:0", AddressFamily::INET6)] {
            let listener = TcpListener::bind(host).unwrap();
            let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut theirs, _) = listener.accept().unwrap();
            theirs.write_all(&[7; 5000]).unwrap();
            ours.read_exact(&mut [0; 5000]).unwrap();
            let sockets = dump(family, TCP).unwrap();
            let found = sockets.iter().find(|socket| socket.local == ours.local_addr().unwrap()).unwrap();
            assert_eq!(found.remote, listener.local_addr().unwrap());
            assert_eq!(found.bytes_received, Some(5000));
        }
    }

    #[test]
    fn a_connected_udp_socket_is_found_with_its_server() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.connect(server.local_addr().unwrap()).unwrap();
        let sockets = dump(AddressFamily::INET, UDP).unwrap();
        let found = sockets.iter().find(|socket| socket.local == ours.local_addr().unwrap()).unwrap();
        assert_eq!((found.remote, found.bytes_received), (server.local_addr().unwrap(), None));
        assert!(sockets.iter().any(|socket| socket.local == server.local_addr().unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_crash(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes, TCP, &mut Vec::new());
            let _ = bytes_received(&bytes);
        }
    }
}
