"""Ways to the MCP door for tests: a real port, a real process, and clients of the official SDK in front of both."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from recollect.doors.http.app import create_app
from recollect.models.service import KeyBinding, Right
from support.programs.programs import COMMAND
from support.service.serving import serving


def listening(recollect):
    """Serve the whole application."""
    return serving(create_app(recollect=recollect))


@asynccontextmanager
async def over_http(url, secret, mode="auto", path="/mcp"):
    """Open a session of the SDK's client over streamable HTTP, as the holder of a key."""
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, verify=False) as http,  # no TLS here: reads no certificates
        Client(streamable_http_client(url + path, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(*options, mode="auto", log=os.devnull, **environment):
    """Open a session of the SDK's client with a process of its own."""
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=COMMAND, args=["mcp", *options], env=dict(os.environ) | environment)
    with open(log, "a", encoding="utf-8") as errors:  # noqa: PTH123, ASYNC230 - a stream that the process inherits
        async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
            yield client


async def bound_key(recollect, agent="ada", user="li", rights=(Right.READ, Right.WRITE), name="bot", tenant="default"):
    """Make a key that is bound to a scope; give its secret."""
    maker = await recollect.operator.act_for(tenant)
    return (await recollect.create_key(maker, name, rights, 50, KeyBinding(agent, user)))[1]
