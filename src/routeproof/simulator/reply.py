"""Writing an answer down: events of a stream, or one whole body."""

from collections.abc import Sequence
from typing import Any

import msgspec

from routeproof.simulator import draws, language, logprobs
from routeproof.simulator.ask import Ask
from routeproof.simulator.dialects.dialect import Dialect, model_of
from routeproof.simulator.engine import Engine
from routeproof.simulator.script import Piece
from routeproof.simulator.sequence import Emission
from routeproof.simulator.sequence import Sequence as Answering
from routeproof.simulator.source import ToySource

DONE = b"data: [DONE]\n\n"
CREATED = 1_790_000_000

_encode = msgspec.json.Encoder().encode


class Reply:
    """The response to one request, in one engine's words.

    Args:
        engine: Asked for what it says of itself.
        dialect: How it is written.
        ask: The request.
        sequences: One for each choice.
        served_model: Name to echo.
    """

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        ask: Ask,
        sequences: Sequence[Answering],
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._ask = ask
        self._sequences = sequences
        number = int(draws.unit("id", engine.route.seed, sequences[0].serial) * 2**52)
        self.id = f"{'chatcmpl' if ask.kind == 'chat' else 'cmpl'}-{number:016x}"
        self._left = len(sequences)
        self._is_plain = (
            ask.kind == "chat"
            and not ask.logprobs
            and not ask.body.get("return_token_ids")
        )
        self._base = self._frame()
        fingerprint = dialect.fingerprint(engine)
        signed = {} if fingerprint is None else {"system_fingerprint": fingerprint}
        self._signed: dict[str, Any] = signed
        self._head = b"data: " + _encode(self._base)[:-1] + b',"choices":[{"index":'
        tail = _encode(signed)[1:-1]
        self._tail = b"]," + tail + b"}\n\n" if tail else b"]}\n\n"

    def _frame(self) -> dict[str, Any]:
        chat = self._ask.kind == "chat"
        kind = "chat.completion" if chat else "text_completion"
        return {
            "id": self.id,
            "object": f"{kind}.chunk" if chat and self._ask.stream else kind,
            "created": CREATED,
            "model": self._ask.model or model_of(self._engine),
        }

    # -- a stream -------------------------------------------------------------------

    def start(self) -> list[bytes]:
        """Events before the first token: the role, for a chat."""
        if self._ask.kind != "chat":
            return []
        content = None if self._dialect.chunk_per_token else ""
        return [
            self._event(s.choice, {"role": "assistant", "content": content}, None, None)
            for s in self._sequences
        ]

    def events(self, emission: Emission) -> list[bytes]:
        """Events for what a pass brought to one choice, its end included."""
        sequence, first, new, done = emission
        if sequence.failed is not None:
            return self._failure()
        source = sequence.source
        assert source is not None
        pieces = source.pieces[first : first + new]
        finish = source.finish if done else None
        groups = self._groups(pieces)
        out = []
        apart = done and (self._dialect.finish_apart or not groups)
        for number, (start, group) in enumerate(groups):
            last = done and number == len(groups) - 1 and not apart
            out.append(
                self._chunk(sequence, first + start, group, finish if last else None)
            )
        if apart:
            end = self._end(sequence)
            out.append(self._event(sequence.choice, {}, end, finish))
        if done:
            self._left -= 1
            if not self._left:
                out += self._ending()
        return out

    def _groups(self, pieces: list[Piece]) -> list[tuple[int, list[Piece]]]:
        """Pieces that share a chunk: those of one kind, or each its own."""
        groups: list[tuple[int, list[Piece]]] = []
        for at, piece in enumerate(pieces):
            same = groups and groups[-1][1][-1][::2] == piece[::2]
            if same and not self._dialect.chunk_per_token and piece.kind != "name":
                groups[-1][1].append(piece)
            else:
                groups.append((at, [piece]))
        return groups

    def _chunk(
        self, sequence: Answering, first: int, group: list[Piece], finish: str | None
    ) -> bytes:
        text = "".join([p.text for p in group])
        plain = finish is None and group[0].kind == "text" and self._is_plain
        if plain:
            return self._quick(sequence.choice, text)
        delta = self._delta(group[0], text)
        items = None
        if self._ask.logprobs and group[0].kind in ("text", "reasoning"):
            items = self._logprobs(sequence, first, group)
            items += self._end(sequence) if finish is not None else []
        ids = (
            logprobs.ids([p.text for p in group])
            if self._ask.body.get("return_token_ids")
            else None
        )
        return self._event(sequence.choice, delta, items, finish, ids)

    def _quick(self, choice: int, text: str) -> bytes:
        """A chunk of text and nothing else, without building it as an object."""
        said = b'%d,"delta":{"content":%b},"logprobs":null,"finish_reason":null}'
        return self._head + said % (choice, _encode(text)) + self._tail

    def _delta(self, piece: Piece, text: str) -> dict[str, Any]:
        if piece.kind == "text":
            return {"content": text}
        if piece.kind == "reasoning":
            return {self._dialect.reasoning_field: text}
        if piece.kind == "name":
            call = {
                "index": piece.call,
                "id": f"call_{self.id[-8:]}{piece.call}",
                "type": "function",
            }
            return {
                "tool_calls": [call | {"function": {"name": text, "arguments": ""}}]
            }
        return {"tool_calls": [{"index": piece.call, "function": {"arguments": text}}]}

    def _event(
        self,
        choice: int,
        delta: dict[str, Any],
        items: list[dict[str, Any]] | None,
        finish: str | None,
        ids: list[int] | None = None,
    ) -> bytes:
        entry: dict[str, Any] = {"index": choice}
        if self._ask.kind == "chat":
            entry["delta"] = delta
            entry["logprobs"] = {"content": items} if items else None
        else:
            entry["text"] = delta.get("content") or ""
            entry["logprobs"] = logprobs.completion(items) if items else None
        entry["finish_reason"] = finish
        if ids is not None:
            entry["token_ids"] = ids
        frame = self._base | {"choices": [entry]}
        return b"data: " + _encode(frame | self._signed) + b"\n\n"

    def _ending(self) -> list[bytes]:
        details = self._dialect.details(self._engine, self._ask, self._sequences)
        last: dict[str, Any] = {"choices": []}
        if self._ask.include_usage and not self._engine.defects.stream.no_usage:
            last["usage"] = self._dialect.usage(self._engine, self._sequences)
        if len(last) == 1 and not details:
            return [DONE]
        frame = self._base | last | self._signed | details
        return [b"data: " + _encode(frame) + b"\n\n", DONE]

    def _failure(self) -> list[bytes]:
        problem = {
            "message": "the engine died",
            "type": "InternalServerError",
            "param": None,
            "code": 500,
        }
        self._left = 0
        return [b"data: " + _encode({"error": problem}) + b"\n\n", DONE]

    # -- a whole body -----------------------------------------------------------------

    def whole(self) -> tuple[int, bytes]:
        """Status and body, once every choice has ended."""
        if any(s.failed for s in self._sequences):
            problem = {
                "message": "the engine died",
                "type": "InternalServerError",
                "code": 500,
            }
            return 500, _encode({"error": problem})
        body = self._base | {"choices": [self._choice(s) for s in self._sequences]}
        body |= self._signed
        if not self._engine.defects.stream.no_usage:
            body["usage"] = self._dialect.usage(self._engine, self._sequences)
        return 200, _encode(
            body | self._dialect.details(self._engine, self._ask, self._sequences)
        )

    def _choice(self, sequence: Answering) -> dict[str, Any]:
        source = sequence.source
        assert source is not None
        pieces = source.pieces
        entry: dict[str, Any] = {
            "index": sequence.choice,
            "finish_reason": source.finish,
        }
        items = None
        if self._ask.logprobs:
            shown = [p for p in pieces if p.kind in ("text", "reasoning")]
            items = self._logprobs(sequence, 0, shown) + self._end(sequence)
        if self._ask.kind == "chat":
            entry["message"] = self._message(pieces)
            entry["logprobs"] = {"content": items} if items else None
        else:
            entry["text"] = "".join(p.text for p in pieces if p.kind == "text")
            entry["logprobs"] = logprobs.completion(items) if items else None
        if self._ask.body.get("return_token_ids"):
            entry["token_ids"] = logprobs.ids([p.text for p in pieces])
        return entry | self._dialect.choice_details(self._engine, self._ask, sequence)

    def _message(self, pieces: list[Piece]) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(p.text for p in pieces if p.kind == "text"),
        }
        thought = "".join(p.text for p in pieces if p.kind == "reasoning")
        if thought:
            message[self._dialect.reasoning_field] = thought
        calls: dict[int, dict[str, str]] = {}
        for piece in pieces:
            if piece.kind == "name":
                calls[piece.call] = {"name": piece.text, "arguments": ""}
            elif piece.kind == "arguments":
                calls[piece.call]["arguments"] += piece.text
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{self.id[-8:]}{i}", "type": "function", "function": f}
                for i, f in calls.items()
            ]
        return message

    def _end(self, sequence: Answering) -> list[dict[str, Any]]:
        """The end-of-text token of the toy model, drawn like any other."""
        source = sequence.source
        if not self._ask.logprobs or not isinstance(source, ToySource):
            return []
        if source.finish != "stop":
            return []
        ranked = source.ranked(len(source.pieces))
        wrong = self._engine.defects.sampling
        return [logprobs.entry(self._ask, language.END_TOKEN, ranked, wrong)]

    def _logprobs(
        self, sequence: Answering, first: int, group: list[Piece]
    ) -> list[dict[str, Any]]:
        wrong = self._engine.defects.sampling
        source = sequence.source
        tie = sequence.script.tie if sequence.script else None
        out = []
        for at, piece in enumerate(group, first):
            ranked = (
                source.ranked(at)
                if isinstance(source, ToySource)
                else logprobs.made_up(self._ask.key, at, piece.text, tie)
            )
            out.append(logprobs.entry(self._ask, piece.text, ranked, wrong))
        return out
