//! A disk that loses power: a random part of the unsynced writes survives.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::file::lock::FileId;
use crate::file::store_file::StagedOp;

/// The unit of an atomic write of the disk.
const SECTOR: usize = 512;

static DISKS: LazyLock<Mutex<HashMap<FileId, State>>> = LazyLock::new(Mutex::default);

fn disks() -> MutexGuard<'static, HashMap<FileId, State>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk of one file, until this is dropped.
pub struct Disk(FileId);

/// The time when the power fails: at one of the next steps, from 0.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Never,
    /// At this step.
    Step(u64),
    /// At this one of the syncs.
    Sync(u64),
    Past,
}

struct State {
    /// The content that survives.
    durable: Vec<u8>,
    /// The steps since the last sync.
    pending: Vec<StagedOp<'static>>,
    when: When,
}

impl Disk {
    /// The disk of a file whose content is durable.
    pub fn new(id: FileId, durable: Vec<u8>, when: When) -> Self {
        disks().insert(id, State { durable, pending: Vec::new(), when });
        Self(id)
    }

    /// Changes when the power fails, unless it has failed.
    pub fn fail_at(&self, when: When) {
        if let Some(disk) = disks().get_mut(&self.0).filter(|disk| !disk.has_failed()) {
            disk.when = when;
        }
    }

    pub fn has_failed(&self) -> bool {
        disks()[&self.0].has_failed()
    }

    /// Cuts the power now, unless it has failed. Returns the file's content once power is back.
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
    /// The time when power fails for the next file that this thread writes.
    static NEXT: Cell<Option<When>> = const { Cell::new(None) };
    /// That file.
    static ADOPTED: Cell<Option<FileId>> = const { Cell::new(None) };
}

/// The disk of the next new file that this thread writes, until this is dropped.
pub struct NextDisk;

impl NextDisk {
    pub fn new(when: When) -> Self {
        NEXT.set(Some(when));
        Self
    }

    /// Whether the durable content is this, and no write is pending.
    pub fn is_durable(&self, content: &[u8]) -> bool {
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

/// Records a step of a file. Fails if its disk has no power. The step at which the power fails may
/// take effect in part.
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
    /// The time when the power fails, counted after a step.
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
            Self::Write(offset, data) => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(data);
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
                (Fate::Mixed, StagedOp::Write(offset, data)) => {
                    tear(*offset, data, &mut content, random)
                }
                (Fate::Mixed, _) if random.below(2) == 0 => {}
                _ => step.write_to(&mut content),
            }
        }
        content
    }
}

/// Writes all, nothing or a part: some of the sectors, or the bytes before or after an offset.
fn tear(offset: u64, data: &[u8], content: &mut Vec<u8>, random: &mut Random) {
    let mut write = |from: usize, to: usize| {
        let start = offset + from as u64;
        // A write does not show beyond a length that was lost.
        let end = to.min((content.len() as u64).saturating_sub(start) as usize + from);
        if from < end {
            StagedOp::Write(start, Cow::Borrowed(&data[from..end])).write_to(content);
        }
    };
    let cut = random.below(data.len() + 1);
    match random.below(6) {
        0 => {}
        1 | 2 => write(0, data.len()),
        3 => write(0, cut),
        4 => write(cut, data.len()),
        _ => {
            for sector in (0..data.len()).step_by(SECTOR).filter(|_| random.below(2) == 0) {
                write(sector, (sector + SECTOR).min(data.len()));
            }
        }
    }
}

/// Random numbers that are the same for the same seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let halfway = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (halfway ^ halfway >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
