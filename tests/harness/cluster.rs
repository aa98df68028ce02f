//! The sharded cluster: what drivers see of it, and what its shards do.
