//! The process and node fields of a generator: configured, from the machine, or random.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use super::id::Origin;

/// Whether a generator of this process uses the machine's process id and node.
static MACHINE_TAKEN: AtomicBool = AtomicBool::new(false);

/// The origin of a new generator. Fields that are not configured come from the machine, or are
/// random: if `random` is set, or if the machine's values would not distinguish generators.
pub(super) fn choose(process_id: Option<u16>, node: Option<u32>, random: bool) -> Origin {
    if let (Some(process_id), Some(node)) = (process_id, node) {
        return Origin::new(process_id, node);
    }
    let (own_process_id, own_node) = match machine() {
        Some(own) if !random && !MACHINE_TAKEN.swap(true, Ordering::Relaxed) => own,
        _ => random_fields(),
    };
    Origin::new(process_id.unwrap_or(own_process_id), node.unwrap_or(own_node))
}

/// Linux's first namespace of process ids (`PROC_PID_INIT_INO` in its `proc_ns.h`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The last 16 bits of the process id, and the node of a MAC, outside containers: containers
/// restart process ids, and may share the MAC of the host.
fn machine() -> Option<(u16, u32)> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let node = node_of_interfaces(Path::new("/sys/class/net"))?;
    is_first_namespace(&namespace).then_some((process::id() as u16, node))
}

/// Whether this is the machine's first namespace of process ids.
pub(super) fn is_first_namespace(namespace: &Path) -> bool {
    namespace == Path::new(FIRST_NAMESPACE)
}

/// The node of the first interface, by name, with a usable MAC. `folder` has a folder for each
/// interface, as on Linux; other systems have none.
pub(super) fn node_of_interfaces(folder: &Path) -> Option<u32> {
    let mut address_files: Vec<_> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|interface| interface.path().join("address"))
        .collect();
    address_files.sort();
    address_files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .find_map(|text| node_of_mac(text.trim()))
}

/// The last 28 bits of a MAC such as `00:1b:21:3c:9d:f8`.
///
/// None for malformed text, and for addresses that are not unique to a card: group and locally
/// administered addresses (the last two bits of the first byte, IEEE 802), and zero.
pub(super) fn node_of_mac(text: &str) -> Option<u32> {
    let byte = |part| u8::from_str_radix(part, 16).ok();
    let bytes: Vec<u8> = text.split(':').map(byte).collect::<Option<_>>()?;
    let mac: [u8; 6] = bytes.try_into().ok()?;
    let is_unique = mac[0] & 0b11 == 0 && mac != [0; 6];
    is_unique.then_some(u32::from_be_bytes([mac[2], mac[3], mac[4], mac[5]]) & 0x0fff_ffff)
}

fn random_fields() -> (u16, u32) {
    let bits = random_bits();
    (bits as u16, (bits >> 32) as u32)
}

/// 64 random bits from the operating system.
///
/// # Panics
/// The operating system has no source of random bytes.
pub(super) fn random_bits() -> u64 {
    getrandom::u64().expect("the operating system has a source of random bytes")
}
