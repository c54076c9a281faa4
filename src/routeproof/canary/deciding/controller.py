"""The controller: looks, decides, writes; the only writer besides the operator."""

from collections.abc import Callable
from dataclasses import dataclass, field

from routeproof.canary.deciding.state import Command, Seen, State, Steps, advance, obey
from routeproof.canary.deciding.store import AuditEntry, StaleRevisionError, StateStore
from routeproof.errors import ConfigError, StoredRunError


@dataclass(slots=True)
class Controller:
    """Moves one canary through its states.

    Attributes:
        look: What is seen now; called once per tick.
        wall: Wall clock, Unix seconds; states outlive a process.
        last_error: The store's last failure in words; ``None`` while it works.
    """

    store: StateStore
    name: str
    steps: Steps
    look: Callable[[], Seen]
    wall: Callable[[], float]
    last_error: str | None = field(default=None, init=False)

    def tick(self) -> State | None:
        """Look once and move if there is reason to.

        Returns:
            The state now stored, or ``None`` when the store did not answer: relays
            then run out of their lease.
        """
        try:
            state = self.store.read(self.name)
            if state is None:
                self.last_error = f"the store holds no canary `{self.name}`"
                return None
            seen = self.look()
            moved = advance(state, seen, self.steps)
            if moved is not state:
                self._write(moved, state, "controller", _action(state, moved), seen)
        except StaleRevisionError:
            return self._as_others_left_it()
        except StoredRunError as error:
            self.last_error = error.message
            return None
        self.last_error = None
        return moved

    def _as_others_left_it(self) -> State | None:
        try:
            return self.store.read(self.name)
        except StoredRunError as error:
            self.last_error = error.message
            return None

    def command(self, command: Command, *, actor: str, reason: str = "") -> State:
        """Carry out an operator's command, however often somebody else writes.

        Raises:
            ConfigError: The command makes no sense now; the message says why.
            StoredRunError: The store cannot be written.
        """
        for _ in range(20):
            state = self.store.read(self.name)
            if state is None:
                raise ConfigError(f"there is no canary `{self.name}`")
            try:
                moved = obey(state, command, self.wall(), self.steps)
            except ValueError as error:
                raise ConfigError(str(error)) from None
            if moved is state:
                return state
            try:
                self._write(moved, state, actor, command, None, reason)
            except StaleRevisionError:
                continue
            return moved
        raise StoredRunError(f"canary {self.name} is written too often to command it")

    def _write(
        self,
        moved: State,
        state: State,
        actor: str,
        action: str,
        seen: Seen | None,
        reason: str = "",
    ) -> None:
        numbers: dict[str, float | int | str | None] = {
            "weight_ppm_before": state.weight_ppm,
            "weight_ppm_after": moved.weight_ppm,
        }
        if seen is not None:
            numbers |= {
                "scored_canary": seen.scored_canary,
                "scored_control": seen.scored_control,
                "observed_share": seen.observed_share,
                **{f"signal.{n}": o.value for n, o in sorted(seen.signals.items())},
            }
        entry = AuditEntry(
            name=moved.name,
            actor=actor,
            action=action,
            reason=reason or moved.reason,
            at_s=self.wall(),
            revision=moved.revision,
            numbers=numbers,
        )
        self.store.write(moved, expected=state.revision, entry=entry)


def _action(before: State, after: State) -> str:
    if after.phase != before.phase:
        return after.phase
    if after.step != before.step:
        return "widen"
    return "page" if after.paged and not before.paged else "note"
