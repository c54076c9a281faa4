"""Shadow pairs: a sampled prompt is asked of the other arm too, when it is quiet.

The client is long gone and sees nothing of it. Prompts wait in memory, few and not for
long. Nothing goes to the candidate while its weight is 0 or its lease has run out, and
a rollback cuts what is under way.
"""

import http.client
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.splitting.shadow_rules import is_within, no_replay
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.splitting.split import LiveArm
from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.canary.tasting.shadow_pairs import CopiedPair
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.weighing.health import Budget
from routeproof.proof.canary import PrivacySpec

WAITING_MAX = 64
LOOK_EVERY_S = 1.0
PIECE_BYTES = 64 * 1024


@dataclass(slots=True)
class Replayer:
    """Replays sampled prompts one at a time, in a thread of its own.

    Attributes:
        upstreams: Where each arm is asked: ``canary`` and ``baseline``, with the
            operator's keys. A caller's own key is never used for a request the caller
            did not make.
        take: Takes a finished pair; false when it has no room.
        counts: What became of sampled prompts: ``sent``, ``paired``, and why not.
        by_arm: Prompts lost for want of room or time, by the arm that served them.
    """

    privacy: PrivacySpec
    upstreams: Mapping[str, Endpoint]
    lease: Lease
    meter: ShareMeter
    take: Callable[[CopiedPair], bool]
    wall: Callable[[], float]
    clock: Callable[[], float]
    counts: Counter[str] = field(default_factory=Counter, init=False)
    by_arm: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    last_error: str | None = field(default=None, init=False)
    _budget: Budget = field(init=False)
    _waiting: deque[tuple[float, Copy]] = field(default_factory=deque, init=False)
    _running: http.client.HTTPConnection | None = field(default=None, init=False)
    _is_ending: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._budget = Budget(self.privacy.replays_per_minute, self.clock)

    def offer(self, copy: Copy) -> None:
        """Take a finished sampled exchange on the event loop; most are left out."""
        if copy.arm == "baseline" or copy.is_too_large:
            return
        if copy.no_replay is not None:
            self.counts[copy.no_replay] += 1
        elif len(self._waiting) >= WAITING_MAX:
            self._lose(copy, "no_room")
        else:
            self._waiting.append((self.clock(), copy))

    def waiting(self) -> int:
        """Prompts in memory now."""
        return len(self._waiting)

    def forget(self, owner: str) -> int:
        """Forget the waiting prompts of one user; returns how many."""
        gone = 0
        for each in list(self._waiting):
            if each[1].owner == owner:
                with suppress(ValueError):  # its turn has come meanwhile
                    self._waiting.remove(each)
                    gone += 1
        return gone

    def cut(self) -> None:
        """Forget all that waits and break off what runs: the candidate goes back."""
        while self._waiting:
            with suppress(IndexError):
                self._lose(self._waiting.popleft()[1], "rolled_back")
        running = self._running
        if running is not None and running.sock is not None:
            with suppress(OSError):
                running.sock.shutdown(socket.SHUT_RDWR)

    def start(self) -> None:
        """Replay from now on."""
        if self._thread is None and self.privacy.replay:
            self._is_ending.clear()
            self._thread = threading.Thread(
                target=self._work, daemon=True, name="replayer"
            )
            self._thread.start()

    def stop(self) -> None:
        """Cut what runs and end."""
        if self._thread is not None:
            self._is_ending.set()
            self.cut()
            self._thread.join(timeout=5.0)
            self._thread = None

    def _work(self) -> None:
        while not self._is_ending.is_set():
            try:
                was_sent = self.once()
                self.last_error = None
            except Exception as error:  # the border of this thread
                self.last_error, was_sent = f"{type(error).__name__} on replay", False
            if not was_sent:
                self._is_ending.wait(LOOK_EVERY_S)

    def once(self) -> bool:
        """Replay the oldest waiting prompt if it may run now.

        Returns:
            Whether one was sent.
        """
        self._expire()
        if not self._waiting or not self._is_quiet() or not self._budget.take():
            return False
        try:
            _, live = self._waiting.popleft()
        except IndexError:  # a rollback emptied it
            return False
        why = no_replay({}, live.body)
        if why is not None:
            self.counts[why] += 1
            return False
        self.counts["sent"] += 1
        replay = self._replay(live)
        if replay is None:
            self._lose(live, "cut")
        elif self.take(CopiedPair(live, replay)):
            self.counts["paired"] += 1
        else:
            self._lose(live, "no_room")
        return True

    def _is_quiet(self) -> bool:
        """Whether a replay would disturb nobody, and the candidate may be asked."""
        return (
            self.lease.weight_ppm() > 0
            and self.meter.in_flight.total() <= self.privacy.replay_in_flight_max
            and is_within(self.wall(), self.privacy.replay_hours)
        )

    def _expire(self) -> None:
        oldest_s = self.clock() - self.privacy.replay_wait_s
        while self._waiting and self._waiting[0][0] < oldest_s:
            self._lose(self._waiting.popleft()[1], "expired")

    def _lose(self, copy: Copy, why: str) -> None:
        self.counts[why] += 1
        self.by_arm[why, copy.arm] += 1

    def _replay(self, live: Copy) -> Copy | None:
        """The other arm's answer; ``None`` when a rollback broke it off."""
        other: LiveArm = "control" if live.arm == "canary" else "canary"
        ended: list[Copy] = []
        replay = Copy(
            request_id=f"{live.request_id}.shadow",
            arm=other,
            stratum=live.stratum,
            raw=live.raw,
            owner=live.owner,
            done=ended.append,
            path=live.path,
        )
        endpoint = self.upstreams["canary" if other == "canary" else "baseline"]
        outcome = self._exchange(replay, endpoint)
        if self.lease.weight_ppm() == 0 or self._is_ending.is_set():
            return None
        replay.end(outcome)
        if replay.capture.status == 0:
            replay.capture.failure = ("connection_error", "no answer to the replay")
        return ended[0]

    def _exchange(self, replay: Copy, endpoint: Endpoint) -> str:
        connection = endpoint.connection()
        self._running = connection
        heads = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        try:
            connection.request(
                "POST",
                endpoint.target(replay.path),
                replay.raw,
                {**heads, **endpoint.headers},
            )
            response = connection.getresponse()
            replay.head(
                response.status,
                [(n.encode("latin-1"), v.encode("latin-1"))
                 for n, v in response.getheaders()],
            )  # fmt: skip
            while piece := response.read1(PIECE_BYTES):
                replay.piece(piece, self.clock())
                if self.lease.weight_ppm() == 0:
                    return "cut_short"
            return "completed"
        except (OSError, http.client.HTTPException):
            return "cut_short"
        finally:
            self._running = None
            connection.close()
