"""Computes all figures from the logs that rounds.py collected, and prints them. A line of a log is one lock:
<begin_ns> <granted_ns> <released_ns> <process> <thread>."""

import argparse
import json
import statistics
import sys
from pathlib import Path

from rows import ROWS

OURS = "redislock"


class Overlap(Exception):
    pass


class Round:
    """The logs of all processes of a peer in one round."""

    def __init__(self, folder):
        self.facts = json.loads((folder / "facts.json").read_text())
        self.locks = []  # begin, granted, released, process, thread
        for log in sorted(folder.glob("*.log")):
            with log.open(encoding="ascii") as lines:
                self.locks += [tuple(map(int, line.split())) for line in lines]
        if not self.locks:
            raise ValueError("nobody had a lock")
        self.locks.sort(key=lambda lock: lock[1])

    def check(self, own_names):
        """Under one name no two may have the lock at once."""
        until = {}
        overlaps = 0
        for _, granted, released, process, thread in self.locks:
            name = (process, thread) if own_names else None
            overlaps += granted < until.get(name, granted)
            until[name] = max(until.get(name, released), released)
        if overlaps:
            raise Overlap(f"two had the lock at once, {overlaps} times")

    def within(self):
        """The locks that ended in the time that was given, without what came when others had stopped."""
        begin = min(lock[0] for lock in self.locks)
        end = begin + self.facts["seconds"] * 1e9
        return [lock for lock in self.locks if lock[2] <= end]


def rate(round_):
    return [len(round_.within()) / round_.facts["seconds"]]


def hot(round_, processes):
    seconds = round_.facts["seconds"]
    locks = round_.within()
    changes = sum(a[3] != b[3] for a, b in zip(locks, locks[1:]))
    longest = max(lock[1] - lock[0] for lock in round_.locks)
    served = [sum(lock[3] == process for lock in locks) for process in range(processes)]
    return [len(locks) / seconds, changes / seconds, longest / 1e6, min(served) * processes / len(locks)]


def hand_over(round_):
    given = [lock for lock in round_.locks if lock[3] == 0]
    taken = [lock for lock in round_.locks if lock[3] == 1]
    # A process that asked only after the lock was free did not wait for it.
    return [statistics.median((b[1] - a[2]) / 1e3 for a, b in zip(given, taken) if b[0] < a[2])]


def held(round_):
    facts = round_.facts
    seconds = facts["taken"] / 1e9
    return [facts["client"] / 1e6 / seconds, facts["server"] / 1e6 / seconds, facts["requests"] / seconds]


def start_up(round_):
    begin, granted = round_.locks[0][:2]
    return [(granted - begin) / 1e6, (granted - round_.facts["started"]) / 1e6]


def figures_of(row, folder):
    """A list for each round, of the row's figures."""
    compute = {"uncontended": rate, "hot": lambda one: hot(one, row.processes)[:len(row.figures)],
               "hand_over": hand_over, "held": held, "start_up": start_up}[row.kind]
    rounds = []
    for one in sorted(path for path in folder.iterdir() if path.is_dir()):
        logs = Round(one)
        logs.check(own_names=row.kind in ("uncontended", "held"))
        if one.name != "0":
            rounds.append(compute(logs))
    return rounds


def collect(folder, peers):
    """For each row and peer: the rounds, or why there are none."""
    results = {}
    for name, row in ROWS.items():
        for peer in peers:
            own = folder / name / peer
            if not own.is_dir():
                continue
            failed = own / "failed"
            try:
                results[name, peer] = failed.read_text() if failed.exists() else figures_of(row, own)
            except (Overlap, ValueError, OSError, statistics.StatisticsError) as error:
                results[name, peer] = str(error)
    return results


def text(value):
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def lines_of(results, peers):
    """row, figure, {peer: values of the rounds or a text}"""
    for name, row in ROWS.items():
        cells = {peer: results[name, peer] for peer in peers if (name, peer) in results}
        if cells:
            for at, figure in enumerate(row.figures):
                yield name, figure, {peer: cell if isinstance(cell, str) else [one[at] for one in cell]
                                     for peer, cell in cells.items()}


def markdown(results, peers):
    notes = []
    print("| row | figure |", " | ".join(peers), "|")
    print("|---" * (len(peers) + 2) + "|")
    for name, figure, cells in lines_of(results, peers):
        medians = {peer: statistics.median(cell) for peer, cell in cells.items() if not isinstance(cell, str)}
        sign = 1 if figure.more_is_better else -1
        best = max(medians, key=lambda peer: sign * medians[peer], default=None)
        shown = []
        for peer in peers:
            if peer in medians:
                cell = text(medians[peer])
                if peer == best:
                    cell = f"**{cell}**"
                if not peer.startswith(OURS) and OURS in medians and sign * (medians[peer] - medians[OURS]) > 0:
                    cell += " ▲"
                shown.append(cell)
            elif peer in cells:
                shown.append("failed")
                note = f"`{name}`, {peer}: {cells[peer]}"
                if note not in notes:
                    notes.append(note)
            else:
                shown.append("–")
        better = "more is better" if figure.more_is_better else "less is better"
        print(f"| `{name}` | {figure.name}, {figure.unit}; {better} |", " | ".join(shown), "|")
    print()
    print("Bold: the best. ▲: better than redislock. –: not measured. Medians of the rounds.")
    for name, row in ROWS.items():
        out = [f"{peer} {why}" for peer, why in row.left_out.items() if peer in peers]
        if out and any((name, peer) in results for peer in peers):
            notes.append(f"`{name}`, left out: {', '.join(out)}")
    for note in notes:
        print(f"\n* {note}" if note == notes[0] else f"* {note}")


def tsv(results, peers, file):
    print("row", "figure", "unit", "better", "peer", "median", "least", "greatest", "rounds", sep="\t", file=file)
    for name, figure, cells in lines_of(results, peers):
        for peer, cell in cells.items():
            values = ["failed", cell, "", 0] if isinstance(cell, str) else \
                [*(f"{value:.6g}" for value in (statistics.median(cell), min(cell), max(cell))), len(cell)]
            print(name, figure.name, figure.unit, "more" if figure.more_is_better else "less", peer, *values, sep="\t",
                  file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", required=True, help="in the order of the columns, separated by spaces")
    parser.add_argument("--tsv", action="store_true", help="one line a row, figure and peer instead of the table")
    parser.add_argument("--tsv-file", help="beside the table, the same into this file")
    options = parser.parse_args()
    peers = options.peers.split()
    results = collect(options.folder, peers)
    if options.tsv:
        tsv(results, peers, sys.stdout)
    else:
        markdown(results, peers)
    if options.tsv_file:
        with open(options.tsv_file, "w", encoding="utf-8") as file:
            tsv(results, peers, file)
    return any(isinstance(cell, str) for cell in results.values())


if __name__ == "__main__":
    sys.exit(main())
