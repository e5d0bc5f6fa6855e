"""The manifests of Kubernetes: valid by its schemas, their parts fit together, and they run our unchanged image."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from recollect.doors.cli.main import HELP
from recollect.doors.http.app import create_app
from recollect.settings import FILE, list_settings, to_variable

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
VERSIONS = ("1.30.0", "1.37.0")
"""The oldest that the page names, and the newest with schemas here."""
OF_OPERATOR = {"Cluster"}
SECRETS = {"recollect-service", "recollect-owner"}
Object = dict[str, Any]


def read_folder(name: str) -> tuple[Object, list[Object]]:
    """Read the kustomization of a folder, and all objects that it lists."""
    kustomization = yaml.safe_load((FOLDER / name / "kustomization.yaml").read_text(encoding="utf-8"))
    texts = [(FOLDER / name / file).read_text(encoding="utf-8") for file in kustomization["resources"]]
    return kustomization, [each for text in texts for each in yaml.safe_load_all(text)]


BASE, OBJECTS = read_folder("base")
LINES = (FOLDER / "base" / "settings.env").read_text(encoding="utf-8").splitlines()
SETTINGS = dict(line.split("=", 1) for line in LINES)
_, DATABASE = read_folder("postgres")


def pods(objects: list[Object]) -> Iterator[tuple[Object, Object]]:
    """Yield each object that starts pods, with the template of its pods."""
    for each in objects:
        if each["kind"] in {"Deployment", "Job"}:
            yield each, each["spec"]["template"]


def check_schema(objects: list[Object]) -> list[str]:
    """Return the errors of Kubernetes' schemas, including unknown fields."""
    found = []
    for each in objects:
        for version in VERSIONS if each["kind"] not in OF_OPERATOR else ():
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as problem:
                found.append(f"{each['metadata']['name']}: {problem}")
    return found


def check_selectors(objects: list[Object]) -> list[str]:
    """Every selector chooses the pods of an object; that of a Deployment its own."""
    labels = {each["metadata"]["name"]: template["metadata"]["labels"] for each, template in pods(objects)}
    found = []
    for each in objects:
        spec = each["spec"]
        chosen = spec.get("selector") or spec.get("podSelector")
        if chosen:
            wanted = chosen.get("matchLabels", chosen)
            own = [labels[each["metadata"]["name"]]] if each["kind"] == "Deployment" else labels.values()
            if not any(wanted.items() <= theirs.items() for theirs in own):
                found.append(f"{each['kind']} {each['metadata']['name']} chooses no pod")
    return found


def check_ports(objects: list[Object]) -> list[str]:
    """Ports that probes, services and policies name are ports of the containers; paths of probes are served."""
    text = yaml.safe_dump(objects)
    offered = {port["name"]: port["containerPort"] for _, port in container_parts(objects, "ports")}
    named = {*re.findall(r"(?:targetPort|(?<=  )port): ([a-z]\w*)", text)}
    paths = {*re.findall(r"path: (/health\S*)", text)}
    exposed = {int(port) for port in re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)}
    found = [f"no port is named {name}" for name in named - offered.keys()]
    found += [f"{path} is not served" for path in paths - create_app().openapi()["paths"].keys()]
    return found + [f"the image does not expose {port}" for port in {*offered.values()} - exposed]


def container_parts(objects: list[Object], part: str) -> Iterator[tuple[Object, Object]]:
    for _, template in pods(objects):
        for container in template["spec"]["containers"]:
            for each in container.get(part, []):
                yield container, each


def check_safety(objects: list[Object]) -> list[str]:
    """Pods run as the image's user, with no more rights than they need, and have their volumes and limits."""
    [user] = re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    found = []
    for each, template in pods(objects):
        name, spec = each["metadata"]["name"], template["spec"]
        context = spec["securityContext"]
        found += [] if context.get("runAsNonRoot") else [f"{name} may run as root"]
        for container in spec["containers"]:
            if container["image"] == "recollect" and context.get("runAsUser") != int(user):
                found.append(f"{name} does not run as user {user}")
            own, resources = container.get("securityContext", {}), container.get("resources", {})
            allowed = (own.get("allowPrivilegeEscalation"), own.get("readOnlyRootFilesystem"), own.get("capabilities"))
            found += [] if allowed == (False, True, {"drop": ["ALL"]}) else [f"{name} has more rights than it needs"]
            found += [] if "memory" in resources.get("limits", {}) else [f"{name} has no limit of memory"]
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            found += [] if mounted == {volume["name"] for volume in spec["volumes"]} else [f"{name}: other volumes"]
    return found


KNOWN = {to_variable(name) + ending for name in list_settings() for ending in ("", FILE)}


def check_settings(objects: list[Object]) -> list[str]:
    """Only commands, settings and secrets that there are; the owner's secret reaches the migration alone."""
    found = []
    for each, template in pods(objects):
        name, spec = each["metadata"]["name"], template["spec"]
        [container] = spec["containers"]
        found += [
            f"{name}: {entry['name']} is no setting" for entry in container.get("env", []) if entry["name"] not in KNOWN
        ]
        found += [] if (words := " ".join(container["args"])) in HELP else [f"{name}: {words} is no command"]
        found += [] if spec.get("enableServiceLinks") is False else [f"{name}: a service may set RECOLLECT_PORT"]
        [volume] = [volume for volume in spec["volumes"] if volume["name"] == "secrets"]
        secrets = {source["secret"]["name"] for source in volume["projected"]["sources"]}
        wanted = SECRETS if each["kind"] == "Job" else SECRETS - {"recollect-owner"}
        found += [] if secrets == wanted else [f"{name} reads {sorted(secrets)}"]
    return found


def check_health_port(objects: list[Object]) -> list[str]:
    """Probes and Prometheus use the port of health, which no service offers and only Prometheus reaches."""
    [api] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("Deployment", "recollect-api")]
    template = api["spec"]["template"]
    [container] = template["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probed = {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")}
    scraped = template["metadata"]["annotations"]
    found = [] if probed == {"health"} else [f"probes use {sorted(probed)}"]
    health_port = SETTINGS["RECOLLECT_OPERATIONS__HEALTH_PORT"]
    found += [] if health_port == str(ports["health"]) else ["the setting names another port"]
    found += [] if scraped["prometheus.io/port"] == str(ports["health"]) else ["Prometheus scrapes another port"]
    for each in objects:
        if each["kind"] == "Service" and any(port["targetPort"] == "health" for port in each["spec"]["ports"]):
            found.append("a service offers health and metrics")
        for rule in each["spec"].get("ingress", []) if each["kind"] == "NetworkPolicy" else []:
            if {"port": "health"} in rule["ports"] and not rule.get("from"):
                found.append("everybody reaches health and metrics")
    return found


CHECKS = (check_schema, check_selectors, check_ports, check_safety, check_settings, check_health_port)
MISTAKES = {
    "replicas: two": (check_schema, lambda found: found["recollect-api"]["spec"].update(replicas="two")),
    "a field that is not known": (check_schema, lambda found: found["recollect-worker"]["spec"].update(replica=2)),
    "a service for nobody": (
        check_selectors,
        lambda found: found["Service"]["spec"]["selector"].update({"app.kubernetes.io/component": "http"}),
    ),
    "a probe of another port": (
        check_ports,
        lambda found: container_of(found, "recollect-api")["readinessProbe"]["httpGet"].update(port="web"),
    ),
    "a probe of another path": (
        check_ports,
        lambda found: container_of(found, "recollect-api")["livenessProbe"]["httpGet"].update(path="/healthz"),
    ),
    "another port of the image": (
        check_ports,
        lambda found: container_of(found, "recollect-api")["ports"][0].update(containerPort=8000),
    ),
    "another user": (
        check_safety,
        lambda found: found["recollect-api"]["spec"]["template"]["spec"]["securityContext"].update(runAsUser=1000),
    ),
    "a writable image": (
        check_safety,
        lambda found: container_of(found, "recollect-worker")["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    "a probe of the port of the API": (
        check_health_port,
        lambda found: container_of(found, "recollect-api")["readinessProbe"]["httpGet"].update(port="http"),
    ),
    "metrics for everybody": (
        check_health_port,
        lambda found: found["Service"]["spec"]["ports"].append({"name": "health", "port": 81, "targetPort": "health"}),
    ),
    "a policy that admits everybody": (
        check_health_port,
        lambda found: found["NetworkPolicy"]["spec"]["ingress"][-1].pop("from"),
    ),
    "a scrape of another port": (
        check_health_port,
        lambda found: found["recollect-api"]["spec"]["template"]["metadata"]["annotations"].update(
            {"prometheus.io/port": "7077"}
        ),
    ),
    "a setting that is none": (
        check_settings,
        lambda found: container_of(found, "recollect-worker").update(env=[{"name": "RECOLLECT_URL", "value": "1"}]),
    ),
    "a command that is none": (
        check_settings,
        lambda found: container_of(found, "recollect-worker").update(args=["work"]),
    ),
}


def container_of(found: dict[str, Object], name: str) -> Object:
    container: Object = found[name]["spec"]["template"]["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_manifests_are_right(check):
    assert check(OBJECTS) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_noticed(mistake):
    check, plant = MISTAKES[mistake]
    planted = copy.deepcopy(OBJECTS)
    plant(
        {each["metadata"]["name"] if each["kind"] in {"Deployment", "Job"} else each["kind"]: each for each in planted}
    )
    assert check(planted) != []


COMPOSE: Object = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
UNITS = {"g": "Gi", "m": "Mi"}


def read_service(service: Object) -> Object:
    """Return for a service of compose the same as `read_pod` returns for a pod."""
    memory = str(service.get("mem_limit", ""))
    return {
        "user": service.get("user"),
        "writable image": not service.get("read_only"),
        "dropped": service.get("cap_drop"),
        "new privileges": "no-new-privileges:true" not in service.get("security_opt", []),
        "memory": memory[:-1] + UNITS.get(memory[-1:], ""),
        "writable": {*service.get("volumes", [])},
    }


def read_pod(template: Object) -> Object:
    """Return the rights and limits of a container of Kubernetes."""
    spec = template["spec"]
    [container] = spec["containers"]
    own, user = container["securityContext"], spec["securityContext"]
    return {
        "user": f"{user['runAsUser']}:{user['runAsGroup']}",
        "writable image": not own["readOnlyRootFilesystem"],
        "dropped": own["capabilities"]["drop"],
        "new privileges": own["allowPrivilegeEscalation"],
        "memory": container["resources"]["limits"]["memory"],
        "writable": {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")},
    }


def check_compose(services: Object) -> list[str]:
    """What compose starts may do no more than the pods of Kubernetes, and its database runs as safely."""
    of_pods = {tuple(each["spec"]["containers"][0]["args"]): read_pod(each) for _, each in pods(OBJECTS)}
    own = {name: service for name, service in services.items() if name != "db"}
    found = [f"{name} differs" for name, each in own.items() if read_service(each) != of_pods[tuple(each["command"])]]
    database = read_service(services["db"]) | {"writable": ()}
    if database != read_service(services["api"]) | {"writable": (), "user": "postgres", "memory": database["memory"]}:
        found.append("db differs")
    found += [] if database["memory"] else ["db has no limit of memory"]
    return found if len(own) == len(of_pods) else [*found, "a pod has no service"]


@pytest.mark.promise("What compose starts has no more rights, and no more memory, than the pods of Kubernetes")
def test_compose_is_as_safe_as_kubernetes():
    assert check_compose(COMPOSE) == []


@pytest.mark.parametrize("name", COMPOSE)
@pytest.mark.parametrize("part", ["user", "read_only", "cap_drop", "security_opt", "mem_limit"])
def test_what_compose_lacks_is_noticed(name, part):
    planted = copy.deepcopy(COMPOSE)
    del planted[name][part]
    assert check_compose(planted) != []


def test_the_database_of_the_example_has_what_ours_needs():
    assert check_schema(DATABASE) == []
    assert check_safety(DATABASE) == []
    [cluster, roles] = DATABASE
    for setting, value in (word.split("=") for word in COMPOSE["db"]["command"] if "=" in word):
        assert cluster["spec"]["postgresql"]["parameters"][setting] == value
    environment = {each["name"]: each.get("value") for each in container_of({"": roles}, "")["env"]}
    assert environment["PGHOST"] == f"{cluster['metadata']['name']}-rw"
    assert environment["PGDATABASE"] == cluster["spec"]["bootstrap"]["initdb"]["database"]


def test_the_kustomization_lists_every_file_and_our_version():
    for name in ("base", "postgres"):
        kustomization, _ = read_folder(name)
        assert {*kustomization["resources"]} == {path.name for path in (FOLDER / name).glob("*.yaml")} - {
            "kustomization.yaml"
        }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert BASE["images"] == [{"name": "recollect", "newTag": project["version"]}]
    [settings] = BASE["configMapGenerator"]
    assert settings["envs"] == ["settings.env"]
    assert {*SETTINGS} <= KNOWN
    for container, source in container_parts(OBJECTS, "envFrom"):
        assert source == {"configMapRef": {"name": settings["name"]}}
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        own = {entry["name"]: entry["value"] for entry in container.get("env", [])}
        files = [value for name, value in (SETTINGS | own).items() if name.endswith("_FILE")]
        assert files
        assert {str(Path(file).parent) for file in files} <= mounted
