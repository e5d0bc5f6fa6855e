"""Plans as the service gets them: of statements prepared as it prepares them, whether they see values or not."""

from __future__ import annotations

import json
from contextlib import contextmanager

import psycopg

MODES = ("force_custom_plan", "force_generic_plan")
"""How the first runs of a prepared statement are planned, and how those after the fifth may be."""
NEXT = "select 'the next one'"
SHOWN = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "client_min_messages": "log",
}


class Planner(psycopg.Connection):
    """A connection in the service's role that keeps the plan of every statement that it has run."""

    plans: list[dict]


@contextmanager
def planning(addresses, tenant_id, mode, *, nested=False):
    """Act for a tenant in the service's role, each statement prepared; of functions the plans inside them, if asked."""
    shown = SHOWN | {"plan_cache_mode": mode, "auto_explain.log_nested_statements": "on" if nested else "off"}
    options = " ".join(f"-c {name}={value}" for name, value in shown.items())
    connecting = Planner.connect(addresses.owner, options=options, autocommit=True, prepare_threshold=0)
    with connecting as connection:
        connection.plans = []
        connection.add_notice_handler(lambda notice: keep(connection.plans, notice.message_primary))
        connection.execute("set role recollect_service")
        connection.execute("select set_config('recollect.tenant', %s, false)", [str(tenant_id)])
        yield connection


def keep(plans, message):
    """Keep a plan that the server tells of."""
    _, told, plan = (message or "").partition("plan:\n")
    if told:
        plans.append(json.loads(plan))


def explain(connection, query, parameters):
    """Run a statement and give its plan; the plans inside it, if the connection shows them, are left in `plans`."""
    connection.plans.clear()
    connection.execute(query, parameters)
    # In a transaction a plan is told of when the next statement takes its place.
    connection.execute(NEXT, prepare=False)
    *inside, plan = [plan for plan in connection.plans if plan["Query Text"] != NEXT]
    connection.plans[:] = inside
    return plan["Plan"]


def flatten(plan):
    """List a plan's nodes."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from flatten(part)


def blocks_of(plan):
    """Count the blocks that were read."""
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def rows_of(node):
    """Count the rows that a node looked at, whether they were of use or not."""
    removed = sum(node.get(f"Rows Removed by {check}", 0) for check in ("Filter", "Index Recheck", "Join Filter"))
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])
