"""The process that runs the tests and compares: the program cannot reach it.

It knows the program only as functions whose calls cross a pipe and whose values come
back as plain data. Its verdict goes to the cell over a descriptor the program's
process does not have.
"""

import builtins
from typing import Any

from routeproof.scorers.sandbox.candidate import describe
from routeproof.scorers.sandbox.wire import WireError, decode, encode, receive, send


class ProgramError(Exception):
    """The program, not the test, went wrong."""


class Remote:
    """A function of the program, as the tests see it."""

    def __init__(self, name: str, line: "Line") -> None:
        self.name = name
        self.__name__ = name
        self._line = line

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The value the program's function gives; its exception is raised here."""
        return self._line.call(self.name, arguments, keywords)


class Line:
    """The pipe to the program."""

    def __init__(self, asks: int, replies: int, nonce: str) -> None:
        self._asks, self._replies, self._nonce = asks, replies, nonce
        self.calls = 0
        self.outcome: str | None = None

    def call(self, name: str, arguments: Any, keywords: Any) -> Any:
        """The program's value, or its exception.

        Raises:
            ProgramError: It has gone, or did not speak the protocol.
        """
        self.calls += 1
        self.outcome = None
        ask = {
            "n": self.calls,
            "name": name,
            "arguments": encode(arguments),
            "keywords": encode(keywords),
        }
        try:
            send(self._asks, ask)
            reply = receive(self._replies)
            if reply.get("nonce") != self._nonce or reply.get("n") != self.calls:
                raise WireError("it wrote to the descriptor of the replies")
            if "error" in reply:
                raise self._error(reply["error"])
            return decode(reply.get("value"))
        except WireError as error:
            self.outcome = "died" if "gone" in str(error) else "unreadable"
            raise ProgramError(str(error)) from error

    def _error(self, error: dict[str, Any]) -> BaseException:
        name, text = str(error.get("type")), str(error.get("text"))
        self.outcome = "load_failed" if error.get("load") else "raised"
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(text)
            except TypeError:
                pass
        return ProgramError(f"{name}: {text}")


def examine(job: dict[str, Any], line: Line) -> dict[str, Any]:
    """Run the tests of a job against the program behind a line.

    Args:
        job: ``context`` (source the tests rely on, such as the prompt's helpers),
            ``entry_points`` (names of the program's functions), ``tests`` (source;
            one that defines ``check`` is called with the first entry point).
        line: The program.

    Returns:
        ``outcome``: ``passed``, ``failed`` (an assertion does not hold), ``raised``
        or ``load_failed`` (the program did), ``died``, ``unreadable`` (its value
        cannot cross), ``test_error`` (the tests themselves are broken), with
        ``detail`` and ``calls``.
    """
    scope: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    try:
        exec(compile(job["context"], "<context>", "exec"), scope)
    except BaseException as error:
        return _result("test_error", f"context: {_line(error)}", line)
    remotes = {name: Remote(name, line) for name in job["entry_points"]}
    scope.update(remotes)
    scope["candidate"] = remotes[job["entry_points"][0]]
    try:
        tests = compile(job["tests"], "<tests>", "exec")
    except (SyntaxError, ValueError) as error:
        return _result("test_error", _line(error), line)
    try:
        exec(tests, scope)
        if callable(scope.get("check")) and "check" not in remotes:
            scope["check"](scope["candidate"])
    except AssertionError as error:
        outcome = "raised" if line.outcome == "raised" else "failed"
        return _result(outcome, str(error)[:200] or _where(error), line)
    except BaseException as error:
        return _result(line.outcome or _blame(line), _line(error), line)
    if line.calls == 0:
        return _result("test_error", "the tests never called the program", line)
    return _result("passed", "", line)


def _blame(line: Line) -> str:
    """A test that breaks on a value it got counts against the program."""
    return "failed" if line.calls else "test_error"


def _line(error: BaseException) -> str:
    known = describe(error)
    return f"{known['type']}: {known['text']}"


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    number = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            number = trace.tb_lineno
        trace = trace.tb_next
    return f"assertion at line {number} of the tests"


def _result(outcome: str, detail: str, line: Line) -> dict[str, Any]:
    return {"outcome": outcome, "detail": detail, "calls": line.calls}
