// One process that locks and unlocks with redsync or rueidislock; bench/peers/README.md has the protocol that all
// drivers follow.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sys/unix"
)

// A locker waits for the lock of a name; the function that it returns releases the lock.
type locker interface {
	lock(name string) (unlock func(), err error)
}

type redsyncLocker struct{ redsync *redsync.Redsync }

func (l redsyncLocker) lock(name string) (func(), error) {
	mutex := l.redsync.NewMutex(name)
	for {
		err := mutex.Lock()
		if err == nil {
			break
		}
		var taken *redsync.ErrTaken
		if !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
	return func() {
		if ok, err := mutex.Unlock(); !ok || err != nil {
			log.Fatalf("redsync: unlock: %v, %v", ok, err)
		}
	}, nil
}

type rueidisLocker struct{ locker rueidislock.Locker }

// How long one attempt waits: with a majority of one key this version can miss that the lock became free, and would
// then wait for ever. README.md has more.
const patience = time.Second

func (l rueidisLocker) lock(name string) (func(), error) {
	for {
		attempt, giveUp := context.WithCancel(context.Background())
		limit := time.AfterFunc(patience, giveUp)
		held, unlock, err := l.locker.WithContext(attempt, name)
		switch {
		case err == nil && limit.Stop():
			return func() {
				if held.Err() != nil {
					log.Fatalf("rueidislock: %s was lost", name)
				}
				unlock()
				giveUp()
			}, nil
		case err == nil:
			unlock() // granted just when the time was over
		case !errors.Is(err, context.Canceled):
			giveUp()
			return nil, err
		}
	}
}

func newLocker(peer, address string, lease time.Duration) (locker, error) {
	switch peer {
	case "redsync":
		client := redis.NewClient(&redis.Options{Addr: address})
		return redsyncLocker{redsync.New(goredis.NewPool(client))}, nil
	case "rueidislock":
		made, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
			KeyMajority:    1,
			NoLoopTracking: true,
			KeyValidity:    lease,
		})
		return rueidisLocker{made}, err
	}
	return nil, fmt.Errorf("no such peer: %s", peer)
}

func now() int64 {
	var moment unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &moment); err != nil {
		log.Fatal(err)
	}
	return moment.Nano()
}

// Sleeps for as long as the other drivers do: time.Sleep has a resolution of 1 ms in an idle program.
func sleep(duration time.Duration) {
	if duration > 0 {
		rest := unix.NsecToTimespec(duration.Nanoseconds())
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, &rest) == unix.EINTR {
		}
	}
}

// One lock, in nanoseconds of the monotonic clock; released is before the call.
type line struct {
	begin, granted, released int64
	thread                   int
}

type driver struct {
	row, name                        string
	threads, section, process, locks int
	locker                           locker
	input                            *bufio.Scanner
}

func (d *driver) once(name string, thread int, work func()) line {
	result := line{thread: thread, begin: now()}
	unlock, err := d.locker.lock(name)
	result.granted = now()
	if err != nil {
		log.Fatal(err)
	}
	work()
	result.released = now()
	unlock()
	return result
}

func (d *driver) ownName(number int) string {
	return fmt.Sprintf("%s:%d:%d", d.name, d.process, number)
}

func (d *driver) work() { sleep(time.Duration(d.section) * time.Microsecond) }

func (d *driver) hear(word string) bool { return d.input.Scan() && d.input.Text() == word }

// Runs body in each goroutine and joins the lines of all.
func (d *driver) inAll(body func(thread int) []line) []line {
	parts := make([][]line, d.threads)
	var all sync.WaitGroup
	for thread := range d.threads {
		all.Add(1)
		go func() {
			defer all.Done()
			parts[thread] = body(thread)
		}()
	}
	all.Wait()
	var lines []line
	for _, part := range parts {
		lines = append(lines, part...)
	}
	return lines
}

func (d *driver) loop(end int64) []line {
	return d.inAll(func(thread int) (lines []line) {
		name := d.name
		if d.row == "uncontended" {
			name = d.ownName(thread)
		}
		for now() < end {
			lines = append(lines, d.once(name, thread, d.work))
		}
		return lines
	})
}

// The process that holds the lock and gives it away.
func (d *driver) give(end int64) (lines []line) {
	for now() < end {
		lines = append(lines, d.once(d.name, 0, func() {
			fmt.Println("held")
			d.work()
		}))
		if !d.hear("next") {
			log.Fatal("no next")
		}
	}
	return lines
}

// The process that waits for the lock.
func (d *driver) take() (lines []line) {
	for d.hear("ask") {
		lines = append(lines, d.once(d.name, 0, func() {}))
		fmt.Println("had")
	}
	return lines
}

// Holds many locks at once until the line "release" comes.
func (d *driver) hold() []line {
	var held sync.WaitGroup
	held.Add(d.threads)
	release := make(chan struct{})
	go func() {
		held.Wait()
		fmt.Println("held")
		if !d.hear("release") {
			log.Fatal("no release")
		}
		close(release)
	}()
	return d.inAll(func(thread int) (lines []line) {
		var unlocks []func()
		for number := thread; number < d.locks; number += d.threads {
			one := line{thread: number, begin: now()}
			unlock, err := d.locker.lock(d.ownName(number))
			if err != nil {
				log.Fatal(err)
			}
			one.granted = now()
			lines = append(lines, one)
			unlocks = append(unlocks, unlock)
		}
		held.Done()
		<-release
		for at, unlock := range unlocks {
			lines[at].released = now()
			unlock()
		}
		return lines
	})
}

func (d *driver) round(seconds float64) []line {
	end := now() + int64(seconds*1e9)
	switch {
	case d.row == "held":
		return d.hold()
	case d.row != "hand_over":
		return d.loop(end)
	case d.process == 0:
		return d.give(end)
	}
	return d.take()
}

func (d *driver) write(lines []line, path string) {
	var text strings.Builder
	for _, one := range lines {
		fmt.Fprintln(&text, one.begin, one.granted, one.released, d.process, one.thread)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

func main() {
	start := now()
	if len(os.Args) < 2 {
		log.Fatal("usage: driver <row> --peer NAME [options]")
	}
	d := driver{row: os.Args[1], input: bufio.NewScanner(os.Stdin)}
	options := flag.NewFlagSet("driver", flag.ExitOnError)
	peer := options.String("peer", "", "redsync or rueidislock")
	port := options.Int("port", 6379, "")
	lease := options.Int("lease-ms", 0, "")
	options.StringVar(&d.name, "name", "peers", "")
	options.IntVar(&d.threads, "threads", 1, "")
	options.IntVar(&d.section, "section-us", 0, "")
	options.IntVar(&d.process, "process", 0, "")
	options.IntVar(&d.locks, "locks", 0, "")
	_ = options.Parse(os.Args[2:]) // ends the program when it fails

	var err error
	address := "127.0.0.1:" + strconv.Itoa(*port)
	if d.locker, err = newLocker(*peer, address, time.Duration(*lease)*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	first := d.once(d.name, 0, func() {})
	first.begin = start
	fmt.Println("ready")
	for d.input.Scan() {
		var seconds float64
		var path string
		if _, err := fmt.Sscanf(d.input.Text(), "go %g %s", &seconds, &path); err != nil {
			log.Fatal(err)
		}
		lines := []line{first}
		if d.row != "start_up" {
			lines = d.round(seconds)
		}
		d.write(lines, path)
		fmt.Println("done")
	}
}
