"""The engines that mirrors are tested with are the real ones, whole, and keep what they acknowledged."""

from __future__ import annotations

import httpx
import pytest
from neo4j import AsyncGraphDatabase

from support.engines import java
from support.engines.fixtures import require_java

pytestmark = pytest.mark.engines


async def test_the_search_server_is_opensearch_with_vectors_and_chinese(search_server):
    async with httpx.AsyncClient(base_url=search_server.url, timeout=60) as client:
        assert (await client.get("/")).json()["version"]["number"] == "3.5.0"
        analysed = await client.post("/_analyze", json={"analyzer": "cjk", "text": "我在海港"})
        assert "海港" in [token["token"] for token in analysed.json()["tokens"]]
        vector = {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "engine": "lucene"}}
        made = {"settings": {"index.knn": True}, "mappings": {"properties": {"vector": vector}}}
        assert (await client.put("/engine-servers", json=made)).json()["acknowledged"]
        await client.put("/engine-servers/_doc/1", json={"vector": [0.6, 0.8]}, params={"refresh": "true"})
        near = {"query": {"knn": {"vector": {"vector": [0.6, 0.8], "k": 1}}}}
        found = (await client.post("/engine-servers/_search", json=near)).json()
        assert [hit["_id"] for hit in found["hits"]["hits"]] == ["1"]
        await client.delete("/engine-servers")


async def test_the_graph_server_is_neo4j_over_bolt(graph_server):
    async with AsyncGraphDatabase.driver(graph_server.url) as driver:
        found = await driver.execute_query("CALL dbms.components() YIELD name, versions RETURN name, versions")
        assert {record["name"]: record["versions"] for record in found.records}["Neo4j Kernel"] == ["2026.08.1"]


def test_a_missing_jdk_skips_at_home_and_fails_in_ci(monkeypatch):
    monkeypatch.setattr("support.engines.fixtures.can_run", lambda: False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="JDK of 21 or later"):
        require_java()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="JDK of 21 or later"):
        require_java()


def test_an_older_jdk_is_passed_by(tmp_path, monkeypatch):
    for name, version in (("old", "17.0.9"), ("new", "25")):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "javac").touch()
        (tmp_path / name / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr(java, "JVMS", tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert java.find_java() == tmp_path / "new"
