//! Which process and node the ids of a generator name: what the caller gives, what the machine
//! tells, or random numbers.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use super::id::Origin;

/// Whether a generator of this process has taken the machine's own process id and node.
static MACHINE_TAKEN: AtomicBool = AtomicBool::new(false);

/// The origin for a new generator. What is not given comes from the machine, or is drawn at random:
/// always when `random` is set, else when the machine's own values would not tell generators apart.
pub(super) fn choose(process_id: Option<u16>, node: Option<u32>, random: bool) -> Origin {
    if let (Some(process_id), Some(node)) = (process_id, node) {
        return Origin::new(process_id, node);
    }
    let (own_process_id, own_node) = match machine() {
        Some(own) if !random && !MACHINE_TAKEN.swap(true, Ordering::Relaxed) => own,
        _ => drawn(),
    };
    Origin::new(process_id.unwrap_or(own_process_id), node.unwrap_or(own_node))
}

/// The name of Linux's first namespace of process ids (`PROC_PID_INIT_INO` in its `proc_ns.h`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The last 16 bits of the process id and the node from a MAC, where both are worth something: in a
/// container process ids begin again, and with the host's network its MAC is not its own either.
fn machine() -> Option<(u16, u32)> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let node = node_of_interfaces(Path::new("/sys/class/net"))?;
    counts_process_ids(&namespace).then_some((process::id() as u16, node))
}

/// Whether process ids of this namespace are those of the machine.
pub(super) fn counts_process_ids(namespace: &Path) -> bool {
    namespace == Path::new(FIRST_NAMESPACE)
}

/// The node of the first interface, by name, that has a usable MAC. `folder` has a folder for each
/// interface, as Linux shows them; on other systems there is none, so no MAC is found.
pub(super) fn node_of_interfaces(folder: &Path) -> Option<u32> {
    let interfaces = fs::read_dir(folder).ok()?.flatten();
    let mut addresses: Vec<_> =
        interfaces.map(|interface| interface.path().join("address")).collect();
    addresses.sort();
    addresses
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .find_map(|text| node_of_mac(text.trim()))
}

/// The last 28 bits of a MAC written as `00:1b:21:3c:9d:f8`.
///
/// None for text that is not one, and for addresses that no maker has given to one card alone:
/// group addresses and locally administered ones (the last two bits of the first byte, IEEE 802),
/// and those whose bits are all zero.
pub(super) fn node_of_mac(text: &str) -> Option<u32> {
    let byte = |part| u8::from_str_radix(part, 16).ok();
    let bytes: Vec<u8> = text.split(':').map(byte).collect::<Option<_>>()?;
    let mac: [u8; 6] = bytes.try_into().ok()?;
    let made_up = mac[0] & 0b11 != 0 || mac == [0; 6];
    (!made_up).then_some(u32::from_be_bytes([mac[2], mac[3], mac[4], mac[5]]) & 0x0fff_ffff)
}

fn drawn() -> (u16, u32) {
    let bits = random_bits();
    (bits as u16, (bits >> 32) as u32)
}

/// 64 random bits of the operating system.
///
/// # Panics
/// The operating system has no source of random bytes.
pub(super) fn random_bits() -> u64 {
    getrandom::u64().expect("the operating system has a source of random bytes")
}
