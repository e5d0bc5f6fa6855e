"""Jobs that leave a trail: who has done what, how often and in which order, whatever happens to the workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg

from support.programs.programs import plain_environment

SCRIPT = Path(__file__).with_name("trail_worker.py")
DEFER = """select procrastinate_defer_jobs_v1(array_agg(row(
        'trail', 'trail', 0, 'trail:' || scope_id, null,
        jsonb_build_object('scope_id', scope_id, 'number', number), null
    )::procrastinate_job_to_defer_v1 order by number))
    from (
        select number, (1::bigint << 40) + 1 + number %% %s as scope_id from generate_series(%s::int, %s) number
    ) wanted"""
TWICE = "select count(*) - count(distinct (scope_id, number)) from trail"
OUT_OF_ORDER = """select count(*) from (
        select number < lag(number) over (partition by scope_id order by id) as back from trail
    ) steps where back"""
UNDONE = "select count(*) from procrastinate_jobs where task_name in ('trail', 'enrich')"
RUNNING = f"{UNDONE} and status = 'doing'"


def lay_trail(owner: psycopg.Connection) -> None:
    """Make a table in which every effect leaves a row, whoever leaves it."""
    owner.execute("create table trail (id bigserial primary key, scope_id bigint, number integer)")
    owner.execute("grant insert on trail to recollect_service")
    owner.execute("grant usage on sequence trail_id_seq to recollect_service")
    # A job that is done is gone: what it was is kept here.
    owner.execute("create table ended (attempts integer)")
    owner.execute(
        "create function keep_ended() returns trigger language plpgsql security definer as $$ begin "
        "if old.task_name in ('trail', 'enrich') then insert into public.ended values (old.attempts); end if; "
        "return old; end $$"
    )
    owner.execute(
        "create trigger keep_ended after delete on procrastinate_jobs for each row execute function keep_ended()"
    )
    owner.execute("insert into tenants (name) values ('default')")
    owner.execute("delete from procrastinate_jobs")


def ask(owner: psycopg.Connection, statement: str) -> int:
    return owner.execute(statement).fetchone()[0]


def start_worker(
    dsn: str, guard: str, pauses: tuple[float, float], more: Mapping[str, str] = {}, chat_url: str = ""
) -> subprocess.Popen:
    """Start a worker that thinks for a while over every job; what else its environment has is given."""
    command = [sys.executable, str(SCRIPT), dsn, guard, *map(str, pauses), chat_url]
    environment = plain_environment() | more
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def end_worker(worker: subprocess.Popen) -> None:
    """Kill a worker, whatever it is doing."""
    worker.kill()
    worker.wait()
    worker.stdout.close()
