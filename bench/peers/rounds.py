"""Starts the drivers, row by row, and lets them measure in interleaved rounds. What they log goes to a folder that
figures.py reads. Called by bench/peers/run. README.md has the protocol."""

import argparse
import ctypes
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from rows import ROWS, measured

PR_SET_TIMERSLACK = 29
LIMIT = 15  # seconds for an answer, beyond the time of the measurement


class Failed(Exception):
    pass


class Server:
    """A connection to the private server."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def command(self, *words):
        self.stream.write(f"*{len(words)}\r\n".encode() + b"".join(f"${len(w)}\r\n{w}\r\n".encode() for w in words))
        self.stream.flush()
        head = self.stream.readline().decode().strip()
        if head[0] == "$":
            return self.stream.read(int(head[1:]) + 2).decode()
        if head[0] == "-":
            raise Failed(f"the server: {head}")
        return head[1:]

    def info(self, section):
        lines = (line.split(":", 1) for line in self.command("INFO", section).split("\r\n") if ":" in line)
        return dict(lines)

    def requests(self):
        """Commands so far that clients sent; those that scripts called are no requests."""
        by_scripts = {"get", "set", "del", "exists", "publish", "hexists", "hget", "hset", "hincrby", "pttl", "pexpire"}
        ignored = by_scripts | {"pexpireat", "time", "info", "dbsize", "flushall", "ping"}
        return sum(int(facts.split(",")[0].split("=")[1])
                   for name, facts in self.info("commandstats").items()
                   if name.removeprefix("cmdstat_") not in ignored)


class Process:
    """A driver, to which words are said and which answers with words."""

    def __init__(self, command, errors):
        self.errors = errors
        self.started = time.monotonic_ns()
        with open(errors, "wb") as stderr:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        self.unread = b""

    def tell(self, words):
        try:
            self.popen.stdin.write(words.encode() + b"\n")
            self.popen.stdin.flush()
        except OSError as error:
            raise Failed(self.reason()) from error

    def hear(self, limit):
        until = time.monotonic() + limit
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.popen.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise Failed("no answer in time")
            data = os.read(self.popen.stdout.fileno(), 4096)
            if not data:
                raise Failed(self.reason())
            self.unread += data
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def expect(self, word, limit=LIMIT):
        heard = self.hear(limit)
        if heard != word:
            raise Failed(f"said {heard} instead of {word}")

    def reason(self):
        lines = Path(self.errors).read_text(errors="replace").strip().splitlines()
        return "the driver ended: " + (lines[-1] if lines else "it said nothing")

    def processor_time(self):
        """In nanoseconds, of all its threads."""
        return time.clock_gettime_ns((~self.popen.pid << 3) | 2)

    def end(self):
        try:
            self.popen.stdin.close()
        except OSError:
            pass
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()


class Team:
    """The processes of one peer in one row."""

    def __init__(self, row_name, peer, command, options, server):
        self.row = ROWS[row_name]
        self.peer = peer
        self.command = command
        self.port = options.port
        self.server = server
        self.folder = options.folder / row_name / peer
        self.folder.mkdir(parents=True)
        self.processes = []

    def start(self):
        row = self.row
        for process in range(row.processes):
            words = list(self.command)
            at = words.index("ROW")
            words[at:at + 1] = [row.kind, "--port", str(self.port), "--name", f"peers:{self.peer}",
                                "--threads", str(row.threads), "--section-us", str(row.section_us),
                                "--process", str(process)]
            if row.locks:
                words += ["--locks", str(row.locks), "--lease-ms", str(row.lease_ms)]
            self.processes.append(Process(words, self.folder / f"errors.{process}"))
        for process in self.processes:
            process.expect("ready")

    def end(self):
        for process in self.processes:
            process.end()
        self.processes = []

    def round(self, number, seconds):
        folder = self.folder / str(number)
        folder.mkdir()
        facts = {"seconds": seconds}
        if self.row.kind == "start_up":
            self.start()
            facts["started"] = self.processes[0].started
        for at, process in enumerate(self.processes):
            process.tell(f"go {seconds} {folder / str(at)}.log")
        if self.row.kind == "hand_over":
            self.relay(seconds)
        if self.row.kind == "held":
            facts |= self.watch(seconds)
        for process in self.processes:
            process.expect("done", seconds + LIMIT)
        if self.row.kind == "start_up":
            self.end()
        (folder / "facts.json").write_text(json.dumps(facts))

    def relay(self, seconds):
        """Tells the one that waits that the other has the lock, and the other way round."""
        holder, waiter = self.processes
        while (word := holder.hear(seconds + LIMIT)) == "held":
            waiter.tell("ask")
            waiter.expect("had")
            holder.tell("next")
        if word != "done":
            raise Failed(f"said {word} instead of done")
        waiter.tell("end")
        holder.unread = b"done\n" + holder.unread

    def watch(self, seconds):
        """What it takes to keep the locks."""
        process = self.processes[0]
        process.expect("held", LIMIT)
        time.sleep(self.row.lease_ms / 1000)
        server_clock = (~int(self.server.info("server")["process_id"]) << 3) | 2

        def counters():
            return (time.monotonic_ns(), process.processor_time(), time.clock_gettime_ns(server_clock),
                    self.server.requests())

        before = counters()
        time.sleep(max(seconds, 2 * self.row.lease_ms / 1000))
        taken, client, server, requests = (b - a for a, b in zip(before, counters()))
        keys = int(self.server.command("DBSIZE"))
        if keys < self.row.locks:
            raise Failed(f"only {keys} of {self.row.locks} locks were still there")
        process.tell("release")
        return {"taken": taken, "client": client, "server": server, "requests": requests}


def guarded(team, work):
    """A peer that fails is out of the row, and the reason is kept."""
    try:
        work()
        return True
    except Failed as error:
        print(f"    {team.peer}: {error}", file=sys.stderr)
        (team.folder / "failed").write_text(str(error))
        for process in team.processes:
            process.popen.kill()
        team.end()
        return False


def run_row(name, commands, options, server):
    row = ROWS[name]
    teams = [Team(name, peer, command, options, server) for peer, command in commands.items() if measured(name, peer)]
    if not teams:
        return
    print(f"==> {name}", file=sys.stderr)
    try:
        if row.kind != "start_up":
            teams = [team for team in teams if guarded(team, team.start)]
        for number in range(0 if row.warm else 1, options.rounds + 1):  # round 0 is not looked at: it warms up
            seconds = options.seconds if number else options.warm_up
            for team in list(teams):
                server.command("FLUSHALL")
                if not guarded(team, lambda: team.round(number, seconds)):
                    teams.remove(team)
                time.sleep(0.05)  # what is released behind the caller's back
    finally:
        for team in teams:
            team.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--warm-up", type=float, default=2)
    parser.add_argument("--row", action="append", choices=list(ROWS))
    parser.add_argument("--driver", action="append", required=True, metavar="PEER=COMMAND",
                        help="the word ROW is where the driver's arguments go")
    options = parser.parse_args()
    commands = {peer: shlex.split(command) for peer, command in (one.split("=", 1) for one in options.driver)}
    # Inherited by all drivers: a sleep under a lock takes its exact time, and not 50 µs more.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    server = Server(options.port)
    for name in options.row or ROWS:
        run_row(name, commands, options, server)


if __name__ == "__main__":
    main()
