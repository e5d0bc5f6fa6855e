"""Following a scope, from the command line on a real PostgreSQL."""

from __future__ import annotations

import re
import signal
import subprocess
from functools import partial

import pytest

from support.programs import command_line
from support.programs.command_line import settings_of
from support.programs.programs import COMMAND, plain_environment

SCOPE = ("--agent", "ada", "--user", "li")


@pytest.fixture
def settings(addresses):
    return settings_of(addresses)


@pytest.fixture
def run(settings):
    return partial(command_line.run, settings=settings)


def test_changes_are_followed_until_ctrl_c_and_then_from_there_on(run, settings):
    run("remember", *SCOPE, "Ann bought green apples")
    environment = plain_environment() | settings
    process = subprocess.Popen([COMMAND, "mind", "watch", *SCOPE], env=environment, stdout=subprocess.PIPE, text=True)
    began = process.stdout.readline()
    run("remember", *SCOPE, "Bob likes\nthe [sea]")
    stored = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(20) == 0
    assert "began" in began
    assert re.search(r"stored +Bob likes the \[sea\]$", stored.strip())
    cursor = re.search(r"Follow on with --since (\S+)", rest)[1]

    run("remember", *SCOPE, "Cy sleeps")
    told = run("mind", "watch", *SCOPE, "--since", cursor, "--limit", "1")
    assert re.search(r"stored +Cy sleeps", told)
    assert "Bob" not in told
    assert "cursor" in run("mind", "watch", *SCOPE, "--since", "no-cursor", fails=True)
