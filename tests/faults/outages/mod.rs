//! Killed, frozen, isolated and replaced servers.

mod dead_servers;
mod failover;
mod frozen_shard;
mod health;
mod killed_server;
mod missing_shard;
mod partition;
mod recovered_commits;
mod routers;
mod silent_shard;
mod two_phase_commit;
