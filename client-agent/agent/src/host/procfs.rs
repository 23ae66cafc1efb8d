//! What /proc tells: the browser's processes, their sockets, and sockets where sock_diag is not to be had.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::diag::{Socket, TCP, UDP};

/// More processes than any browser has.
const MOST_PROCESSES: usize = 4096;

/// The process and all that descend from it. Only of this user's can the sockets be read; that is the browser's case.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has just ended is none.
        if let Some(parent) = fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parent) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() && found.len() < MOST_PROCESSES {
        found.extend(children.remove(&found[next]).unwrap_or_default());
        next += 1;
    }
    found
}

/// The fourth field of /proc/PID/stat. The second is a name in brackets, which may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Inodes of the sockets that these processes hold. Processes that may not be read (a sandbox) hold none of ours.
pub fn inodes(pids: &[u32]) -> HashSet<u64> {
    let mut inodes = HashSet::new();
    for pid in pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).ok();
            inodes.extend(target.as_deref().and_then(Path::to_str).and_then(socket_inode));
        }
    }
    inodes
}

fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Sockets by /proc/net: without bytes.
pub fn sockets() -> Vec<Socket> {
    let files = [("tcp", TCP), ("tcp6", TCP), ("udp", UDP), ("udp6", UDP)];
    files
        .iter()
        .flat_map(|(name, protocol)| {
            let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
            text.lines().skip(1).filter_map(|line| socket(line, *protocol)).collect::<Vec<_>>()
        })
        .collect()
}

const ESTABLISHED: &str = "01";
const CLOSED: &str = "07";

fn socket(line: &str, protocol: u8) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let state = *fields.get(3)?;
    if state != ESTABLISHED && !(protocol == UDP && state == CLOSED) {
        return None;
    }
    Some(Socket {
        protocol,
        inode: fields.get(9)?.parse().ok()?,
        local: address(fields[1])?,
        remote: address(fields[2])?,
        bytes_received: None,
    })
}

/// `0100007F:1F90`: each group of 8 digits is a number in the machine's order.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    if !host.is_ascii() || host.len() % 8 != 0 {
        return None;
    }
    let mut bytes = Vec::new();
    for group in 0..host.len() / 8 {
        bytes.extend(u32::from_str_radix(&host[group * 8..group * 8 + 8], 16).ok()?.to_ne_bytes());
    }
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        assert_eq!(parent("42 (Web (Content) 7) S 17 42 42"), Some(17));
        assert_eq!(parent("nonsense"), None);
    }

    #[test]
    fn our_own_sockets_are_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = socket_inode(link.to_str().unwrap()).unwrap();
        assert!(inodes(&tree(std::process::id())).contains(&inode));
    }

    #[test]
    fn a_line_of_proc_net_is_a_socket() {
        let line =
            "  1: 0100007F:1F90 0200007F:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 51423 1 0";
        let socket = socket(line, TCP).unwrap();
        assert_eq!(socket.local.to_string(), "127.0.0.1:8080");
        assert_eq!((socket.remote.to_string().as_str(), socket.inode), ("127.0.0.2:443", 51423));
        assert_eq!(address("00000000000000000000000001000000:0050").unwrap().to_string(), "[::1]:80");
        assert_eq!(address("äöüß:0050"), None);
    }
}
