"""Pulling a model from a hub: nothing unasked, resumed where it stopped, refused if a checksum is wrong."""

import fcntl
import hashlib
import shutil

import httpx
import pytest

from recollect.errors import SetupError
from recollect.llm.local import installed
from recollect.llm.local.installed import open_models
from recollect.llm.local.layout import load_known
from recollect.llm.local.sources import HubSource
from recollect.models.outside import KnownModel
from support.models.model_hub import COMMIT, serving_models
from support.models.onnx_models import write_xlm_roberta
from support.programs.command_line import run

pytest.importorskip("tokenizers")
REPOSITORY, LARGE = "some/small", 20_000
CARD = "---\nlanguage:\n- en\nlicense: mit\n---\n# A model\nlicense: gpl\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = write_xlm_roberta(tmp_path_factory.mktemp("hub") / "small", "mean")
    (folder / "README.md").write_text(CARD)
    return folder


@pytest.fixture
def hub(files):
    with serving_models({REPOSITORY: files}, large=LARGE) as served:
        yield served


@pytest.fixture
def models(tmp_path, hub):
    return open_models(tmp_path / "models", hub.address)


def pull(models, **options):
    return models.pull(models.plan(REPOSITORY, **options), lambda *_: None)


def is_same(models, files):
    """Tell whether every file was pulled whole, and nothing else is there."""
    pulled = models.find_model("small")
    there = {path.relative_to(models.folder / "small").as_posix() for path in (models.folder / "small").rglob("*.*")}
    same = all(
        (models.folder / "small" / each.path).read_bytes() == (files / each.path).read_bytes() for each in pulled.files
    )
    return same and there == {each.path for each in pulled.files} | {"recollect.json"}


def test_a_plan_shows_licence_commit_sizes_and_checksums_and_fetches_the_card_alone(models, hub, files):
    plan = models.plan(REPOSITORY)
    graph = (files / "onnx/model.onnx").read_bytes()
    known = {each.path: each for each in plan.files}
    assert (plan.licence, plan.revision, plan.source) == ("mit", COMMIT, hub.address)
    assert known["onnx/model.onnx"].sha256 == hashlib.sha256(graph).hexdigest()
    assert known["onnx/model.onnx"].size == len(graph)
    assert known["config.json"].size == (files / "config.json").stat().st_size and not known["config.json"].sha256
    assert {path.rpartition("/")[2] for path in hub.fetched} == {"README.md"}
    assert not models.folder.exists()


async def test_a_pulled_model_is_whole_of_one_commit_and_runs(models, hub, files):
    pulled = pull(models)
    assert is_same(models, files)
    assert all(COMMIT in path for path in hub.fetched if "README" not in path)
    assert all(len(each.sha256) == 64 for each in pulled.files)
    assert (await models.use("small")).startswith("small@")


def test_an_interrupted_pull_goes_on_where_it_stopped(models, hub, files):
    hub.cut_after = 7_000
    with pytest.raises(SetupError, match=r"onnx/model.onnx was interrupted .* to resume"):
        pull(models)
    with pytest.raises(SetupError, match="is not installed"):
        models.find_model("small")
    begun = len(hub.asked)
    pull(models)
    assert is_same(models, files)
    ranges = [asked for asked in hub.asked[begun:] if asked[2]]
    assert {asked[2] for asked in ranges} == {"bytes=7000-"}


def test_a_hub_without_ranges_is_read_from_the_beginning(models, hub, files):
    hub.cut_after, hub.ranges = 7_000, False
    with pytest.raises(SetupError, match="interrupted"):
        pull(models)
    pull(models)
    assert is_same(models, files)


def test_two_pulls_of_one_file_do_not_mix(models, hub):
    hub.cut_after = 7_000
    with pytest.raises(SetupError, match="interrupted"):
        pull(models)
    [part] = models.folder.rglob("model.onnx.*.part")
    with part.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="is being pulled by another process"):
            pull(models)
    assert part.stat().st_size == 7_000


def test_a_hub_with_tls_does_not_lead_to_a_place_without():
    source = HubSource("https://hub.example", REPOSITORY, "main")
    leads = httpx.Response(302, headers={"Location": "http://elsewhere.example/config.json"})
    transport = httpx.MockTransport(lambda asked: leads if asked.url.scheme == "https" else httpx.Response(200))
    source._client = httpx.Client(transport=transport)
    with pytest.raises(SetupError, match="redirects to an address without TLS"), source.open_file("config.json", 0):
        pass


def test_a_hub_that_redirects_in_a_circle_is_given_up():
    source = HubSource("https://hub.example", REPOSITORY, "main")
    circle = httpx.Response(307, headers={"Location": "/again"})
    source._client = httpx.Client(transport=httpx.MockTransport(lambda _: circle))
    with pytest.raises(SetupError, match="too many redirects"):
        source.stat_file("config.json")


def test_what_is_there_is_not_fetched_again(models, hub):
    pull(models)
    begun = len(hub.fetched)
    pull(models)
    assert not [path for path in hub.fetched[begun:] if path.endswith(".onnx")]


def test_wrong_bytes_are_refused_and_not_kept(models, hub):
    hub.spoilt = b"spoilt"
    with pytest.raises(SetupError, match=r"onnx/model.onnx is refused: .* is \w{64}, and \w{64} was expected"):
        pull(models)
    assert not list(models.folder.rglob("*.onnx*"))


async def test_a_model_in_use_is_pinned(models, hub, files, tmp_path):
    pull(models)
    name = await models.use("small")
    hub.models[REPOSITORY] = shutil.copytree(files, tmp_path / "other")
    (hub.models[REPOSITORY] / "tokenizer.json").write_text((files / "tokenizer.json").read_text() + " ")
    pull(models)
    assert await models.use("small") == name, "what is here and in use stays"
    (models.folder / "small" / "tokenizer.json").unlink()
    with pytest.raises(SetupError, match=r"tokenizer.json is refused"):
        pull(models)


async def test_a_file_that_changed_after_the_pull_is_refused(models):
    pull(models)
    graph = models.folder / "small" / "onnx" / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:-1] + b"x")
    with pytest.raises(SetupError, match="has changed since it was pulled"):
        await models.use("small")
    graph.write_bytes(graph.read_bytes()[:-1])
    with pytest.raises(SetupError, match="is incomplete; run: recollect admin model pull small"):
        models.open(models.find_model("small"))


def test_a_checksum_of_the_table_goes_before_that_of_the_hub(models, monkeypatch):
    row = KnownModel("small", REPOSITORY, "xlm-roberta", 32, "many", "MIT", 1, "mean", sha256={"config.json": "0" * 64})
    monkeypatch.setattr(installed, "load_known", lambda: {"small": row})
    plan = models.plan("small")
    assert (plan.licence, plan.repository) == ("MIT", REPOSITORY)
    with pytest.raises(SetupError, match=rf"config.json is refused: .* {'0' * 64} was expected"):
        models.pull(plan, lambda *_: None)


async def test_a_simple_mirror_is_enough(tmp_path, files):
    """As ModelScope: another path, the branch `master`, no commit, no checksum."""
    with serving_models({REPOSITORY: files}, plain=True, large=LARGE) as hub:
        models = open_models(tmp_path / "models", hub.address)
        plan = models.plan(REPOSITORY)
        assert plan.revision == "master" and not any(each.sha256 for each in plan.files)
        hub.cut_after = 7_000
        with pytest.raises(SetupError, match="interrupted"):
            pull(models)
        pulled = pull(models)
    assert is_same(models, files) and all(each.sha256 for each in pulled.files)
    assert (await models.use("small")).startswith("small@")


def test_a_model_has_one_name_wherever_it_came_from(tmp_path, models, files):
    elsewhere = open_models(tmp_path / "elsewhere", "http://127.0.0.1:9")
    elsewhere.pull(elsewhere.plan("small", str(files)), lambda *_: None)
    pull(models)
    assert models.fingerprint(models.find_model("small")) == elsewhere.fingerprint(elsewhere.find_model("small"))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("unheard-of", {}, "Unknown model unheard-of. Use OWNER/NAME"),
        ("some/absent", {}, "has no some/absent, or does not show it to everybody"),
        (REPOSITORY, {"revision": "v9"}, "has no config.json of some/small"),
        (REPOSITORY, {"source": "http://127.0.0.1:9"}, "does not answer"),
        (REPOSITORY, {"source": "ftp://hub"}, "neither a folder nor an address"),
        ("multilingual-e5-small", {"repository": REPOSITORY, "revision": "v9"}, "has no config.json of some/small"),
    ],
)
def test_what_cannot_be_pulled_is_explained(models, name, options, said):
    with pytest.raises(SetupError, match=said):
        models.plan(name, **options)


@pytest.mark.parametrize("missing", ["tokenizer.json", "onnx/model.onnx"])
def test_a_model_without_a_needed_file_is_refused(models, hub, files, tmp_path, missing):
    hub.models[REPOSITORY] = shutil.copytree(files, tmp_path / "other")
    (hub.models[REPOSITORY] / missing).unlink()
    with pytest.raises(SetupError, match=rf"has no {missing.rpartition('/')[2]} of this model"):
        models.plan(REPOSITORY)


def test_the_command_line_shows_licence_and_checksum_before_it_asks(tmp_path, hub, files):
    settings = {
        "RECOLLECT_EMBEDDING__MODELS_DIR": str(tmp_path / "models"),
        "RECOLLECT_EMBEDDING__HUB_URL": hub.address,
    }
    said = run("admin", "model", "pull", REPOSITORY, settings=settings, typed="n\n", fails=True)
    assert "Licence: mit" in said and hashlib.sha256((files / "onnx/model.onnx").read_bytes()).hexdigest() in said
    assert "not stated" in said and {path.rpartition("/")[2] for path in hub.fetched} == {"README.md"}
    said = run("admin", "model", "pull", REPOSITORY, settings=settings, typed="y\n")
    assert hashlib.sha256((files / "config.json").read_bytes()).hexdigest() in said
    assert "Next: recollect admin model use small" in said


def test_the_table_of_known_models_is_sound():
    known = load_known()
    assert {"bge-small-zh-v1.5", "multilingual-e5-small", "bge-m3"} <= known.keys()
    for row in known.values():
        assert row.family in ("bert", "xlm-roberta") and row.pooling in ("mean", "cls")
        assert row.languages in ("en", "zh", "many") and row.licence in ("MIT", "Apache-2.0")
        assert installed.REPOSITORY.fullmatch(row.repository) and installed.NAME.fullmatch(row.name)
        assert 0 < row.dimensions <= 4096 and row.megabytes > 0
        assert all(len(each) == 64 for each in row.sha256.values())
