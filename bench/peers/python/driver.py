"""One process that locks and unlocks with redis-py, in threads or in tasks of asyncio; bench/peers/README.md has the
protocol that all drivers follow."""

import argparse
import asyncio
import sys
import threading
import time

import redis
import redis.asyncio

now = time.monotonic_ns
timeout = 10  # seconds; the lock is not renewed


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("row")
    parser.add_argument("--mode", choices=["threads", "asyncio"], required=True)
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--name", default="peers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--section-us", type=int, default=0)
    parser.add_argument("--process", type=int, default=0)
    return parser.parse_args()


def say(word):
    print(word, flush=True)


def hear(word):
    return sys.stdin.readline().strip() == word


def must_hear(word):
    if not hear(word):
        raise SystemExit(f"no {word}")


class Driver:
    """What both modes share. A line is [begin, granted, released, thread], in nanoseconds of the monotonic clock;
    released is before the call."""

    def __init__(self, options):
        self.options = options

    def name(self, thread):
        own = self.options.row == "uncontended"
        return f"{self.options.name}:{self.options.process}:{thread}" if own else self.options.name

    def section(self):
        # time.sleep also under asyncio, whose own sleep has a resolution of 1 ms: so it takes as long as in the other
        # drivers.
        if self.options.section_us:
            time.sleep(self.options.section_us / 1e6)

    def give_section(self):
        say("held")
        self.section()

    def write(self, lines, path):
        with open(path, "w", encoding="ascii") as file:
            for begin, granted, released, thread in lines:
                file.write(f"{begin} {granted} {released} {self.options.process} {thread}\n")

    def orders(self):
        """What standard input says: for how many seconds, and where the log goes."""
        for order in iter(sys.stdin.readline, ""):
            _, seconds, path = order.split()
            yield float(seconds), path


class Threads(Driver):
    def __init__(self, options):
        super().__init__(options)
        self.client = redis.Redis(port=options.port)

    def once(self, name, thread, work):
        begin = now()
        with self.client.lock(name, timeout=timeout):
            granted = now()
            work()
            released = now()
        return [begin, granted, released, thread]

    def loop(self, end):
        lines = []

        def body(thread):
            own = []
            while now() < end:
                own.append(self.once(self.name(thread), thread, self.section))
            lines.extend(own)

        running = [threading.Thread(target=body, args=[thread]) for thread in range(self.options.threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return lines

    def give(self, end):
        lines = []
        while now() < end:
            lines.append(self.once(self.options.name, 0, self.give_section))
            must_hear("next")
        return lines

    def take(self):
        lines = []
        while hear("ask"):
            lines.append(self.once(self.options.name, 0, lambda: None))
            say("had")
        return lines

    def round(self, seconds):
        end = now() + int(seconds * 1e9)
        if self.options.row != "hand_over":
            return self.loop(end)
        return self.give(end) if self.options.process == 0 else self.take()

    def run(self, start):
        first = self.once(self.options.name, 0, lambda: None)
        first[0] = start
        say("ready")
        for seconds, path in self.orders():
            self.write([first] if self.options.row == "start_up" else self.round(seconds), path)
            say("done")


class Tasks(Driver):
    def __init__(self, options):
        super().__init__(options)
        self.client = redis.asyncio.Redis(port=options.port)

    async def once(self, name, thread, work):
        begin = now()
        async with self.client.lock(name, timeout=timeout):
            granted = now()
            work()
            released = now()
        return [begin, granted, released, thread]

    async def loop(self, end):
        async def body(thread):
            own = []
            while now() < end:
                own.append(await self.once(self.name(thread), thread, self.section))
            return own

        parts = await asyncio.gather(*(body(thread) for thread in range(self.options.threads)))
        return [line for part in parts for line in part]

    async def give(self, end):
        lines = []
        while now() < end:
            lines.append(await self.once(self.options.name, 0, self.give_section))
            must_hear("next")  # nothing else is to be done meanwhile
        return lines

    async def take(self):
        lines = []
        while hear("ask"):
            lines.append(await self.once(self.options.name, 0, lambda: None))
            say("had")
        return lines

    async def round(self, seconds):
        end = now() + int(seconds * 1e9)
        if self.options.row != "hand_over":
            return await self.loop(end)
        return await (self.give(end) if self.options.process == 0 else self.take())

    async def work(self, start):
        first = await self.once(self.options.name, 0, lambda: None)
        first[0] = start
        say("ready")
        for seconds, path in self.orders():
            self.write([first] if self.options.row == "start_up" else await self.round(seconds), path)
            say("done")

    def run(self, start):
        asyncio.run(self.work(start))


if __name__ == "__main__":
    started = now()
    chosen = arguments()
    (Threads if chosen.mode == "threads" else Tasks)(chosen).run(started)
