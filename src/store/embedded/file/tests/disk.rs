//! A disk that loses its power: of what was not synced, a random part survives.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::store::embedded::file::{FileId, StagedOp};

/// The unit that a disk writes at once or not at all.
const SECTOR: usize = 512;

static DISKS: LazyLock<Mutex<HashMap<FileId, State>>> = LazyLock::new(Mutex::default);

fn disks() -> MutexGuard<'static, HashMap<FileId, State>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk that one file is on, until this is dropped.
pub struct Disk(FileId);

/// When the power fails: at one of the next steps, from 0.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Never,
    /// At this one.
    Step(u64),
    /// At this one of the syncs.
    Sync(u64),
    Past,
}

struct State {
    /// The content that is safe.
    durable: Vec<u8>,
    /// The steps since the last sync.
    pending: Vec<StagedOp<'static>>,
    when: When,
}

impl Disk {
    /// The disk of a file whose content is safe.
    pub fn new(id: FileId, durable: Vec<u8>, when: When) -> Self {
        disks().insert(id, State { durable, pending: Vec::new(), when });
        Self(id)
    }

    /// Changes when the power fails, unless it has failed already.
    pub fn fail_at(&self, when: When) {
        if let Some(disk) = disks().get_mut(&self.0).filter(|disk| !disk.has_failed()) {
            disk.when = when;
        }
    }

    pub fn has_failed(&self) -> bool {
        disks()[&self.0].has_failed()
    }

    /// Ends the power now, unless it has failed already. Returns what a file has when the power is
    /// back.
    pub fn fail(&self, random: &mut Random) -> Vec<u8> {
        let mut disks = disks();
        let disk = disks.get_mut(&self.0).expect("a disk");
        disk.when = When::Past;
        disk.survivors(random)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        disks().remove(&self.0);
    }
}

thread_local! {
    /// When the disk of the next file fails that this thread writes.
    static NEXT: Cell<Option<When>> = const { Cell::new(None) };
    /// That file.
    static ADOPTED: Cell<Option<FileId>> = const { Cell::new(None) };
}

/// The disk of the next file that this thread writes, which is new, until this is dropped.
pub struct NextDisk;

impl NextDisk {
    pub fn new(when: When) -> Self {
        NEXT.set(Some(when));
        Self
    }

    /// Whether this content, and nothing else, is safe.
    pub fn is_safe(&self, content: &[u8]) -> bool {
        let id = ADOPTED.get().expect("a file that was written");
        let disk = &disks()[&id];
        disk.durable == content && disk.pending.is_empty()
    }
}

impl Drop for NextDisk {
    fn drop(&mut self) {
        NEXT.take();
        ADOPTED.take().map(|id| disks().remove(&id));
    }
}

/// Takes a step of a file; an error where its disk has no power. The step at which the power fails
/// may be done in part.
pub(in super::super) fn record(id: FileId, step: &StagedOp<'_>) -> io::Result<()> {
    let mut disks = disks();
    if let Some(when) = NEXT.take() {
        ADOPTED.set(Some(id));
        disks.insert(id, State { durable: Vec::new(), pending: Vec::new(), when });
    }
    let Some(disk) = disks.get_mut(&id) else { return Ok(()) };
    if disk.has_failed() {
        return Err(io::Error::other("the power is off"));
    }
    disk.when = disk.when.after(step);
    match step {
        _ if disk.has_failed() => {
            disk.pending.push(step.clone().into_owned());
            return Err(io::Error::other("the power fails"));
        }
        StagedOp::Sync => {
            for step in std::mem::take(&mut disk.pending) {
                step.write_to(&mut disk.durable);
            }
        }
        _ => disk.pending.push(step.clone().into_owned()),
    }
    Ok(())
}

impl When {
    /// The state after a step.
    fn after(self, step: &StagedOp<'_>) -> Self {
        match (self, step) {
            (Self::Step(left), _) => left.checked_sub(1).map_or(Self::Past, Self::Step),
            (Self::Sync(left), StagedOp::Sync) => {
                left.checked_sub(1).map_or(Self::Past, Self::Sync)
            }
            (same, _) => same,
        }
    }
}

impl StagedOp<'_> {
    fn write_to(&self, content: &mut Vec<u8>) {
        match self {
            Self::Resize(length) => content.resize(*length as usize, 0),
            Self::Write(at, data) => {
                let (at, end) = (*at as usize, *at as usize + data.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[at..end].copy_from_slice(data);
            }
            Self::Sync => {}
        }
    }
}

/// The fate of steps that were not synced.
#[derive(Clone, Copy)]
enum Fate {
    Lost,
    Staged,
    Mixed,
}

impl State {
    fn has_failed(&self) -> bool {
        matches!(self.when, When::Past)
    }

    fn survivors(&self, random: &mut Random) -> Vec<u8> {
        let fate = match random.below(6) {
            0 => Fate::Lost,
            1 => Fate::Staged,
            _ => Fate::Mixed,
        };
        let mut content = self.durable.clone();
        for step in &self.pending {
            match (fate, step) {
                (Fate::Lost, _) => {}
                (Fate::Mixed, StagedOp::Write(at, data)) => tear(*at, data, &mut content, random),
                (Fate::Mixed, _) if random.below(2) == 0 => {}
                _ => step.write_to(&mut content),
            }
        }
        content
    }
}

/// Writes all, nothing or a part: some of the sectors, or the bytes before or after one place.
fn tear(at: u64, data: &[u8], content: &mut Vec<u8>, random: &mut Random) {
    let mut keep = |from: usize, to: usize| {
        let at = at + from as u64;
        // A write does not show beyond a length that was lost.
        let to = to.min((content.len() as u64).saturating_sub(at) as usize + from);
        if from < to {
            StagedOp::Write(at, Cow::Borrowed(&data[from..to])).write_to(content);
        }
    };
    let cut = random.below(data.len() + 1);
    match random.below(6) {
        0 => {}
        1 | 2 => keep(0, data.len()),
        3 => keep(0, cut),
        4 => keep(cut, data.len()),
        _ => {
            for sector in (0..data.len()).step_by(SECTOR).filter(|_| random.below(2) == 0) {
                keep(sector, (sector + SECTOR).min(data.len()));
            }
        }
    }
}

/// Random numbers that are the same for the same seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
