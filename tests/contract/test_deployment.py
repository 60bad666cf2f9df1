"""The files in integrations/team start what they say: their commands, ports and copies."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from qmd.cli.main import cli
from qmd.cli.session import Session
from qmd.config import SETTINGS
from qmd.values.location import ServerDatabase, database_location

ROOT = Path(__file__).parents[2]
TEAM = ROOT / "integrations" / "team"
COMPOSE, TEAM_COMPOSE = (
    yaml.safe_load((TEAM / name).read_text(encoding="utf-8"))
    for name in ("compose.yaml", "compose.postgres.yaml")
)
STATEFUL_SET, SERVICE = yaml.safe_load_all((TEAM / "kubernetes.yaml").read_text(encoding="utf-8"))
DEPLOYMENT, CLAIM, BALANCER, BUDGET = yaml.safe_load_all(
    (TEAM / "kubernetes.postgres.yaml").read_text(encoding="utf-8")
)
SERVERS: list[dict[str, Any]] = [each["services"]["qmd"] for each in (COMPOSE, TEAM_COMPOSE)]
PODS: list[dict[str, Any]] = [
    each["spec"]["template"]["spec"] for each in (STATEFUL_SET, DEPLOYMENT)
]
CONTAINERS: list[dict[str, Any]] = [pod["containers"][0] for pod in PODS]
UNIT = (TEAM / "qmd.service").read_text(encoding="utf-8")
IMAGE = (ROOT / "integrations/docker/Dockerfile").read_text(encoding="utf-8")

COMMANDS = {
    "compose.yaml": SERVERS[0]["command"],
    "compose.postgres.yaml": SERVERS[1]["command"],
    "kubernetes.yaml": CONTAINERS[0]["args"],
    "kubernetes.postgres.yaml": CONTAINERS[1]["args"],
    "qmd.service": shlex.split(re.findall(r"^ExecStart=\S+/qmd (.+)$", UNIT, re.MULTILINE)[0]),
}


@pytest.mark.parametrize("file", COMMANDS)
def test_the_command_is_one_of_qmd(file: str) -> None:
    name, *arguments = COMMANDS[file]
    context = click.Context(cli, obj=Session())
    command = cli.get_command(context, name)
    assert command is not None
    command.make_context(name, list(arguments), parent=context)


def test_variables_are_settings_and_the_token_is_never_an_argument() -> None:
    variables = {
        *itertools.chain(*(server["environment"] for server in SERVERS)),
        *(each["name"] for container in CONTAINERS for each in container["env"]),
        *re.findall(r"\b(QMD_[A-Z_]+)=", UNIT),
    }
    others = {"QMD_TOKEN", "PGPASSWORD", "QMD_HOST"}
    assert variables <= {setting.variable for setting in SETTINGS.values()} | others
    assert not any("--token" in command for command in COMMANDS.values())


@pytest.mark.parametrize("file", COMMANDS)
def test_the_server_answers_to_the_name_that_a_proxy_passes_on(file: str) -> None:
    command = COMMANDS[file]
    name = command[command.index("--allow-host") + 1]
    assert name == "qmd" if "kubernetes" in file else name.startswith("${QMD_HOST")
    assert "token create" in (TEAM / file).read_text(encoding="utf-8")


def test_databases_of_the_servers_are_urls_without_a_password() -> None:
    [url] = [each["value"] for each in CONTAINERS[1]["env"] if each["name"] == "QMD_DB"]
    for location in (url, SERVERS[1]["environment"]["QMD_DB"]):
        assert database_location(location) == ServerDatabase(location)
        assert ":" not in location.partition("://")[2]
    assert '".[postgres]"' in IMAGE


def test_ports_users_and_health_are_those_of_the_image() -> None:
    [port] = re.findall(r"^EXPOSE (\d+)$", IMAGE, re.MULTILINE)
    [user] = re.findall(r"^USER (\d+):", IMAGE, re.MULTILINE)
    assert SERVERS[0]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"dynamic a qmd {port}" in TEAM_COMPOSE["configs"]["caddyfile"]["content"]
    assert "/health" in IMAGE
    for pod, container in zip(PODS, CONTAINERS, strict=True):
        assert container["ports"][0]["containerPort"] == int(port)
        assert container["livenessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
        assert pod["securityContext"]["runAsUser"] == int(user)
    assert COMPOSE["services"]["litestream"]["user"] == f"{user}:{user}"
    assert SERVICE["spec"]["selector"] == STATEFUL_SET["spec"]["selector"]["matchLabels"]
    assert BALANCER["spec"]["selector"] == DEPLOYMENT["spec"]["selector"]["matchLabels"]
    assert BUDGET["spec"]["selector"] == DEPLOYMENT["spec"]["selector"]
    [volume] = [each for each in PODS[1]["volumes"] if each["name"] == "data"]
    assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]


def test_litestream_is_set_up_as_on_the_page() -> None:
    page = (ROOT / "docs/copies.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    written = yaml.safe_load((TEAM / "litestream.yml").read_text(encoding="utf-8"))
    assert written == yaml.safe_load(block)
    names = set(re.findall(r"\$\{(\w+)\}", block))
    assert names <= set(COMPOSE["services"]["litestream"]["environment"])
