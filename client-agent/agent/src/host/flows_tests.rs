use super::*;

const SERVER: Server = server(1, Some(true));

const fn server(last: u8, busy: Option<bool>) -> Server {
    let address = IpAddr::V4(std::net::Ipv4Addr::new(198, 19, 0, last));
    Server { address, port: 443, busy, http3: None, http3_port: None }
}

fn socket(protocol: u8, inode: u64, local: &str, remote: &str, bytes: Option<u64>) -> Socket {
    Socket { protocol, inode, local: local.parse().unwrap(), remote: remote.parse().unwrap(), bytes_received: bytes }
}

fn tcp(inode: u64, port: u16, bytes: u64) -> Socket {
    socket(TCP, inode, &format!("198.18.1.11:{port}"), "198.19.0.1:443", Some(bytes))
}

fn quic(inode: u64, port: u16, server_port: u16) -> Socket {
    socket(UDP, inode, &format!("198.18.1.11:{port}"), &format!("198.19.0.1:{server_port}"), None)
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ports_of(chooser: &Chooser, sockets: &[Socket], servers: &[Server], now: Duration) -> Vec<(u32, u32, u32)> {
    let local = |_| Some("198.18.1.11".parse().unwrap());
    let flows = chooser.choose(sockets, servers, local, now);
    flows.iter().map(|flow| (flow.protocol, flow.client_port, flow.server_port)).collect()
}

fn ports(chooser: &Chooser, sockets: &[Socket], now: Duration) -> Vec<(u32, u32, u32)> {
    ports_of(chooser, sockets, &[SERVER], now)
}

fn observe(chooser: &mut Chooser, sockets: &[Socket], now: Duration) {
    chooser.observe(sockets, &[SERVER], now);
}

#[test]
fn of_several_connections_those_that_carry_the_bytes_are_reported() {
    let mut chooser = Chooser::default();
    let sockets = |second| [tcp(1, 4001, 325_000 * second), tcp(2, 4002, 900), tcp(3, 4003, 16_000 * second)];
    for second in 0..10 {
        observe(&mut chooser, &sockets(second), at(second));
    }
    // Sound has one of its own.
    assert_eq!(ports(&chooser, &sockets(9), at(9)), [(6, 4001, 443), (6, 4003, 443)]);
}

#[test]
fn a_new_connection_is_seen_before_the_next_report() {
    let mut chooser = Chooser::default();
    for second in 0..30 {
        observe(&mut chooser, &[tcp(1, 4001, 325_000 * second)], at(second));
    }
    // The old one is closed, and gone from the kernel's list; or it stays open beside the new one.
    let later = at(29) + Duration::from_millis(250);
    assert_eq!(ports(&chooser, &[tcp(9, 4009, 30_000)], later), [(6, 4009, 443)]);
    let both = [tcp(1, 4001, 325_000 * 29), tcp(9, 4009, 30_000)];
    assert!(ports(&chooser, &both, later).contains(&(6, 4009, 443)));
    observe(&mut chooser, &both, at(30));
    assert!(ports(&chooser, &both, at(30)).contains(&(6, 4009, 443)));
}

#[test]
fn a_player_that_rests_keeps_its_connections() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 9_000_000), tcp(2, 4002, 900)];
    observe(&mut chooser, &sockets, at(0));
    for second in 1..50 {
        chooser.observe(&sockets, &[server(1, Some(false))], at(second));
    }
    assert_eq!(ports(&chooser, &sockets, at(50)), [(6, 4001, 443)]);
}

#[test]
fn before_any_byte_all_connections_to_the_server_count() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 0), tcp(2, 4002, 0)];
    observe(&mut chooser, &sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), 2);
}

#[test]
fn what_arrives_while_a_session_asks_for_nothing_is_anothers() {
    let (mut paused, mut playing) = (Chooser::default(), Chooser::default());
    let first = [tcp(1, 4001, 3_000_000)];
    observe(&mut paused, &first, at(0));
    playing.observe(&first, &[server(1, Some(false))], at(0));
    for second in 1..40 {
        let sockets = [tcp(1, 4001, 3_000_000), tcp(2, 4002, 325_000 * second)];
        paused.observe(&sockets, &[server(1, Some(false))], at(second));
        observe(&mut playing, &sockets, at(second));
        assert_eq!(ports(&paused, &sockets, at(second)), [(6, 4001, 443)]);
        assert_eq!(ports(&playing, &sockets, at(second)), [(6, 4002, 443)]);
    }
}

#[test]
fn what_connections_carried_before_a_session_began_was_others() {
    let before = [tcp(1, 4001, 90_000_000)];
    let mut chooser = Chooser::after(&before, at(100));
    let sockets = [tcp(1, 4001, 90_000_400), tcp(2, 4002, 300_000)];
    observe(&mut chooser, &sockets, at(101));
    assert_eq!(ports(&chooser, &sockets, at(101)), [(6, 4002, 443)]);
}

#[test]
fn a_film_that_moves_to_another_host_leaves_the_old_connection_behind() {
    let mut chooser = Chooser::default();
    let other = |bytes| socket(TCP, 7, "198.18.1.11:5007", "198.19.0.2:443", Some(bytes));
    for second in 0..20 {
        observe(&mut chooser, &[tcp(1, 4001, 325_000 * second)], at(second));
    }
    for second in 20..60 {
        let sockets = [tcp(1, 4001, 325_000 * 19), other(325_000 * (second - 19))];
        let servers = [server(2, Some(true)), server(1, Some(false))];
        chooser.observe(&sockets, &servers, at(second));
        let found = ports_of(&chooser, &sockets, &servers, at(second));
        assert_eq!(found[0], (6, 5007, 443));
        // The old one may be used again; after half a minute it is not.
        assert_eq!(found.len(), if second < 52 { 2 } else { 1 }, "{second}");
    }
}

#[test]
fn quic_in_chromium_is_the_connected_udp_socket_with_its_own_port() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 3000), quic(2, 5001, 8443)];
    observe(&mut chooser, &sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)), [(17, 5001, 8443)]);
}

#[test]
fn a_silent_tcp_while_requests_are_open_means_quic() {
    let mut chooser = Chooser::default();
    observe(&mut chooser, &[tcp(1, 4001, 3_000_000), quic(2, 5001, 443)], at(0));
    // An idle QUIC socket does not hide the TCP connection that carries.
    let carrying = [tcp(1, 4001, 3_300_000), quic(2, 5001, 443)];
    observe(&mut chooser, &carrying, at(1));
    assert_eq!(ports(&chooser, &carrying, at(1)), [(6, 4001, 443)]);
    // Nor does a player that rests; from TCP to QUIC in mid-film it is known a second later.
    chooser.observe(&carrying, &[server(1, Some(false))], at(2));
    assert_eq!(ports(&chooser, &carrying, at(2)), [(6, 4001, 443)]);
    observe(&mut chooser, &carrying, at(3));
    assert_eq!(ports(&chooser, &carrying, at(3)), [(17, 5001, 443)]);
}

#[test]
fn what_the_page_says_of_the_protocol_counts_at_once() {
    let mut chooser = Chooser::default();
    let sockets = [tcp(1, 4001, 3_000_000), quic(2, 5001, 8443)];
    observe(&mut chooser, &sockets, at(0));
    let by = |http3| ports_of(&chooser, &sockets, &[Server { http3: Some(http3), ..SERVER }], at(0));
    assert_eq!((by(true), by(false)), (vec![(17, 5001, 8443)], vec![(6, 4001, 443)]));
}

#[test]
fn while_a_film_comes_by_tcp_and_quic_both_are_reported() {
    let told = |http3| [Server { http3: Some(http3), ..SERVER }];
    let mut chooser = Chooser::default();
    // The page came by TCP, the film by QUIC.
    let mut sockets = vec![tcp(1, 4001, 700_000), quic(2, 5001, 444)];
    chooser.observe(&sockets, &told(true), at(0));
    assert_eq!(ports_of(&chooser, &sockets, &told(true), at(0)), [(17, 5001, 444)]);
    // The browser opens anew: the first segment comes by TCP, while QUIC shakes hands.
    sockets.extend([tcp(3, 4003, 400_000), quic(4, 5004, 444)]);
    let both = [(17, 5001, 444), (17, 5004, 444), (6, 4003, 443)];
    assert_eq!(ports_of(&chooser, &sockets, &told(true), at(1)), both);
    chooser.observe(&sockets, &told(false), at(1));
    let mut said = ports_of(&chooser, &sockets, &told(false), at(1));
    said.sort_unstable_by_key(|(protocol, port, _)| (u32::MAX - protocol, *port));
    // The page's own, which brought much a second ago, counts when it is said that TCP is spoken.
    assert_eq!(said, [both[0], both[1], (6, 4001, 443), both[2]]);
    // Then all comes by QUIC.
    for second in 2..5 {
        chooser.observe(&sockets, &told(true), at(second));
    }
    assert_eq!(ports_of(&chooser, &sockets, &told(true), at(4)), both[..2]);
    // Or all by TCP, for good.
    for second in 5..9 {
        sockets[2] = tcp(3, 4003, 400_000 * second);
        chooser.observe(&sockets, &told(false), at(second));
    }
    assert!(ports_of(&chooser, &sockets, &told(false), at(8)).iter().all(|(protocol, ..)| *protocol == 6));
}

#[test]
fn quic_in_firefox_is_a_local_port_and_the_servers_address() {
    let chooser = Chooser::default();
    let mut sockets = vec![
        socket(UDP, 7, "[::]:5007", "[::]:0", None),
        socket(UDP, 8, "0.0.0.0:5353", "0.0.0.0:0", None),
        socket(UDP, 9, "127.0.0.1:5009", "0.0.0.0:0", None),
    ];
    assert_eq!(ports(&chooser, &sockets, at(0)), [(17, 5007, 443)]);
    // The page's own files came over TCP; its film by HTTP/3, from the port that was announced.
    sockets.push(tcp(1, 4001, 900_000));
    let told = Server { http3: Some(true), http3_port: Some(8443), ..SERVER };
    assert_eq!(ports_of(&chooser, &sockets, &[told], at(0)), [(17, 5007, 8443)]);
    assert_eq!(ports(&chooser, &sockets, at(0)), [(6, 4001, 443)]);
}

#[test]
fn connections_to_other_servers_are_not_reported() {
    let other = socket(TCP, 1, "198.18.1.11:4001", "198.19.0.2:443", Some(9_000_000));
    let mut chooser = Chooser::default();
    observe(&mut chooser, std::slice::from_ref(&other), at(0));
    assert!(ports(&chooser, &[other], at(0)).is_empty());
}

#[test]
fn where_the_kernel_tells_no_bytes_all_connections_to_the_server_count() {
    let mut chooser = Chooser::default();
    let sockets = [4001, 4002].map(|port| socket(TCP, port, &format!("198.18.1.11:{port}"), "198.19.0.1:443", None));
    observe(&mut chooser, &sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), 2);
}

#[test]
fn never_more_than_the_contract_allows() {
    let mut chooser = Chooser::default();
    let sockets: Vec<Socket> = (0..500_u16).map(|n| tcp(n.into(), 4000 + n, 1000)).collect();
    observe(&mut chooser, &sockets, at(0));
    assert_eq!(ports(&chooser, &sockets, at(0)).len(), MOST_FLOWS);
}
