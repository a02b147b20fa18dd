"""The rows, what is asked of the drivers in each, and the figures that come out of it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    more_is_better: bool


@dataclass(frozen=True)
class Row:
    kind: str  # what the driver is told
    figures: list[Figure]
    processes: int = 1
    threads: int = 1
    section_us: int = 0
    locks: int = 0
    lease_ms: int = 0
    warm: bool = True
    left_out: dict[str, str] = field(default_factory=dict)  # peer: why


PAIRS = [Figure("pairs", "/s", True)]
LOCKS = Figure("locks", "/s", True)
NOT_RENEWED = "does not renew by itself"

ROWS = {
    "uncontended_1": Row("uncontended", PAIRS),
    "uncontended_8": Row("uncontended", PAIRS, threads=8),
    "uncontended_64": Row("uncontended", PAIRS, threads=64),
    "hot_1": Row("hot", [LOCKS], threads=8, section_us=200),
    "hot_4": Row("hot", [LOCKS, Figure("changes of process", "/s", True), Figure("longest wait", "ms", False),
                         Figure("least-served process", "of the mean", True)],
                 processes=4, threads=2, section_us=200),
    "hand_over": Row("hand_over", [Figure("median", "µs", False)], processes=2, section_us=3000),
    "held_10000": Row("held", [Figure("client", "ms/s", False), Figure("server", "ms/s", False),
                               Figure("requests", "/s", False)],
                      threads=64, locks=10000, lease_ms=3000, warm=False,
                      left_out=dict.fromkeys(["redsync", "redis-py", "redis-py-asyncio"], NOT_RENEWED)),
    "start_up": Row("start_up", [Figure("library loaded", "ms", False), Figure("whole process", "ms", False)],
                    warm=False),
}

# Other forms of a library, measured in some rows only.
FORMS = {
    "redislock-unlock": {"uncontended_1", "uncontended_8", "uncontended_64", "hand_over"},
    "redislock-fair": {"hot_4", "hand_over"},
}


def measured(row, peer):
    """Whether the row is for that peer."""
    return peer not in ROWS[row].left_out and row in FORMS.get(peer, {row})
