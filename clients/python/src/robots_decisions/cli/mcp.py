"""`robots-decisions mcp`: serve the tools of agents, by MCP, on standard input and output or over HTTP."""

import argparse
import os
import sys

from mcp.server.transport_security import TransportSecuritySettings

from robots_decisions.cli.failures import Failed, Parser
from robots_decisions.cli.options import API_KEY, PURPOSES, add_server
from robots_decisions.mcp import create_server

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8090
"""Where HTTP is served."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Hosts that requests may name."""


def add(parser: Parser) -> None:
    """Add the arguments: the crawler, the service to ask, and the transport."""
    parser.description = (
        "Serve tools for agents by the Model Context Protocol: may_fetch, reserve, report and explain_robots."
    )
    parser.add_argument(
        "--agent",
        required=True,
        action="append",
        help="the product token of the crawler that fetches; no tool can ask as another. Further ones are fallbacks",
    )
    add_server(parser)
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what all pages are wanted for; may be repeated"
    )
    parser.add_argument(
        "--sign",
        action="store_true",
        help="let reserve give the header fields that sign a request (Web Bot Auth), if the service can sign it",
    )
    parser.add_argument(
        "--http", action="store_true", help="serve streamable HTTP at /mcp, not standard input and output"
    )
    parser.add_argument("--host", default=DEFAULT_HOST, help=f"the address for --http; default {DEFAULT_HOST}")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"the port for --http; default {DEFAULT_PORT}")
    parser.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="with --http, a further name that clients may use for this server, such as mcp.example.com or "
        "mcp.example.com:8090; may be repeated. Others are refused, against DNS rebinding",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends, or until Ctrl-C. Raise Failed."""
    try:
        server = create_server(
            arguments.server,
            agent=arguments.agent if len(arguments.agent) > 1 else arguments.agent[0],
            key=os.environ.get(API_KEY) or None,
            purpose=arguments.purpose,
            sign=arguments.sign,
            settings=(API_KEY, "--server"),
        )
    except ValueError as error:
        raise Failed(f"{error}.") from None
    if not arguments.http:
        server.run("stdio")
        return 0
    names = [form for host in LOOPBACK for form in (host, f"{host}:*")] + arguments.allow_host
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
    )
    place = f"{arguments.host} port {arguments.port}"
    sys.stderr.write(f"Serving MCP by HTTP at /mcp on {place}.\n")
    try:
        server.run("streamable-http", host=arguments.host, port=arguments.port, transport_security=security)
    except SystemExit:  # of uvicorn, which has logged why
        raise Failed(f"Cannot listen on {place}.") from None
    return 0


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a port")
