"""The process that runs the program under test: it answers calls, nothing else."""

import os
import sys
from typing import Any

from routeproof.scorers.sandbox.wire import WireError, decode, encode, receive, send


def serve(source: str, asks: int, replies: int, nonce: str) -> None:
    """Load a program, then answer calls of its functions until the asker goes.

    Args:
        source: The program.
        asks: Descriptor calls come from.
        replies: Descriptor the values go to.
        nonce: Stands in every reply; a stray write of the program to the
            descriptor is thereby seen as one.
    """
    scope: dict[str, Any] = {"__name__": "candidate", "__builtins__": __builtins__}
    problem = None
    try:
        exec(compile(source, "<candidate>", "exec"), scope)
    except BaseException as error:
        problem = describe(error)
    while True:
        try:
            ask = receive(asks)
        except WireError:
            os._exit(0)
        reply = {"error": problem} if problem else _call(scope, ask)
        try:
            send(replies, {"nonce": nonce, "n": ask["n"], **reply})
        except WireError as error:
            problem = {"type": "WireError", "text": str(error), "load": False}
            send(replies, {"nonce": nonce, "n": ask["n"], "error": problem})


def _call(scope: dict[str, Any], ask: dict[str, Any]) -> dict[str, Any]:
    try:
        function = scope[ask["name"]]
    except KeyError:
        return {"error": {"type": "NameError", "text": f"no {ask['name']}", "load": 1}}
    try:
        arguments = decode(ask["arguments"])
        keywords = decode(ask["keywords"])
        return {"value": encode(function(*arguments, **keywords))}
    except BaseException as error:
        return {"error": {**describe(error), "load": False}}


def describe(error: BaseException) -> dict[str, Any]:
    """Type and text of an exception, as far as they can be had."""
    try:
        text = str(error)[:200]
    except BaseException:
        text = ""
    return {"type": type(error).__name__[:80], "text": text, "load": True}


def silence() -> None:
    """Point the standard streams at nothing; set a recursion limit."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    if nothing > 2:
        os.close(nothing)
    sys.setrecursionlimit(5_000)
