//! A network of its own for one host on this machine, connected with the tests by a virtual cable.

use std::net::Ipv4Addr;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// For tests of networks (RFC 2544): used by no machine.
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Each cable has four addresses.
const CABLES: u32 = 1 << 15;

/// A network namespace of Linux that only root can create. It is removed when it is dropped.
pub(crate) struct Namespace {
    name: String,
    /// The end of the cable that is not in the namespace.
    cable: String,
    gateway: Ipv4Addr,
    address: Ipv4Addr,
}

impl Namespace {
    /// `None`: this user may not create one.
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let first = NETWORK + process.wrapping_mul(8).wrapping_add(number) % CABLES * 4;
        let (name, cable) = (format!("agent-cli-{process}-{number}"), format!("ac{process}n{number}"));
        if !ip(&["netns", "add", &name]) {
            return None;
        }
        let host = Self { name, cable, gateway: Ipv4Addr::from(first + 1), address: Ipv4Addr::from(first + 2) };
        let (gateway, address) = (format!("{}/30", host.gateway), format!("{}/30", host.address));
        let steps: [&[&str]; 6] = [
            &["link", "add", &host.cable, "type", "veth", "peer", "name", "eth0", "netns", &host.name],
            &["addr", "add", &gateway, "dev", &host.cable],
            &["link", "set", &host.cable, "up"],
            &["-n", &host.name, "addr", "add", &address, "dev", "eth0"],
            &["-n", &host.name, "link", "set", "eth0", "up"],
            &["-n", &host.name, "link", "set", "lo", "up"],
        ];
        steps.iter().all(|step| ip(step)).then_some(host)
    }

    /// What is outside of it, as its host sees it.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.gateway
    }

    /// The command before whose program and arguments stand those of a command that is to run in it.
    pub(crate) fn enter(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net=/run/netns/{}", self.name)]
    }

    /// Lets no packet pass.
    pub(crate) fn is_cut_off(&self, is_cut_off: bool) {
        let state = if is_cut_off { "down" } else { "up" };
        assert!(ip(&["link", "set", &self.cable, state]), "the cable {state}");
    }

    /// What it sends arrives, and what is sent to it is lost: it goes to another device.
    pub(crate) fn hears_nothing(&self, nothing: bool) {
        let address = self.address.to_string();
        let to_another = ["neigh", "replace", &address, "lladdr", "02:00:00:00:00:01", "dev", &self.cable];
        let as_before = ["neigh", "del", &address, "dev", &self.cable];
        let changed = if nothing { ip(&to_another) } else { ip(&as_before) };
        assert!(changed, "the table of neighbors can be changed");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["link", "del", &self.cable]);
        ip(&["netns", "del", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}
