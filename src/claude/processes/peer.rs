//! Which processes are at the other end of a connection from this machine.

use std::net::SocketAddr;

use rustix::process::Pid;

use crate::claude::processes::process_table;

/// The processes that hold the other end of a TCP connection. Empty if the system does not show them: it is on another machine,
/// or belongs to another user.
pub(crate) fn of_connection(peer: SocketAddr, own: SocketAddr) -> Vec<Pid> {
    system::inode(peer, own).map(system::holders).unwrap_or_default()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::{Pid, process_table};

    /// The number of the peer's socket.
    pub(super) fn inode(peer: SocketAddr, own: SocketAddr) -> Option<u64> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
        let (peer, own) = (plain(peer), plain(own));
        tables.filter_map(|table| fs::read_to_string(table).ok()).find_map(|table| row(&table, peer, own))
    }

    fn row(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<u64> {
        let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let is_meant = |row: &Vec<&str>| row.len() > 9 && address(row[1]) == Some(peer) && address(row[2]) == Some(own);
        rows.filter(is_meant).find_map(|row| row[9].parse().ok().filter(|inode| *inode != 0))
    }

    /// The kernel writes an address as numbers of 32 bits in the order of this machine.
    fn address(text: &str) -> Option<SocketAddr> {
        let (address, port) = text.split_once(':')?;
        let words = (0..address.len()).step_by(8).map(|at| u32::from_str_radix(address.get(at..at + 8)?, 16).ok());
        let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
        let ip = match (<[u8; 4]>::try_from(&*bytes), <[u8; 16]>::try_from(&*bytes)) {
            (Ok(short), _) => IpAddr::V4(Ipv4Addr::from(short)),
            (_, Ok(long)) => IpAddr::V6(Ipv6Addr::from(long)),
            _ => return None,
        };
        Some(plain(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
    }

    /// The same address without the form in which IPv6 sockets show one of IPv4.
    fn plain(address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// The processes that have this socket open.
    pub(super) fn holders(inode: u64) -> Vec<Pid> {
        let name = format!("socket:[{inode}]");
        let holds = |pid: &Pid| {
            let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
            let mut targets = open.filter_map(|file| fs::read_link(file.path()).ok());
            targets.any(|target| target.to_str() == Some(&name))
        };
        process_table::all().into_iter().filter(holds).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::net::SocketAddr;

    use super::Pid;

    pub(super) fn inode(_: SocketAddr, _: SocketAddr) -> Option<u64> {
        None
    }

    pub(super) fn holders(_: u64) -> Vec<Pid> {
        Vec::new()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process;

    use super::*;

    #[test]
    fn the_process_at_the_other_end_is_found() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(local) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let found = of_connection(client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert!(found.iter().any(|pid| pid.as_raw_nonzero().get().unsigned_abs() == process::id()), "{local}");
            assert_eq!(of_connection(client.peer_addr().unwrap(), "127.0.0.1:1".parse().unwrap()), []);
        }
    }
}
