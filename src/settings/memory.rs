//! The memory that the server may use: the limit of its control group, which containers and service
//! managers set.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The groups of this process.
const GROUPS: &str = "/proc/self/cgroup";
/// The folder in which systems mount the limits of groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// The smallest and the largest default of the cache.
const CACHE_BYTES: [u64; 2] = [1 << 20, 1 << 30];

/// The default of the cache of the embedded store: a quarter of the limit, at most 1 GiB.
pub fn cache_bytes() -> usize {
    let groups = fs::read_to_string(GROUPS).unwrap_or_default();
    quarter(limit(&groups, Path::new(MOUNT)))
}

fn quarter(limit: Option<u64>) -> usize {
    let [least, most] = CACHE_BYTES;
    let bytes = limit.map_or(most, |limit| (limit / 4).clamp(least, most));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The lowest limit of the groups in a text such as that of [`GROUPS`], in bytes: limits of the
/// groups around a group hold for it, too.
fn limit(groups: &str, mount: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (controllers, group) = (parts.nth(1)?, parts.next()?);
        let (root, file) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            all if all.split(',').any(|one| one == "memory") => {
                (mount.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        limit_within(&root, group, file)
    });
    limits.min()
}

/// The lowest limit of a group and those around it. In a container, the mount may begin at the
/// group of the container, whose path outside the text has nonetheless.
fn limit_within(root: &Path, group: &str, file: &str) -> Option<u64> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let path: PathBuf = Path::new(group).components().filter(is_name).collect();
    let read = |part: &Path| {
        // A group without a limit has the text "max", or a number near the maximum.
        fs::read_to_string(root.join(part).join(file)).ok()?.trim().parse::<u64>().ok()
    };
    path.ancestors().filter_map(read).min()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{limit, quarter};

    /// The limit of groups whose files have these texts.
    fn found(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let mount = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = mount.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        limit(groups, mount.path())
    }

    #[test]
    fn the_lowest_limit_around_a_group_counts() {
        let groups = "0::/system.slice/polynym.service\n";
        let own = "system.slice/polynym.service/memory.max";
        let around = "system.slice/memory.max";
        assert_eq!(found(groups, &[(own, "2147483648"), (around, "max")]), Some(2 << 30));
        assert_eq!(found(groups, &[(own, "2147483648"), (around, "1048576")]), Some(1 << 20));
        assert_eq!(found(groups, &[(own, "max"), (around, "max")]), None);
        assert_eq!(found(groups, &[("elsewhere/memory.max", "1048576")]), None);
        assert_eq!(found("0::/../../outside\n", &[("memory.max", "4096")]), Some(4096));
    }

    #[test]
    fn both_versions_of_groups_are_read() {
        let groups = "12:pids:/docker/1f\n5:cpu,memory:/docker/1f\n1:name=systemd:/\n0::/\n";
        let in_container = ("memory/memory.limit_in_bytes", "536870912");
        assert_eq!(found(groups, &[in_container]), Some(512 << 20));
        let outside = ("memory/docker/1f/memory.limit_in_bytes", "268435456");
        assert_eq!(found(groups, &[in_container, outside]), Some(256 << 20));
        let unlimited = ("memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(quarter(found(groups, &[unlimited])), 1 << 30);
        assert_eq!(found("5:memory_x:/\nnonsense\n\n", &[in_container]), None);
    }

    #[test]
    fn the_cache_takes_a_quarter_within_bounds() {
        assert_eq!(quarter(None), 1 << 30);
        assert_eq!(quarter(Some(512 << 20)), 128 << 20);
        assert_eq!(quarter(Some(64 << 30)), 1 << 30);
        assert_eq!(quarter(Some(0)), 1 << 20);
    }
}
