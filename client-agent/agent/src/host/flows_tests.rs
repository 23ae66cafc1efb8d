use super::*;

const SERVER: Server = Server { address: IpAddr::V4(std::net::Ipv4Addr::new(198, 19, 0, 1)), port: 443 };

fn socket(protocol: u8, inode: u64, local: &str, remote: &str, bytes: Option<u64>) -> Socket {
    Socket { protocol, inode, local: local.parse().unwrap(), remote: remote.parse().unwrap(), bytes_received: bytes }
}

fn tcp(inode: u64, port: u16, bytes: u64) -> Socket {
    socket(TCP, inode, &format!("198.18.1.11:{port}"), "198.19.0.1:443", Some(bytes))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ports(chooser: &Chooser, sockets: &[Socket], now: Duration) -> Vec<(u32, u32, u32)> {
    let local = |_| Some("198.18.1.11".parse().unwrap());
    let flows = chooser.choose(sockets, &[SERVER], local, now);
    flows.iter().map(|flow| (flow.protocol, flow.client_port, flow.server_port)).collect()
}

#[test]
fn of_several_connections_those_that_carry_the_bytes_are_reported() {
    let mut chooser = Chooser::default();
    for second in 0..10 {
        chooser
            .observe(&[tcp(1, 4001, 300_000 * second), tcp(2, 4002, 900), tcp(3, 4003, 100_000 * second)], at(second));
    }
    let sockets = [tcp(1, 4001, 2_700_000), tcp(2, 4002, 900), tcp(3, 4003, 900_000)];
    assert_eq!(ports(&chooser, &sockets, at(9)), [(6, 4001, 443), (6, 4003, 443)]);
}

#[test]
fn a_new_connection_is_reported_a_second_after_it_began_to_carry() {
    let mut chooser = Chooser::default();
    for second in 0..30 {
        chooser.observe(&[tcp(1, 4001, 1_200_000 * second)], at(second));
    }
    // The old one is closed, and gone from the kernel's list.
    let after = [tcp(9, 4009, 325_000)];
    chooser.observe(&after, at(30));
    assert_eq!(ports(&chooser, &after, at(30)), [(6, 4009, 443)]);
    // Or it stays open beside the new one.
    let both = [tcp(1, 4001, 1_200_000 * 29), tcp(9, 4009, 650_000)];
    chooser.observe(&both, at(31));
    assert!(ports(&chooser, &both, at(31)).contains(&(6, 4009, 443)));
}

#[test]
fn a_player_that_rests_keeps_its_connections() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 9_000_000), tcp(2, 4002, 900)];
    for second in 0..50 {
        chooser.observe(&sockets, at(second));
    }
    assert_eq!(ports(&chooser, &sockets, at(50)), [(6, 4001, 443)]);
}

#[test]
fn before_any_byte_all_connections_to_the_server_count() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 0), tcp(2, 4002, 0)];
    chooser.observe(&sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), 2);
}

#[test]
fn quic_in_chromium_is_the_connected_udp_socket_with_its_own_port() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 3000), socket(UDP, 2, "198.18.1.11:5001", "198.19.0.1:8443", None)];
    chooser.observe(&sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)), [(17, 5001, 8443)]);
}

#[test]
fn an_idle_quic_socket_does_not_hide_the_tcp_connection_that_carries() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 3_000_000), socket(UDP, 2, "198.18.1.11:5001", "198.19.0.1:443", None)];
    chooser.observe(&sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(1)), [(6, 4001, 443)]);
    // From TCP to QUIC in mid-film: TCP rests.
    assert_eq!(ports(&chooser, &sockets, at(11)), [(17, 5001, 443)]);
}

#[test]
fn quic_in_firefox_is_a_local_port_and_the_servers_address() {
    let chooser = Chooser::default();
    let sockets = [
        socket(UDP, 7, "[::]:5007", "[::]:0", None),
        socket(UDP, 8, "0.0.0.0:5353", "0.0.0.0:0", None),
        socket(UDP, 9, "127.0.0.1:5009", "0.0.0.0:0", None),
    ];
    assert_eq!(ports(&chooser, &sockets, at(0)), [(17, 5007, 443)]);
}

#[test]
fn connections_to_other_servers_are_not_reported() {
    let other = socket(TCP, 1, "198.18.1.11:4001", "198.19.0.2:443", Some(9_000_000));
    let mut chooser = Chooser::default();
    chooser.observe(std::slice::from_ref(&other), at(0));
    assert!(ports(&chooser, &[other], at(0)).is_empty());
}

#[test]
fn where_the_kernel_tells_no_bytes_all_connections_to_the_server_count() {
    let mut chooser = Chooser::default();
    let sockets = [4001, 4002].map(|port| socket(TCP, port, &format!("198.18.1.11:{port}"), "198.19.0.1:443", None));
    chooser.observe(&sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), 2);
}

#[test]
fn never_more_than_the_contract_allows() {
    let mut chooser = Chooser::default();
    let sockets: Vec<Socket> = (0..500_u16).map(|n| tcp(n.into(), 4000 + n, 1000)).collect();
    chooser.observe(&sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), MOST_FLOWS);
}
