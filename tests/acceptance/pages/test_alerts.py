"""Alerts and dashboard: every rule has tests and a runbook, and a real Prometheus fires what can be caused here."""

from __future__ import annotations

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
import yaml
from prometheus_client import REGISTRY

from conftest import addresses_of, execute
from recollect.doors.http import metrics
from recollect.doors.mcp import server as mcp_server
from recollect.models.outside import ColdStats
from support.programs.command_line import run, settings_of
from support.programs.ports import free_port
from support.programs.programs import Program
from support.service.prometheus import WAIT_SECONDS, find_promtool, scraping

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "prometheus"
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
BOARD = json.loads((ROOT / "deploy" / "grafana" / "recollect.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
CASE = re.compile(r"name: (\w+) (fires|is quiet)")
OF_PROMETHEUS = {"up": {"job", "instance"}}
BURST = 100


def known_metrics() -> dict[str, set[str]]:
    """Name what a process counts, each with its labels."""
    assert mcp_server.CALLS
    read = (*metrics.gather_jobs([]), *metrics.gather_lags([]), *metrics.gather_cold(ColdStats(0, 0, 0)))
    found = {family.name: {*family._labelnames} for family in read}
    for collector, names in REGISTRY._collector_to_names.items():
        found |= {name: {*getattr(collector, "_labelnames", ())} | {"le"} for name in names}
    return found | OF_PROMETHEUS


def unknown(expression: str) -> set[str]:
    """Name the metrics of an expression that nobody counts, and the labels that those it names do not have."""
    known = known_metrics()
    named = {*re.findall(r"\b(?:recollect|process)_\w+(?=\{)|\bup(?=\{)", expression)}
    labels = {each for inside in re.findall(r"by \(([^)]*)\)", expression) for each in inside.split(", ")}
    labels |= {*re.findall(r'(\w+)(?:=~|=|!=)"', expression)}
    allowed = {"job", "instance"}.union(*(known.get(name, set()) for name in named))
    return (named - known.keys()) | (labels - allowed) | (set() if named else {expression})


@pytest.fixture(scope="module")
def promtool(tmp_path_factory):
    return find_promtool(tmp_path_factory.mktemp("promtool"))


def try_rules(promtool, folder, rules):
    """Run the tests of the rules on other rules; give the code, and which cases failed."""
    (folder / "alerts.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    (folder / "alerts.test.yaml").write_bytes((FOLDER / "alerts.test.yaml").read_bytes())
    ended = subprocess.run(
        [*promtool, "test", "rules", "alerts.test.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    return ended.returncode, {*re.findall(r'alertname=\\?"(\w+)', ended.stdout + ended.stderr)}


def with_expression(expression: str) -> dict:
    """Give the same rules, each with this expression, and firing at once."""
    rules = [{**rule, "expr": expression, "for": "0s"} for rule in ALERTS.values()]
    return {"groups": [{"name": "planted", "rules": rules}]}


def test_every_rule_passes_its_tests(promtool, tmp_path):
    assert try_rules(promtool, tmp_path, RULES) == (0, set())


@pytest.mark.parametrize("planted", ["vector(0) > 1", "vector(1)"])
def test_a_rule_that_never_fires_or_always_does_fails_its_tests(promtool, tmp_path, planted):
    code, failed = try_rules(promtool, tmp_path, with_expression(planted))
    assert code != 0
    assert failed == {*ALERTS}


def test_every_alert_has_a_case_that_fires_and_one_that_is_quiet():
    cases = {*CASE.findall((FOLDER / "alerts.test.yaml").read_text(encoding="utf-8"))}
    assert cases == {(name, how) for name in ALERTS for how in ("fires", "is quiet")}


def test_every_alert_has_its_runbook_and_the_reverse():
    page = (ROOT / "docs" / "howto" / "runbooks.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (Recollect\w+)$", page, re.MULTILINE)
    assert sections == [*ALERTS]
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/howto/runbooks.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning"}


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in ALERTS.values()), *QUERIES])
def test_expressions_name_only_what_is_counted(expression):
    assert unknown(expression) == set()


def test_an_unknown_metric_or_label_is_noticed():
    assert unknown('sum(recollect_jobs_waiting{job="recollect"})') == {"recollect_jobs_waiting"}
    assert unknown('sum by (tool) (recollect_mcp_calls_total{job="recollect"})') == {"tool"}


@pytest.fixture(scope="module")
def served(cluster, clones):
    """A server without a worker, which serves one request at a time, and a Prometheus that scrapes it."""
    name = clones.take()
    addresses = addresses_of(cluster, name)
    chosen = {"postgres__max_requests": "1", "pool_size": "4", "embedding__wait_timeout_seconds": "30"}
    settings = settings_of(addresses, port=str(free_port()), **chosen)
    key = run("admin", "keys", "create", "alerts", settings=settings).strip()
    server = Program("serve", settings=settings)
    server.wait_until_ready()
    # The first start leaves a job that fills the vectors of older memories; there are none.
    with psycopg.connect(addresses.owner) as owner:
        owner.execute("update procrastinate_jobs set status = 'succeeded'")
    rules = {"groups": [{"name": "short", "rules": [{**rule, "for": "1s"} for rule in ALERTS.values()]}]}
    headers = {"Authorization": f"Bearer {key}"}
    caller = httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False)
    with caller, scraping(server.url, rules) as prometheus:
        yield server, caller, prometheus, (cluster, name, addresses)
    server.kill()
    clones.drop(name)


def test_a_real_prometheus_fires_what_is_caused_here(served):
    server, caller, prometheus, (cluster, name, addresses) = served
    turn = {"agent": "ada", "user": "li", "conversation": "c", "messages": [{"role": "user", "content": "Tea?"}]}
    memory = {"agent": "ada", "user": "li", "content": "Li drinks tea."}
    until_found(prometheus, "count_over_time(recollect_pool[1m]) > 1")
    prometheus.wait_for_quiet()
    assert caller.post("/v1/memories", json=memory).status_code == 201
    assert caller.post("/v1/messages", json=turn).status_code == 201
    prometheus.wait_for("RecollectWorkerSilent")  # the job of the turn waits, and there is no worker
    with psycopg.connect(addresses.owner) as owner:
        owner.execute("update procrastinate_jobs set status = 'failed'")
        owner.commit()
        prometheus.wait_for("RecollectJobsFailed")
        # A counter that begins with the first error shows an increase only with the next ones.
        refused = partial(refuse_many, owner, caller, memory)
        prometheus.wait_for("RecollectBusy", "RecollectErrors", "RecollectSlow", cause=refused)
    prometheus.wait_for("RecollectDatabaseRefuses", cause=partial(lose_database, cluster, name, caller, prometheus))
    server.stop()
    prometheus.wait_for("RecollectDown")


def lose_database(cluster, name, caller, prometheus) -> None:
    """Let the database refuse the service for a moment, until it has noticed, and wait until it is scraped again."""
    execute(cluster, f"alter database {name} allow_connections false")
    execute(cluster, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
    while caller.get("/metrics").is_success:
        time.sleep(0.1)
    execute(cluster, f"alter database {name} allow_connections true")
    until_found(prometheus, 'min_over_time(up{job="recollect"}[4s]) == 1')


def refuse_many(owner, caller, memory) -> None:
    """Let a write wait for a lock in the only place of the process, so that the others are refused after a second."""
    owner.execute("lock table memories")
    with ThreadPoolExecutor(BURST) as threads:
        answers = [threads.submit(caller.post, "/v1/memories", json=memory) for _ in range(BURST)]
        while sum(answer.done() for answer in answers) < BURST // 2:
            time.sleep(0.1)
        owner.rollback()


def until_found(prometheus, query: str) -> None:
    """Wait until a query finds something."""
    until = time.monotonic() + WAIT_SECONDS
    while not prometheus.ask("query", query=query)["result"]:
        assert time.monotonic() < until, query
        time.sleep(0.2)


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_the_dashboard_runs(served, query):
    _, _, prometheus, _ = served
    answer = prometheus.ask("query", query=query)
    assert answer["resultType"] == "vector"
