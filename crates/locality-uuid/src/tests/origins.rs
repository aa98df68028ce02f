//! Tests of the process and node fields.

use std::fs;
use std::path::Path;

use crate::generator::{Generator, Mode};
use crate::origin::{is_first_namespace, node_of_interfaces, node_of_mac};

#[test]
fn the_node_is_the_last_28_bits_of_a_unique_mac() {
    assert_eq!(node_of_mac("00:1b:2d:53:7a:50"), Some(0xd53_7a50));
    assert_eq!(node_of_mac("3C:22:FB:FF:FF:FF"), Some(0xbff_ffff));
}

#[test]
fn other_macs_are_ignored() {
    let unusable = [
        "00:00:00:00:00:00",
        "02:42:ac:11:00:02",
        "52:54:00:12:34:56",
        "01:00:5e:00:00:01",
        "ff:ff:ff:ff:ff:ff",
        "",
        "00:1b:2d:53:7a",
        "00:1b:2d:53:7a:50:00:01",
        "00:1b:2d:53:7a:xx",
        "001b2d537a50",
    ];
    for mac in unusable {
        assert_eq!(node_of_mac(mac), None, "{mac}");
    }
}

#[test]
fn the_first_usable_interface_by_name_is_used() {
    let folder = std::env::temp_dir().join(format!("polynym-interfaces-{}", std::process::id()));
    let interfaces = [
        ("docker0", "02:42:ac:11:00:02\n"),
        ("eth1", "00:1b:2d:00:00:02\n"),
        ("eth0", "00:1b:2d:00:00:01\n"),
        ("lo", "00:00:00:00:00:00\n"),
    ];
    for (name, mac) in interfaces {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("address"), mac).unwrap();
    }
    fs::create_dir_all(folder.join("bond")).unwrap();

    let found = node_of_interfaces(&folder);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found, Some(0xd00_0001));
    assert_eq!(node_of_interfaces(&folder), None);
}

#[test]
fn only_the_first_namespace_is_used() {
    assert!(is_first_namespace(Path::new("pid:[4026531836]")));
    assert!(!is_first_namespace(Path::new("pid:[4026532281]")));
}

#[test]
fn configured_fields_are_written() {
    let ids = Generator::builder(Mode::Variable).process_id(0xffff).node(0x7fff_fff1).build();
    let id = ids.next_id();
    assert_eq!(id.process_id(), Some(0xffff));
    assert_eq!(id.node(), Some(0xfff_fff1));
}

#[test]
fn generators_of_one_process_differ_in_process_or_node() {
    let mut origins: Vec<_> = (0..1_000)
        .map(|_| Generator::new(Mode::Sequential).next_id())
        .map(|id| (id.process_id(), id.node()))
        .collect();
    origins.sort();
    origins.dedup();
    assert_eq!(origins.len(), 1_000);
}

#[test]
fn random_fields_use_all_their_bits() {
    let ids = (0..200).map(|_| {
        let ids = Generator::builder(Mode::Variable).random_origin().build();
        ids.next_id()
    });
    let (mut ones, mut zeros) = ((0, 0), (0, 0));
    for id in ids {
        let (process_id, node) = (id.process_id().unwrap(), id.node().unwrap());
        ones = (ones.0 | process_id, ones.1 | node);
        zeros = (zeros.0 | !process_id, zeros.1 | !node & 0x0fff_ffff);
    }
    assert_eq!(ones, (0xffff, 0x0fff_ffff));
    assert_eq!(zeros, (0xffff, 0x0fff_ffff));
}

#[test]
fn a_configured_node_is_combined_with_a_random_process_id() {
    let drawn = || {
        let ids = Generator::builder(Mode::Variable).node(7).random_origin();
        ids.build().next_id()
    };
    let ids: Vec<_> = (0..20).map(|_| drawn()).collect();
    assert!(ids.iter().all(|id| id.node() == Some(7)));
    assert!(ids.iter().any(|id| id.process_id() != ids[0].process_id()));
}
