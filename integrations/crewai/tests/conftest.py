"""A real server, told by the environment; CrewAI is kept from calling home before it is imported."""

from __future__ import annotations

import os
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_TESTING": "true",
    "OTEL_SDK_DISABLED": "true",
}

from recollect.sync import connect

usual = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
for name, examples in {"fast": 3, "ci": 5, "long": 100}.items():
    settings.register_profile(name, usual, max_examples=examples, derandomize=name != "long")
settings.load_profile(os.environ.get("RECOLLECT_TESTS", "ci"))


@pytest.fixture(scope="session")
def memory():
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL names no server")
    with connect(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]) as opened:
        yield opened


@pytest.fixture
def mind(memory):
    return memory.mind("crew", f"u-{uuid4().hex}")


@pytest.fixture(scope="session", autouse=True)
def storage_dir(tmp_path_factory):
    os.environ["CREWAI_STORAGE_DIR"] = str(tmp_path_factory.mktemp("crewai"))
