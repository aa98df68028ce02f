//! A table with a unique index in PostgreSQL, called by pgbench.

use std::path::Path;

use crate::Fallible;
use crate::Options;
use crate::postgres::{Postgres, Programs};
use crate::run::{LOW_CONCURRENCIES, Run};

const USERS: u64 = 1_000_000;

/// Creates and fills the tables. `{last}` is the number of the last user.
const LOAD: &str = "
create table users (id uuid primary key, body bytea not null);
create table identities (key text primary key, user_id uuid not null);
insert into users
  select md5('u' || n)::uuid, decode(repeat(md5(n::text), 20), 'hex')
  from generate_series(0, {last}) n;
insert into identities
  select 'default,' || kind || ',' || n, md5('u' || n)::uuid
  from generate_series(0, {last}) n, unnest(array['email', 'handle', 'social']) kind;
vacuum analyze users;
vacuum analyze identities;
checkpoint;
";
const RESOLVE: &str = "
\\set n random(0, {last})
select u.id, u.body from identities i join users u on u.id = i.user_id
  where i.key = 'default,handle,' || :n;
";
const CREATE: &str = "
\\set n random(1000000000000, 1000000000000000000)
begin;
insert into users values (md5('u' || :n)::uuid, decode(repeat(md5(:n::text), 20), 'hex'));
insert into identities
  select 'default,' || kind || ',' || :n, md5('u' || :n)::uuid
  from unnest(array['email', 'handle', 'social']) kind;
commit;
";

pub fn run(options: &Options, polynym: &Path, programs: &Programs) -> Fallible<()> {
    let mut run = Run::new("postgresql", options, polynym, USERS)?;
    // pgbench measures whole seconds, and does not warm up.
    run.settings.duration_seconds = run.settings.duration_seconds.ceil();
    run.settings.warmup_seconds = 0.0;
    let postgres = Postgres::start(programs, run.folder())?;
    let last = (run.settings.users - 1).to_string();
    eprintln!("postgresql: loading {} users", run.settings.users);
    postgres.execute(&LOAD.replace("{last}", &last))?;

    for (subject, script) in [("resolve", RESOLVE), ("create", CREATE)] {
        let script = script.replace("{last}", &last);
        for round in 1..=run.settings.rounds {
            eprintln!("postgresql: {subject}, round {round}");
            for concurrency in LOW_CONCURRENCIES {
                let seconds = run.settings.duration_seconds as u64;
                let per_second = postgres.bench(&script, concurrency, seconds)?;
                run.note_calls(subject, concurrency, per_second);
            }
        }
    }
    run.finish(Some(postgres.version()?))
}
