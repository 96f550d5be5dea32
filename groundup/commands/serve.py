"""`groundup serve`: trained networks as a service."""

from __future__ import annotations

import ipaddress
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from shared.machine.software import extra
from shared.terminal import say

NEEDED = ("starlette", "uvicorn", "prometheus_client")
SHORTEST, LONGEST = 16, 4096
"""Characters of a key."""


def serve(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_DIR", help="Runs' folders, or checkpoints in them.", show_default=False),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's requires a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.")] = 8000,
    key: Annotated[
        str | None,
        typer.Option(
            envvar="GROUNDUP_SERVE_KEY",
            help="What every request must carry. Better by the variable.",
            show_default=False,
        ),
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="The file with the key in it.", show_default=False)] = None,
    latency_budget_ms: Annotated[
        float, typer.Option(help="How long a request may wait for others, to be computed with them.")
    ] = 2.0,
    max_batch: Annotated[int, typer.Option(help="Images that are computed together; also of one request.")] = 64,
    queue: Annotated[int, typer.Option(help="Requests that may have begun; more are answered with 503.")] = 128,
    drain_seconds: Annotated[
        float, typer.Option(help="How long it answers after SIGTERM while it is not ready any more.")
    ] = 1.0,
    reuse_port: Annotated[
        bool, typer.Option("--reuse-port", help="Let two services share the port, for a restart without a gap.")
    ] = False,
) -> None:
    """Answer requests with trained networks, by the Open Inference Protocol v2.

    A model has the name of its run's folder, and takes and gives what the exported file does. /classify and /explain
    take pictures; http://127.0.0.1:8000/ is a page to try it.

    \b
    Examples:
      groundup serve runs/lenet5
      groundup serve runs/lenet5 runs/fashion --port 9000 --latency-budget-ms 5
      GROUNDUP_SERVE_KEY=$(openssl rand -hex 24) groundup serve runs/lenet5 --host 0.0.0.0
    """
    for name, value, least in (("--max-batch", max_batch, 1), ("--queue", queue, 1)):
        if value < least:
            raise ValueError(f"serve: {name}: expected at least {least}, got {value}")
    for name, seconds in (("--latency-budget-ms", latency_budget_ms), ("--drain-seconds", drain_seconds)):
        if not 0 <= seconds <= 10_000:
            raise ValueError(f"serve: {name}: expected 0 to 10000, got {seconds:g}")
    if not 0 <= port <= 65535:
        raise ValueError(f"serve: --port: expected 0 to 65535, got {port}")
    secret = _secret(key, key_file)
    if not secret and not _is_this_machine(host):
        raise ValueError(f"serve: --host {host} lets other machines ask: set GROUNDUP_SERVE_KEY, or name --key-file")
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ValueError(f"serve: not installed: {', '.join(missing)}; install the extra web: {extra('web')}")
    if reuse_port and not hasattr(socket, "SO_REUSEPORT"):
        raise ValueError("serve: --reuse-port: this system lets no two programs share a port")
    from groundup.serve import app, models, server  # now that starlette is there
    from shared.numbers import three_digits

    try:
        loaded = models.load_models(runs)
    except models.StagesDisagree as error:
        say(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    for model in loaded.values():
        say(f"{model.name}: {model.words}")
        apart = three_digits(model.worst.tolerances)
        say(f"    {model.by} answers; its logits differ from stage 2's by {apart} of what rounding explains")
    listening = server.listen(host, port, reuse_port)
    service = app.Service(loaded, latency_budget_ms / 1000, max_batch, queue)
    server.serve(service, listening, secret, drain_seconds, say)


def _secret(key: str | None, key_file: Path | None) -> str:
    """The key; "" for none. Raises ValueError for one that no header can carry, or that is soon guessed."""
    if key is not None and key_file is not None:
        raise ValueError("serve: --key and --key-file are two keys; give one")
    secret = key
    if key_file is not None:
        with key_file.open("rb") as file:
            secret = file.read(LONGEST + 2).decode("ascii", "replace").strip()
    if secret is None:
        return ""
    if not SHORTEST <= len(secret) <= LONGEST or not all("!" <= character <= "~" for character in secret):
        raise ValueError(f"serve: the key: expected {SHORTEST} to {LONGEST:,} characters of ASCII, none a space")
    return secret


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
