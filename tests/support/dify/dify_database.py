"""Make databases with Dify's own tables, as its migrations leave them in several years, and fill them."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import NAMESPACE_OID, UUID, uuid5

import psycopg

NIL = str(UUID(int=0))
APP, ACCOUNT, TENANT = (str(uuid5(NAMESPACE_OID, name)) for name in ("app", "account", "tenant"))
BEGINNING = datetime(2025, 3, 1, 9)  # noqa: DTZ001 - Dify's columns have no zone
NUMBERS = itertools.count(1)

FIRST_TABLES = """
create table end_users (
    id uuid primary key, tenant_id uuid not null, app_id uuid, type varchar(255) not null,
    external_user_id varchar(255), name varchar(255), is_anonymous boolean not null default true,
    session_id varchar(255) not null,
    created_at timestamp not null default current_timestamp(0),
    updated_at timestamp not null default current_timestamp(0)
);
create table conversations (
    id uuid primary key, app_id uuid not null, app_model_config_id uuid, model_provider varchar(255),
    override_model_configs text, model_id varchar(255), mode varchar(255) not null, name varchar(255) not null,
    summary text, inputs json, introduction text, system_instruction text,
    system_instruction_tokens integer not null default 0, status varchar(255) not null,
    from_source varchar(255) not null, from_end_user_id uuid, from_account_id uuid,
    read_at timestamp, read_account_id uuid,
    created_at timestamp not null default current_timestamp(0),
    updated_at timestamp not null default current_timestamp(0)
);
create index conversation_app_from_user_idx on conversations (app_id, from_source, from_end_user_id);
create table messages (
    id uuid primary key, app_id uuid not null, model_provider varchar(255), model_id varchar(255),
    override_model_configs text, conversation_id uuid not null references conversations (id), inputs json,
    query text not null, message json not null, message_tokens integer not null default 0,
    message_unit_price numeric(10, 4) not null, answer text not null, answer_tokens integer not null default 0,
    answer_unit_price numeric(10, 4) not null, provider_response_latency double precision not null default 0,
    total_price numeric(10, 7), currency varchar(255) not null, from_source varchar(255) not null,
    from_end_user_id uuid, from_account_id uuid,
    created_at timestamp not null default current_timestamp(0),
    updated_at timestamp not null default current_timestamp(0),
    agent_based boolean not null default false
);
create index message_conversation_id_idx on messages (conversation_id);
create index message_app_id_idx on messages (app_id, created_at);
"""
FILES = """
create table upload_files (
    id uuid primary key, tenant_id uuid not null, storage_type varchar(255) not null, key varchar(255) not null,
    name varchar(255) not null, size integer not null, extension varchar(255) not null, mime_type varchar(255),
    created_by uuid not null, created_at timestamp not null default current_timestamp(0)
);
create table message_files (
    id uuid primary key, message_id uuid not null, type varchar(255) not null, transfer_method varchar(255) not null,
    url text, upload_file_id uuid, created_by_role varchar(255) not null, created_by uuid not null,
    created_at timestamp not null default current_timestamp(0)
);
create index message_file_message_idx on message_files (message_id);
alter table messages add column message_price_unit numeric(10, 7) not null default 0.001,
    add column answer_price_unit numeric(10, 7) not null default 0.001;
alter table conversations add column is_deleted boolean not null default false;
"""
WORKFLOWS = """
alter table message_files add column belongs_to varchar(255);
alter table messages add column workflow_run_id uuid, add column status varchar(255) not null default 'normal',
    add column error text, add column message_metadata text, add column invoke_from varchar(255);
alter table conversations add column invoke_from varchar(255), add column dialogue_count integer not null default 0;
"""
BRANCHES = """
alter table messages add column parent_message_id uuid;
create index message_created_at_idx on messages (created_at);
"""
NEWEST = """
alter table messages add column app_mode varchar(255), alter column inputs set not null;
alter table conversations alter column inputs set not null;
alter table end_users alter column session_id type text;
create index message_workflow_run_id_idx on messages (conversation_id, workflow_run_id);
"""
YEARS = {
    2023: FIRST_TABLES,
    "early 2024": FIRST_TABLES + FILES + WORKFLOWS,
    2025: FIRST_TABLES + FILES + WORKFLOWS + BRANCHES,
    2026: FIRST_TABLES + FILES + WORKFLOWS + BRANCHES + NEWEST,
}


def identify(name: str) -> str:
    """Give the id that a name of a test stands for."""
    return name if name == NIL else str(uuid5(NAMESPACE_OID, name))


class DifyDatabase:
    """One database with Dify's tables, to be written to as Dify does."""

    def __init__(self, dsn: str, year: int | str = 2026) -> None:
        self.dsn = dsn
        self._connection = psycopg.connect(dsn, autocommit=True)
        self.execute(YEARS[year])
        found = self._connection.execute(
            "select table_name, column_name from information_schema.columns where table_schema = 'public'"
        )
        self._columns = {tuple(row) for row in found}
        self.execute(
            "insert into end_users (id, tenant_id, type, session_id) values (%s, %s, 'service_api', 'li')",
            (identify("li"), TENANT),
        )

    def execute(self, statement: str, values: tuple | None = None) -> None:
        self._connection.execute(statement, values)

    def close(self) -> None:
        self._connection.close()

    def conversation(self, name: str, /, **more) -> str:
        """Write a conversation."""
        values = {
            "id": identify(name), "app_id": APP, "mode": "advanced-chat", "name": name, "inputs": "{}",
            "status": "normal", "from_source": "api", "from_end_user_id": identify("li"), "created_at": BEGINNING,
            "invoke_from": "service-api",
        }  # fmt: skip
        self._insert("conversations", values | more)
        return identify(name)

    def turn(self, conversation: str, name: str, parent: str | None = NIL, /, **more) -> str:
        """Write a question with its answer, a minute after the one before."""
        identity = identify(f"{conversation}/{name}")
        stated = parent if parent in {None, NIL, ""} else identify(f"{conversation}/{parent}")
        values = {
            "id": identity, "app_id": APP, "conversation_id": identify(conversation), "inputs": "{}",
            "query": f"q {name}", "message": json.dumps([{"role": "user", "text": name}]), "message_unit_price": 0,
            "answer": f"a {name}", "answer_tokens": 3, "answer_unit_price": 0, "currency": "USD", "from_source": "api",
            "from_end_user_id": identify("li"), "parent_message_id": stated,
            "created_at": BEGINNING + timedelta(minutes=next(NUMBERS)),
        }  # fmt: skip
        self._insert("messages", values | more)
        return identity

    def file(self, message: str, **more) -> str:
        """Write a file of a message."""
        number = next(NUMBERS)
        values = {
            "id": identify(f"file {number}"), "message_id": message, "type": "image", "transfer_method": "remote_url",
            "created_by_role": "end_user", "created_by": identify("li"),
            "created_at": BEGINNING + timedelta(minutes=number),
        }  # fmt: skip
        self._insert("message_files", values | more)
        return values["id"]

    def _insert(self, table: str, values: dict) -> None:
        """Insert a row with those of the values that this year has columns for."""
        known = {column: value for column, value in values.items() if (table, column) in self._columns}
        places = ", ".join(["%s"] * len(known))
        self.execute(f"insert into {table} ({', '.join(known)}) values ({places})", tuple(known.values()))


@contextmanager
def made_dify(cluster, year: int | str = 2026):
    """A database of Dify's that is gone afterwards."""
    name = f"dify_{next(NUMBERS)}"
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"create database {name}")
        made = DifyDatabase(cluster.dsn(name), year)
        yield made
        made.close()
        connection.execute(f"drop database {name} with (force)")


def fill_quickly(dify: DifyDatabase, conversations: int, turns: int) -> None:
    """Write many conversations, each one thread of so many turns, in Chinese and English."""
    dify.execute(
        """
        insert into conversations (id, app_id, mode, name, inputs, status, from_source, from_end_user_id, created_at)
        select md5('conversation ' || conversation)::uuid, %s, 'advanced-chat',
               'conversation ' || conversation, '{}', 'normal', 'api', %s,
               timestamp '2025-01-01' + conversation * interval '1 hour'
        from generate_series(1, %s) conversation
        """,
        (APP, identify("li"), conversations),
    )
    dify.execute(
        """
        insert into messages (id, app_id, conversation_id, inputs, query, message, message_unit_price, answer,
                              answer_tokens, answer_unit_price, currency, from_source, parent_message_id, created_at)
        select md5(conversation || '/' || turn)::uuid, %s, md5('conversation ' || conversation)::uuid, '{}',
               'Question ' || turn || ': ' || repeat('where shall we go tomorrow, 明天去哪里？ ', 3), '[]', 0,
               'Answer ' || turn || ': ' || repeat('To the museum near the river, 去河边的博物馆。 ', 12), 200, 0,
               'USD', 'api', case when turn > 1 then md5(conversation || '/' || turn - 1)::uuid end,
               timestamp '2025-01-01' + conversation * interval '1 hour' + turn * interval '1 minute'
        from generate_series(1, %s) conversation, generate_series(1, %s) turn
        """,
        (APP, conversations, turns),
    )


def fill_example(dify: DifyDatabase) -> None:
    """Write what the how-to imports: a conversation whose first question was repeated before the old branch went on."""
    dify.conversation("trip", name="周末去杭州", inputs='{"city": "杭州"}')
    first = dify.turn("trip", "1", None, query="I cannot eat peanuts. Where to in Hangzhou?", answer="To Lou Wai Lou.")
    dify.turn("trip", "2", "1", query="有素菜吗？", answer="有，龙井茶香豆腐。")
    dify.turn("trip", "3", None, query="I cannot eat peanuts. Where to in Hangzhou?", answer="To Zhi Wei Guan.")
    dify.turn("trip", "4", "3", query="Is it open late?", answer="Until nine.")
    dify.turn("trip", "5", "2", query="停车方便吗？", answer="停车场在孤山路。")
    dify.file(first, url="https://example.org/lake.png")
    dify.conversation("old", name="Before there were branches")
    for name in "123":
        dify.turn("old", name)
    dify.turn("old", "4", answer="", answer_tokens=0, status="error", error="The model did not answer.")
    dify.conversation("gone", is_deleted=True)
    dify.turn("gone", "1", None)
