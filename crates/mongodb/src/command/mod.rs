//! Commands with a time limit, whose replies are read completely. The driver's own writes have no
//! limit, so that a shard that hangs would keep their connections; and it does not read the replies
//! of raw commands.

pub mod run;
pub mod write;
