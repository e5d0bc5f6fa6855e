"""The checkpointer passes every test of LangGraph's conformance suite, of every capability that the suite knows."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from recollect_langgraph_checkpoint import RecollectSaver


@pytest.mark.parametrize("capability", [capability.value for capability in Capability])
async def test_it_conforms(capability, connection):
    @checkpointer_test(name=f"RecollectSaver {capability}")
    async def factory():
        yield RecollectSaver(connection)
        await connection.aclose()

    report = await validate(factory, capabilities={capability})
    result = report.results[capability]
    print(capability, result.tests_passed, "passed", result.tests_failed, "failed")
    assert result.failures == []
    assert result.detected
    assert result.tests_passed > 0
    assert not result.tests_skipped
