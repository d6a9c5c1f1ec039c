"""docker-compose.yml, ops/Dockerfile and the CI workflow: what can be said without running them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from streams.apps import EVERY_APP
from streams.config import StreamConfig

ROOT = Path(__file__).parents[3]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def listeners(name: str) -> dict[str, str]:
    """A listener variable of the broker as {listener name: host:port}."""
    pairs = SERVICES["kafka"]["environment"][name].split(",")
    return dict(pair.split("://") for pair in pairs)


def port(address: str) -> str:
    """The port of host:port."""
    return address.rpartition(":")[2]


def published(service: str) -> list[list[str]]:
    """The published ports of a service as [bind address, host port, container port]."""
    return [mapping.split(":") for mapping in SERVICES[service].get("ports", [])]


def test_each_advertised_listener_is_listened_on() -> None:
    """A client sent on to an advertised port finds the broker there."""
    advertised, bound = listeners("KAFKA_ADVERTISED_LISTENERS"), listeners("KAFKA_LISTENERS")
    assert {name: port(address) for name, address in advertised.items()} == {
        name: port(address) for name, address in bound.items() if name != "CONTROLLER"
    }


def test_the_host_listener_is_the_published_port() -> None:
    """The host port, the container port and the advertised port of the HOST listener are one."""
    address = listeners("KAFKA_ADVERTISED_LISTENERS")["HOST"]
    assert published("kafka") == [["127.0.0.1", port(address), port(address)]]
    assert address == StreamConfig().broker


def test_the_worker_uses_the_listener_for_containers() -> None:
    """The worker's settings are names the stream reads, and lead to the INTERNAL listener."""
    config = StreamConfig.from_env(SERVICES["worker"]["environment"])
    assert config.broker == listeners("KAFKA_ADVERTISED_LISTENERS")["INTERNAL"]
    assert config.database_url.startswith("postgresql://citeflow:")
    assert config.database_url.endswith("@postgres:5432/citeflow")


def test_every_listener_has_a_protocol() -> None:
    """Kafka refuses to start when a listener is missing from the protocol map."""
    environment = SERVICES["kafka"]["environment"]
    protocols = environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    names = {protocol.split(":")[0] for protocol in protocols}
    assert names == set(listeners("KAFKA_LISTENERS"))
    assert environment["KAFKA_INTER_BROKER_LISTENER_NAME"] in names
    assert environment["KAFKA_CONTROLLER_LISTENER_NAMES"] in names


def test_the_quorum_is_this_node() -> None:
    """The only voter is the node itself, at its controller listener."""
    environment = SERVICES["kafka"]["environment"]
    voter, _, address = environment["KAFKA_CONTROLLER_QUORUM_VOTERS"].partition("@")
    assert voter == environment["KAFKA_NODE_ID"]
    assert address == listeners("KAFKA_LISTENERS")["CONTROLLER"]


def test_the_broker_creates_no_topics_by_itself() -> None:
    """Topics are created with their partition count, or not at all."""
    assert SERVICES["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_ports_are_published_on_loopback_only(service: str) -> None:
    """Nothing is reachable from another machine."""
    assert {bind for bind, _, _ in published(service)} <= {"127.0.0.1"}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_images_are_pinned(service: str) -> None:
    """An image has a version tag other than latest."""
    image = SERVICES[service].get("image")
    if image is None:
        assert SERVICES[service]["build"]["dockerfile"] == "ops/Dockerfile"
    else:
        assert re.fullmatch(r"[a-z/]+:\d+(\.\d+)*(-[a-z]+)?", image)


@pytest.mark.parametrize("service", ["kafka", "postgres"])
def test_the_worker_waits_for_healthy_services(service: str) -> None:
    """Each service has a health check and the worker waits for it."""
    assert SERVICES[service]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES["worker"]["depends_on"][service] == {"condition": "service_healthy"}


def test_every_application_is_run_by_one_service() -> None:
    """Search, fetch and join by the worker, alerts and the copy of findings by their own."""
    commands = [service["command"] for service in SERVICES.values() if "command" in service]
    assert sorted(word for words in commands for word in words if word in EVERY_APP) == sorted(
        EVERY_APP
    )


def test_the_grace_period_lets_the_worker_drain() -> None:
    """Docker kills the worker only after its own time for stopping is over."""
    assert int(SERVICES["worker"]["stop_grace_period"].rstrip("s")) > StreamConfig().stop_timeout


def test_mounted_files_exist() -> None:
    """Every bind mount names a file of the checkout; Docker would make a directory of a typo."""
    mounts = [
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    ]
    files = [mount for mount in mounts if mount.startswith(".")]
    assert files == [
        "./ops/sql/posts.sql",
        "./ops/sql/app_settings.sql",
        "./ops/sql/audit_log.sql",
    ]
    assert all((ROOT / name).is_file() for name in files)


def test_the_image_runs_the_worker_unprivileged_from_copied_sources() -> None:
    """Every copied path exists and passes .dockerignore; the last stage drops root."""
    dockerfile = (ROOT / "ops/Dockerfile").read_text()
    sources = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert [source for source in sources if f"!{source}" not in allowed] == []
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert int(re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE)[-1]) > 0


def test_ci_runs_every_supported_python_with_pinned_actions() -> None:
    """The matrix is the list of classifiers, actions are pinned by hash, permissions are empty."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    job = workflow["jobs"]["ci"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    prefix = "Programming Language :: Python :: "
    supported = [name.removeprefix(prefix) for name in classifiers if name.startswith(prefix)]
    assert job["strategy"]["matrix"]["python"] == supported
    assert workflow["permissions"] == {}
    assert job["permissions"] == {"contents": "read"}
    actions = [step["uses"] for step in job["steps"] if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r".+@[0-9a-f]{40}", action)] == []
    assert job["steps"][-1]["run"] == ".ci/run"
