#!/usr/bin/env bash
# Tests the tool as scripts and people use it: check.sh CASE TOOL HARD_TO_END. Each case has a redis-server of its own,
# on a unix socket.
set -uo pipefail
case_name=$1
tool=$2
hard_to_end=$3

folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/redis" --unixsocketperm 777 --dir "$folder" --save '' --appendonly yes \
    --loglevel warning >"$folder/log" 2>&1 &
server=$!
cleanup() {
    local status=$?
    [ ! -e "$folder/tmux" ] || tmux -S "$folder/tmux" kill-server
    kill -CONT $server 2>/dev/null
    kill $server 2>/dev/null
    wait $server 2>/dev/null
    rm -rf "$folder"
    exit $status
}
trap cleanup EXIT

fail() {
    printf '%s: %s\n' "$case_name" "$*" >&2
    [ ! -e "$folder/err" ] || sed 's/^/  stderr: /' "$folder/err" >&2
    exit 1
}
redis() { redis-cli -s "$folder/redis" "$@"; }
eventually() { # eventually <command>...: the command succeeds within 20 s
    local tries
    for tries in $(seq 400); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.05
    done
    [ -z "${on_screen:-}" ] || $on_screen >&2
    fail "never: $*"
}
is() { [ "$1" = "$2" ] || fail "${3:-is} $1, not $2"; }
has() { grep -q -- "$1" "$2" || fail "no $1 in: $(cat "$2")"; }
gone() { # with all its threads
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
    [ "$state" = Z ] && [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -le 1 ]
}
free() { [ "$(redis exists "$1")" = 0 ]; }
listened() { [ -n "$(redis pubsub channels)" ]; }
held() { [ "$(redis exists "$1")" = 1 ]; }
url() { printf 'unix://%s?watchdog_timeout=%s' "$folder/redis" "${1:-30000}"; }
run() { "$tool" run "$@"; }

eventually redis ping
export REDISLOCK_URL
REDISLOCK_URL=$(url)

# --- run -------------------------------------------------------------------------------------------------------------

statuses() {
    run job -- sh -c 'exit 7'
    is $? 7
    run job -- true
    is $? 0
    run job -- sh -c 'kill -KILL $$'
    is $? 137
    run job -- "$folder/nothing" 2>"$folder/err"
    is $? 127
    has 'No such file' "$folder/err"
    run job -- "$folder" 2>"$folder/err"
    is $? 126
    run job -- 2>"$folder/err"
    is $? 125
    run --lease 1 -- true 2>"$folder/err"
    is $? 125
    "$tool" who run --lease 2>"$folder/err"
    is $? 2
    run --lease 1x job -- true 2>"$folder/err"
    is $? 125
    has 'a time is written as' "$folder/err"
    run --lease 1ms job -- true 2>"$folder/err"
    is $? 125
    has '10 ms to 30 days' "$folder/err"
    run --url redis://127.0.0.1:0 job -- true 2>"$folder/err"
    is $? 125
    run job -- "$folder/nothing" 2>/dev/full
    is $? 127
    run job -- "$folder/nothing" <&- >&- 2>&-
    is $? 127
    ! held job || fail 'the lock was left'
}

exports() {
    run 'my job' -- sh -c 'echo "$REDISLOCK_NAME,$REDISLOCK_TOKEN"' >"$folder/one"
    run 'my job' -- sh -c 'echo "$REDISLOCK_NAME,$REDISLOCK_TOKEN"' >"$folder/two"
    has '^my job,[0-9]*$' "$folder/one"
    [ "$(cut -d, -f2 "$folder/two")" -gt "$(cut -d, -f2 "$folder/one")" ] || fail 'tokens do not grow'
    is "$(run job -- printf '%s|' -- --lease 'a b')" '--|--lease|a b|' arguments
    is "$(echo input | run job -- cat)" input
}

excludes() {
    "$tool" run job -- sleep 30 &
    local holder=$!
    eventually held job
    run --wait 0 job -- true 2>"$folder/err"
    is $? 75
    has 'could not be taken' "$folder/err"
    run --wait 2s -E 9 job -- true 2>"$folder/err"
    is $? 9
    "$tool" run job -- true 2>"$folder/err" &
    local waiter=$!
    eventually listened
    kill -HUP $waiter # nobody waits any more
    wait $waiter
    is $? 129
    "$tool" run job -- true &
    waiter=$!
    kill -TERM $holder # passed on
    wait $holder
    is $? 143
    wait $waiter
    is $? 0
}

inherits() {
    local look='ls -l /proc/self/fd | sed "s/.* \([0-9]* ->\)/\1/; s/\/proc\/[0-9]*/proc/"; grep "Sig[BCI]" /proc/self/status'
    look+='; ulimit -n; umask; tr "\0" "\n" </proc/self/environ | grep -v "^REDISLOCK_\|^_=" | sort'
    exec 7<"$folder/log" 9>"$folder/nine"
    (trap '' HUP USR1 && sh -c "$look") >"$folder/direct"
    (trap '' HUP USR1 && run job -- sh -c "$look") >"$folder/through"
    exec 7<&- 9>&-
    sed -i '/\/direct\|\/through/d; /pipe:/d' "$folder/direct" "$folder/through"
    diff "$folder/direct" "$folder/through" || fail 'it does not inherit the same'
    has '7 ->' "$folder/through"
    ! grep -q socket "$folder/through" || fail 'it inherits a socket'
    look='exec 5>"$0"; readlink /proc/$PPID/fd/0 /proc/$PPID/fd/1 /proc/$PPID/fd/2 >&5; (: >&2) 2>&- || echo closed >&5'
    run job -- sh -c "$look" "$folder/closed" <&- >&- 2>&-
    is $? 0
    is "$(tr '\n' ' ' <"$folder/closed")" '/dev/null /dev/null /dev/null closed ' 'of closed handles'
    unshare --mount sh -c 'mount -t tmpfs none /dev && exec "$@" <&- >&- 2>&-' sh \
        "$tool" run job -- sh -c "$look" "$folder/no_dev"
    is $? 0
    has 'anon_inode:.eventpoll. anon_inode:.eventpoll. anon_inode:.eventpoll. closed' <(tr '\n' ' ' <"$folder/no_dev")
}

# One of Redisson's holds it until it is kicked.
held_by_java() {
    redis hset job 1b1f96fc-15c1-4297-a056-e1c973a409fe:52 1 >/dev/null
}

# As of nohup, and of what a script runs in the background.
ignored_signals_end_no_wait() {
    held_by_java
    (trap '' HUP INT TSTP && exec "$tool" run job -- true) &
    local waiter=$!
    eventually listened
    kill -TSTP $waiter
    kill -INT $waiter
    kill -HUP $waiter
    "$tool" kick --yes job >"$folder/out"
    eventually gone $waiter
    wait $waiter
    is $? 0
}

# Nobody would let it go on.
stops_only_below_a_shell() {
    held_by_java
    setsid "$tool" run job -- true &
    local waiter=$!
    eventually listened
    kill -TSTP $waiter
    "$tool" kick --yes job >"$folder/out"
    eventually gone $waiter
    wait $waiter
    is $? 0
}

# A command whose processes notice a TERM, and go on.
stubborn='trap "echo term >>$0.term" TERM; (trap "" TERM; exec sleep 60) & echo $! >>$0.pids
setsid sleep 61 & echo $! >>$0.pids; echo $$ >>$0.pids; while :; do wait; done'
all_are_gone() {
    local process
    while read -r process; do
        eventually gone "$process"
    done <"$folder/x.pids"
}

lease_is_a_limit() {
    run --lease 2s job -- sh -c "$stubborn" "$folder/x" 2>"$folder/err"
    is $? 76
    has 'is at risk' "$folder/err"
    has 'is killed' "$folder/err"
    has term "$folder/x.term"
    all_are_gone
    ! held job || fail 'the lock was left'
}

# Where the message cannot be written the command ends all the same: nobody reads, and the pipe is full; nobody could
# read; the disk is full; the file has all that it may; there is no file.
nobody_reads_what_it_says() {
    mkfifo "$folder/full" "$folder/broken" "$folder/process"
    exec 8<>"$folder/full" 7<>"$folder/process" 6<>"$folder/broken"
    dd if=/dev/zero of="$folder/full" bs=4096 count=16 oflag=nonblock 2>/dev/null # as much as a pipe holds
    exec 5>"$folder/broken" 6<&- # which has no reader now
    echo full >"$folder/limited"
    local to process
    for to in '2>&8' '2>&5' '2>/dev/full' "2>>$folder/limited" '2>&-'; do
        eval "limited $to"
        is $? 76 "with $to: status"
        read -r process <&7
        gone "$process" || fail "with $to the command goes on"
    done
}
limited() (
    ulimit -f 0
    exec timeout 20 "$tool" run --lease 1s job -- \
        sh -c 'trap "" TERM; setsid sh -c "echo \$\$ >&7; exec sleep 60" & wait'
)

# TERM ends the command itself; what it started ignores that, and is killed before another can have the lock.
the_rest_ends_before_the_lock_is_free() {
    run --lease 2s job -- sh -c '(trap "" TERM; exec sleep 60) & echo $! >$0; exec sleep 60' "$folder/pid" \
        2>"$folder/err"
    is $? 76
    gone "$(cat "$folder/pid")" || fail 'it goes on without the lock'
    has 'is killed' "$folder/err"
    ! held job || fail 'the lock was left'
}

# A shell that becomes the tool leaves it its other children.
ends_no_process_of_others() {
    sh -c 'sleep 60 & echo $! >"$1.other"; exec "$2" run --lease 1s job -- sh -c "$0" "$1"' "$stubborn" "$folder/x" \
        "$tool" 2>"$folder/err"
    is $? 76
    has 'is killed' "$folder/err"
    all_are_gone
    ! gone "$(cat "$folder/x.other")" || fail 'another process was killed'
    kill "$(cat "$folder/x.other")"
}

ends_without_its_main_thread() {
    run --lease 1s job -- "$hard_to_end" without_main_thread "$folder/x.pids" 2>"$folder/err"
    is $? 76
    has 'is killed' "$folder/err"
    run --lease 1s job -- sh -c 'setsid "$0" without_main_thread $1 & exec sleep 60' "$hard_to_end" "$folder/x.pids" \
        2>"$folder/err"
    is $? 76
    is "$(wc -l <"$folder/x.pids")" 2
    all_are_gone
}

# With too few it says so, wherever it notices; what it needs for the end it has from the beginning.
ends_with_few_handles() {
    local handles started=0
    for handles in {5..24}; do
        (ulimit -n "$handles" && exec timeout 60 "$tool" run --url "$(url)&unreachable_after=4000" --lease 1s \
            "job$handles" -- sh -c "$stubborn" "$folder/$handles") 2>"$folder/$handles.err" &
    done
    for handles in {5..24}; do
        wait %$((handles - 3)) # the server is the first job
        case $? in
            76) started=$((started + 1)) && [ "$handles" -gt 12 ] || fail "$handles handles cannot be enough" ;;
            125) has 'Too many open files' "$folder/$handles.err" ;;
            *) fail "with $handles handles: $(cat "$folder/$handles.err")" ;;
        esac
        ! held "job$handles" || fail "the lock was left with $handles handles"
    done
    [ "$started" -ge 4 ] || fail "only $started started"
    cat "$folder"/*.pids >"$folder/all.pids"
    "$tool" run --lease 3s job -- sh -c "$stubborn" "$folder/x" 2>"$folder/err" &
    local holder=$!
    eventually grep -c . "$folder/x.pids"
    prlimit --pid $holder --nofile=3:3 # there will be none
    wait $holder
    is $? 76
    has 'is killed' "$folder/err"
    cat "$folder/all.pids" >>"$folder/x.pids"
    all_are_gone
}

says_what_it_may_not_kill() {
    local as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "$folder/tool" run job) lived=no
    chmod 755 "$folder"
    cp "$tool" "$folder/tool"
    cp "$hard_to_end" "$folder/owned"
    chmod u+s "$folder/owned"
    "${as_nobody[@]}" --lease 5s -- "$folder/owned" as_owner "$folder/pid" 2>"$folder/err" &
    local holder=$! process
    eventually grep -q KILL "$folder/err"
    process=$(cat "$folder/pid")
    gone "$process" || lived=yes
    kill -KILL "$process"
    wait $holder
    is $? 76
    is $lived yes 'it lived on:'
    has "TERM is not permitted for its processes $process" "$folder/err"
    has "KILL has not ended processes $process" "$folder/err"
    ! grep -q 'is killed\|gets TERM' "$folder/err" || fail 'it says what did not happen'
    # one that not even /proc shows
    unshare --mount --pid --fork sh -c 'mount -t proc -o hidepid=2 proc /proc && "$@"; exit $?' sh \
        "${as_nobody[@]}" --lease 1s -- sh -c '"$0" as_owner $1 & exec sleep 60' "$folder/owned" "$folder/pid" \
        2>"$folder/err"
    is $? 76
    has 'KILL has not ended processes that /proc does not show' "$folder/err"
    ! grep -q 'is killed' "$folder/err" || fail 'it says what did not happen'
}

starts_nothing_that_it_could_not_find() {
    unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
        "$tool" run job -- touch "$folder/on" 2>"$folder/err"
    is $? 125
    has 'cannot be found' "$folder/err"
    unshare --pid --fork "$tool" run job -- touch "$folder/on" 2>"$folder/err"
    is $? 125
    has 'in /proc: it is of another PID namespace' "$folder/err"
    [ ! -e "$folder/on" ] || fail 'the command was started'
    ! held job || fail 'the lock was left'
    unshare --pid --fork --mount-proc "$tool" run job -- sh -c 'exit 3'
    is $? 3
}

# A timer outlives exec, and would end the tool without its command.
timers_are_passed_on() {
    perl -e 'alarm 1; exec @ARGV' "$tool" run job -- sh -c 'echo $$ >$0; exec sleep 60' "$folder/pid"
    is $? 142
    gone "$(cat "$folder/pid")" || fail 'the command goes on'
    ! held job || fail 'the lock was left'
}

no_term_only_warns() {
    run --lease 1s --no-term --lost-status 5 job -- sh -c "$stubborn" "$folder/x" 2>"$folder/err"
    is $? 5
    has 'goes on until' "$folder/err"
    [ ! -e "$folder/x.term" ] || fail 'TERM was sent'
    all_are_gone
}

server_is_silent() {
    REDISLOCK_URL=$(url 2000)
    "$tool" run job -- sh -c 'trap "exit 3" TERM; touch $0; while :; do sleep 0.05; done' "$folder/on" 2>"$folder/err" &
    local holder=$!
    eventually test -e "$folder/on"
    kill -STOP $server
    wait $holder
    is $? 76
    has 'gets TERM' "$folder/err"
    ! grep -q 'is killed' "$folder/err" || fail 'killed, though it ended by itself'
    kill -CONT $server
}

kicked() {
    REDISLOCK_URL=$(url 600)
    "$tool" run job -- sh -c "$stubborn" "$folder/x" 2>"$folder/err" &
    local holder=$!
    eventually test -s "$folder/x.pids"
    eventually held job
    "$tool" kick job </dev/null >"$folder/out" 2>&1
    is $? 1
    has "process $holder" "$folder/out"
    has 'say --yes' "$folder/out"
    "$tool" kick --yes job >"$folder/out"
    is $? 0
    has 'is free' "$folder/out"
    wait $holder
    is $? 76
    has 'is lost' "$folder/err"
    all_are_gone
    "$tool" kick --yes job >"$folder/out"
    is $? 1
}

dies_with_the_tool() {
    "$tool" run --lease 10s job -- sh -c 'echo $$ >$0; exec sleep 60' "$folder/pid" &
    local holder=$!
    eventually test -s "$folder/pid"
    kill -KILL $holder
    wait $holder 2>/dev/null
    eventually gone "$(cat "$folder/pid")"
    held job || fail 'the lock is free before its lease is over'
}

stands_still() {
    "$tool" run --lease 1s --no-term job -- sh -c 'echo $$ >$0; exec sleep 60' "$folder/pid" 2>"$folder/err" &
    local holder=$!
    eventually test -s "$folder/pid"
    kill -STOP $holder
    eventually free job
    kill -CONT $holder
    wait $holder
    is $? 76
    eventually gone "$(cat "$folder/pid")"
}

names_with_dashes() {
    REDISLOCK_URL=$(url 600)
    run --wait 0 -- -x -- sh -c 'echo "$REDISLOCK_NAME" "$@"' sh -- y >"$folder/out"
    is $? 0
    is "$(cat "$folder/out")" '-x -- y'
    run -- -x true 2>"$folder/err"
    is $? 125
    has '-- is missing before the command: redislock run -- -x -- true' "$folder/err"
    "$tool" run -- -x -- sleep 60 &
    local holder=$!
    eventually held -x
    "$tool" who -- -x >"$folder/out"
    is $? 0
    has "^'-x' (fencedLock)" "$folder/out"
    is "$("$tool" ls -- '-*' | wc -l)" 2
    "$tool" who -- -x y 2>"$folder/err"
    is $? 2
    "$tool" who -- 2>"$folder/err"
    is $? 2
    has 'NAME is required' "$folder/err"
    "$tool" doctor -- -x >"$folder/out"
    is $? 0
    "$tool" kick --yes -- -x >"$folder/out"
    is $? 0
    wait $holder
    is $? 76
}

# --- In a terminal ---------------------------------------------------------------------------------------------------

terminal() {
    local socket=$folder/tmux
    local mux=(tmux -S "$socket" -f /dev/null)
    "${mux[@]}" new-session -d -x 150 -y 30 "REDISLOCK_URL='$REDISLOCK_URL' PS1='> ' bash --norc --noprofile"
    on_screen="${mux[*]} capture-pane -p"
    shows() { "${mux[@]}" capture-pane -p | grep -q -- "$1"; }
    type_in() { "${mux[@]}" send-keys "$@"; }
    prompts() { [ "$("${mux[@]}" capture-pane -p | grep -v '^$' | tail -1)" = '>' ]; } # it may drop what came before
    type_in "$tool run job -- sh -c 'echo went; exec cat'; echo st=\$?" Enter
    eventually shows '^went'
    type_in 'a line' Enter
    eventually shows 'a line'
    type_in C-c
    eventually prompts
    type_in 'echo st=$?' Enter
    eventually shows 'st=130'
    ! held job || fail 'the lock was left'
    type_in "clear; for i in 1 2; do $tool run job -- sh -c 'touch \$0; exec sleep 60' $folder/\$i; done" Enter
    eventually test -e "$folder/1"
    type_in C-c # ends the loop
    eventually prompts
    type_in 'clear; echo st=$?' Enter
    eventually shows '^st='
    [ ! -e "$folder/2" ] || fail 'the loop goes on'
    type_in "clear; $tool run job -- sh -c 'read line; echo got \$line'" Enter
    eventually held job
    type_in C-z
    eventually shows Stopped
    type_in "clear; fg; echo st=\$?" Enter
    sleep 0.2
    type_in 'words' Enter
    eventually shows '^got words'
    eventually shows '^st=0'
    type_in "clear; $tool run other -- sleep 60 &" Enter
    eventually held other
    type_in "clear; $tool watch -n 100ms; echo st=\$?" Enter
    eventually shows '^other .* fencedLock'
    type_in C-z
    eventually shows Stopped
    is "$("${mux[@]}" display -p '#{alternate_on}')" 0 'the screen is not the shell'\''s: alternate'
    type_in "clear; fg; echo st=\$?" Enter
    eventually shows '^other .* fencedLock'
    type_in C-c
    eventually shows '^st=0'
    type_in "clear; $tool kick other" Enter
    eventually shows 'y/N'
    type_in n Enter
    type_in "clear; $tool kick other; echo st=\$?" Enter
    eventually shows 'y/N'
    held other || fail 'no was no answer'
    type_in y Enter
    eventually shows '^st=0'
    ! held other || fail 'yes was no answer'
}

# Names that a shell would turn into commands.
hostile=('pwn:$(touch${IFS}pwned)' 'pwn:`touch pwned`' "pwn:'; touch pwned; '" 'pwn:"$(touch pwned)"'
    $'pwn:\n$(touch pwned)' $'pwn:\t$(touch pwned)' 'pwn:\$(touch pwned)' 'pwn:~*' '-pwn:' $'pwn:\xff$(touch pwned)')
held_by_enemies() {
    local name
    for name in "${hostile[@]}"; do
        redis hset "$name" 1b1f96fc-15c1-4297-a056-e1c973a409fe:52 1 >/dev/null
    done
}

no_name_is_expanded_in_a_shell() {
    held_by_enemies
    local mux=(tmux -S "$folder/tmux" -f /dev/null) word
    cd "$folder" || exit 1
    ln -s "$(realpath "$tool")" redislock
    "${mux[@]}" new-session -d -x 150 -y 30 \
        "REDISLOCK_URL='$REDISLOCK_URL' PATH='$folder':\$PATH PS1='> ' bash --norc --noprofile"
    on_screen="${mux[*]} capture-pane -p"
    shows() { "${mux[@]}" capture-pane -p | grep -qF -- "$1"; }
    prompts() { [ "$("${mux[@]}" capture-pane -p | sed '/^$/d' | tail -n 1)" = '>' ]; }
    is_clear() { [ "$("${mux[@]}" capture-pane -p | sed '/^$/d')" = '>' ]; }
    type_in() { "${mux[@]}" send-keys "$@"; }
    type_in ". '$completion'; clear" Enter
    eventually is_clear
    for word in 'pwn' 'pwn:' 'pwn:\$' 'pwn:\"' "pwn:\\'" 'pwn:\\' "\$'pwn" '"pwn' "'pwn" '-- -'; do
        type_in -l "redislock who $word"
        type_in Tab Tab
        type_in -l ' is over'
        eventually shows 'is over'
        type_in C-c
        eventually prompts # what is typed before is lost
        type_in clear Enter
        eventually is_clear
    done
    type_in -l 'redislock who pwn:\$'
    type_in Tab
    eventually shows 'pwn:\$\(touch\$\{IFS\}pwned\)'
    type_in Enter
    eventually shows "'pwn:\$(touch\${IFS}pwned)' (redisLock)"
    [ ! -e "$folder/pwned" ] || fail 'a name was run'
}

# --- Looking ---------------------------------------------------------------------------------------------------------

looks() {
    is "$("$tool" ls)" ''
    "$tool" who job >"$folder/out"
    is $? 1
    "$tool" run --lease 1m job -- sleep 60 &
    local holder=$!
    eventually held job
    redis hset java 1b1f96fc-15c1-4297-a056-e1c973a409fe:52 1 >/dev/null
    "$tool" ls >"$folder/out"
    is $? 0
    has "^job  *$(hostname | cut -c1-20).*:$holder .* fencedLock " "$folder/out"
    has '^java .*never ends' "$folder/out"
    ! grep -q "$(printf '\033')" "$folder/out" || fail 'colours outside a terminal'
    is "$("$tool" ls 'jo*' | wc -l)" 2
    "$tool" ls --json >"$folder/out"
    is "$(wc -l <"$folder/out")" 2
    has "\"name\":\"job\",\"kind\":\"fencedLock\".*\"process\":$holder" "$folder/out"
    has '"name":"java".*"milliseconds_left":null' "$folder/out"
    "$tool" who job >"$folder/out"
    is $? 0
    has "process $holder" "$folder/out"
    "$tool" watch --json -n 50ms job >"$folder/watched" &
    local watcher=$!
    eventually grep -q '"name":"job"' "$folder/watched"
    kill -TERM $watcher
    wait $watcher
    is $? 0
    "$tool" doctor >"$folder/out"
    is $? 0
    has 'append-only file on' "$folder/out"
    redis config set maxmemory-policy allkeys-lru >/dev/null
    "$tool" doctor --json >"$folder/out"
    is $? 1
    has '"problems":\["it evicts keys' "$folder/out"
    "$tool" ls --url redis://127.0.0.1:1 2>"$folder/err"
    is $? 2
    has 'redislock: list locks' "$folder/err"
    "$tool" who 2>"$folder/err"
    is $? 2
    "$tool" ls >/dev/full 2>"$folder/err"
    is $? 2
    has 'standard output' "$folder/err"
    timeout 20 "$tool" watch -n 50ms >/dev/full 2>"$folder/err"
    is $? 2
    "$tool" run --help | grep -q REDISLOCK_TOKEN || fail 'run --help'
    "$tool" --version | grep -q '^redislock [0-9]' || fail '--version'
    kill $holder
    wait $holder
    is $? 143
}

user() { # user <rights>...: the tool is this user now
    redis acl setuser poor reset on '>pw' "$@" >/dev/null
    REDISLOCK_URL="unix://poor:pw@$folder/redis"
}
says() { # says <status> <pattern> <arguments of the tool>...
    local status=$1 pattern=$2
    shift 2
    "$tool" "$@" </dev/null >"$folder/out" 2>"$folder/err"
    is $? "$status" "$* says $(cat "$folder/out" "$folder/err"), with status"
    has "$pattern" <(cat "$folder/out" "$folder/err")
    ! grep -q 'nobody holds lock' "$folder/out" "$folder/err" || fail "$*: nobody holds it"
}

says_what_lies_there() {
    redis hset visits monday 3 >/dev/null
    redis set words x >/dev/null
    local command
    for command in who 'who --json' kick 'kick --yes' ls 'ls --json'; do
        says 2 'the key is a hash, not a lock' $command visits
        says 2 'the key is a string, not a lock' $command words
    done
    says 0 'not locks.*: 1' ls
    "$tool" run --wait 0 visits -- true 2>"$folder/err"
    is $? 75 # what lies there keeps others out
    user '~stock:*' +@all
    held_by_java
    for command in who 'who --json' kick 'kick --yes' ls 'ls --json'; do
        says 2 'the user lacks ~job' $command job
    done
    says 2 'without these rights: ~jo\*' ls 'jo*'
    held job || fail 'it was freed'
    user '~*' +@all -hget
    for command in 'who job' 'kick job' 'ls'; do
        says 2 "hget" $command
    done
    user '~*' +@all -scan
    says 2 "scan" ls
}

# The rights that doc/keys.md names for a fenced lock.
locking='+evalsha +eval +subscribe +unsubscribe +ping +pttl +hexists +hget +hset +hdel +hlen +hkeys +pexpire +del +publish +time +get +set +incr'
doctor_tries_the_rights() {
    user
    says 1 'lacks rights: .*+evalsha +eval' doctor
    has 'append-only file unknown, snapshots unknown' "$folder/out"
    has 'used: unknown, limit: unknown, eviction: unknown' "$folder/out"
    "$tool" doctor --json >"$folder/out"
    is $? 1
    local field
    for field in version role replicas eviction_policy max_memory used_memory appends_to_file saves_snapshots; do
        has "\"$field\":null" "$folder/out"
    done
    user '~*' '&*' $locking
    says 0 'was taken and released' doctor
    has 'rights  *unknown' "$folder/out"
    local right
    for right in $locking; do
        redis del redislock:doctor >/dev/null # without some rights it is not given back
        [ "$right" != +ping ] && [ "$right" != +hkeys ] || continue # nothing, and forced unlocks, need these
        user '~*' '&*' $locking -${right#+}
        "$tool" doctor >"$folder/out" 2>&1
        [ $? = 1 ] || [ "$right" = +incr ] || [ "$right" = +hdel ] || [ "$right" = +del ] || fail "without $right: $(cat "$folder/out")"
        redis del redislock:doctor >/dev/null
        user '~*' '&*' $locking +multi +discard -${right#+}
        says 1 "lacks rights: .*$right" doctor
    done
    user '~*' resetchannels $locking +multi +discard
    says 1 'lacks rights: .*&redisson_lock__channel:{stock}' doctor stock
    user '~other' '&*' $locking +multi +discard
    says 1 'lacks rights: .*~stock' doctor stock
    has 'problem .*; grant ~stock ' "$folder/out"
    user '~*' '&*' $locking
    held_by_java
    says 2 'cannot tell .*: .job. is in use' doctor job
    user '~*' '&*' +@all
    redis hset visits monday 3 >/dev/null
    says 1 'visits. is not a lock' doctor visits
}

doctor_knows_a_full_server() {
    redis config set maxmemory 1 >/dev/null
    says 1 'out of memory' doctor
    has 'its memory is full' "$folder/out"
    has 'used: [0-9.]* [KM]iB, limit: 0 KiB' "$folder/out"
    redis config set maxmemory 0 >/dev/null
    redis setrange ballast 20000000 x >/dev/null # beside this, connections need little
    local used=$(redis info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p')
    redis config set maxmemory $((used * 100 / 95)) >/dev/null
    says 1 'its memory is 9[0-9] % full' doctor
    redis del ballast >/dev/null
    redis config set maxmemory $((5 * 1024 * 1024)) >/dev/null
    says 0 'used: [1-3][.][0-9][0-9] MiB\|used: [0-9]* KiB, limit: 5[.]00 MiB' doctor
    redis config set maxmemory 0 >/dev/null
    redis config set min-replicas-to-write 1 >/dev/null
    says 1 'too few replicas' doctor
    redis config set min-replicas-to-write 0 >/dev/null
    says 0 'was taken and released' doctor
    ! held redislock:doctor || fail 'the lock was left'
    redis replicaof 127.0.0.1 1 >/dev/null
    says 2 'is a read-only replica' doctor
    says 2 'is a read-only replica' ls
    says 2 'is a read-only replica' who job
}

# Ends the case's server and starts another in its place.
instead() { # instead <arguments of redis-server>...
    kill $server
    wait $server
    rm -f "$folder/redis"
    redis-server "$@" --unixsocket "$folder/redis" --unixsocketperm 777 --dir "$folder" --loglevel warning \
        >"$folder/log" 2>&1 &
    server=$!
}

doctor_names_a_sentinel() {
    echo 'sentinel monitor main 127.0.0.1 1 1' >"$folder/sentinel.conf"
    instead "$folder/sentinel.conf" --port 0 --sentinel
    eventually redis ping
    says 2 'is a Sentinel; use redis-sentinel://' doctor
    says 2 'is a Sentinel; use redis-sentinel://' ls
}

doctor_names_a_cluster() {
    local tries
    for tries in 1 2 3 4 5; do # another process may have the port
        instead --port $((10000 + RANDOM % 10000)) --cluster-enabled yes --save '' --appendonly yes
        until redis ping >/dev/null 2>&1 || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
        ! redis ping >/dev/null 2>&1 || break
    done
    redis cluster addslots $(seq 0 16383) >/dev/null
    eventually sh -c "redis-cli -s '$folder/redis' cluster info | grep -q cluster_state:ok"
    says 0 'one node has all slots' doctor
    has 'was taken and released' "$folder/out"
    local port
    port=$(redis config get port | tail -n 1)
    local cluster="redis-cluster://127.0.0.1:$port"
    says 1 "127.0.0.1:$port has no replica" doctor --url "$cluster"
    has "shard        127.0.0.1:$port: 16384 slots, 0 replicas" "$folder/out"
    has 'cluster-require-full-coverage yes' "$folder/out"
    has 'cluster-node-timeout' "$folder/out"
    redis hset held "0d7c1be2-33aa-8f5e-8c1d-b0a3d6a2e9f4:1" 1 >/dev/null
    says 0 held ls --url "$cluster"
    says 0 'held by' who held --url "$cluster"
    says 0 'is free' kick --yes held --url "$cluster"
    user '~*' '&*' $locking
    says 2 'NOPERM.*redis-cluster://' doctor
}

an_empty_address_is_an_error() {
    export REDISLOCK_URL=
    local command
    for command in ls 'who job' 'kick job' doctor watch; do
        says 2 'REDISLOCK_URL is empty' $command
    done
    says 125 'REDISLOCK_URL is empty' run job -- true
    says 2 'address\|URL\|url' ls --url ''
    "$tool" ls --url "$(url)" || fail 'an option counts'
}

a_writer_that_reads_is_one_holder() {
    local java=1b1f96fc-15c1-4297-a056-e1c973a409fe:52
    redis hset rw mode write $java 2 $java:write 1 >/dev/null
    "$tool" ls >"$folder/out"
    has "^rw  *client ${java%%-*} .* writeLock  *1$" "$folder/out"
    "$tool" who --json rw >"$folder/out"
    has "\"count\":1,\"writes\":true}" "$folder/out"
    has "\"count\":2}" "$folder/out"
}

watch_tells_that_nobody_answers() {
    redis hset java 1b1f96fc-15c1-4297-a056-e1c973a409fe:52 1 >/dev/null
    (trap '' HUP && exec "$tool" watch -n 50ms) >"$folder/watched" 2>"$folder/err" &
    local watcher=$!
    eventually grep -q '^java ' "$folder/watched"
    kill -HUP $watcher
    redis shutdown nosave
    wait $server
    eventually grep -q 'no answer from' "$folder/err"
    is "$(grep -c '^NAME' "$folder/watched")" "$(grep -c '^java ' "$folder/watched")" 'it shows no locks: tables'
    kill -TERM $watcher
    wait $watcher
    is $? 0
}

# JSON has no bytes, but two names stay two.
json_keeps_names_apart() {
    local name
    for name in $'a\xff' $'a\xfe' $'a\xef\xbf\xbd' $'a\xef\xbf\xbdff' $'caf\xc3\xa9' $'\xc3(' $'\xed\xa0\x80'; do
        redis hset "$name" 1b1f96fc-15c1-4297-a056-e1c973a409fe:52 1 >/dev/null
    done
    "$tool" ls --json >"$folder/out"
    is "$(sed 's/"kind".*//' "$folder/out" | sort -u | wc -l)" 7 'names:'
    local mark=$'\xef\xbf\xbd'
    has "{\"name\":\"a${mark}ff\"," "$folder/out"
    has "{\"name\":\"a${mark}ef${mark}bf${mark}bd\"," "$folder/out"
    has $'{"name":"caf\xc3\xa9",' "$folder/out"
    iconv -f UTF-8 -t UTF-8 "$folder/out" >/dev/null || fail 'it is not UTF-8'
    "$tool" who --json $'a\xfe' >"$folder/out"
    has "{\"name\":\"a${mark}fe\"," "$folder/out"
}

# A terminal that is dumb, or not known, is sent no escape sequences.
plain_terminals_get_plain_text() {
    held_by_java
    local kind watcher
    for kind in xterm dumb ''; do
        TERM=$kind script -qec "'$tool' ls; '$tool' who job" /dev/null >"$folder/out.$kind" </dev/null
        TERM=$kind script -qec "echo \$\$ >'$folder/pid'; exec '$tool' watch -n 50ms" /dev/null \
            >"$folder/watched.$kind" </dev/null &
        watcher=$!
        eventually grep -q '^job ' "$folder/watched.$kind"
        kill -TERM "$(cat "$folder/pid")"
        wait $watcher
    done
    has "$(printf '\033')" "$folder/out.xterm"
    has "$(printf '\033')" "$folder/watched.xterm"
    ! grep "$(printf '\033')" "$folder"/{out,watched}.{dumb,} || fail 'escape sequences'
}

completion=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../tool/completion.bash")

no_name_is_expanded() {
    . "$completion"
    held_by_enemies
    cd "$folder" || exit 1
    local word offered each
    for word in '' p pwn: 'pwn:$' 'pwn:\' "'p" '"p'; do
        COMP_WORDS=("$tool" who "$word") COMP_CWORD=2 COMP_LINE="redislock who $word" COMP_POINT=100 COMPREPLY=()
        _redislock "$tool" "${word##*:}" who
        for offered in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do
            case $word in *:*) offered=pwn:$offered ;; esac
            eval "offered=$offered" # as the shell reads it
            [[ $(printf '%s\n' "${hostile[@]}") == *"$offered"* ]] || fail "after $word it offers $offered"
        done
        case $word in [\"\']*) is "${#COMPREPLY[@]}" 0 'names within quotes:' ;; esac
    done
    COMP_WORDS=("$tool" who p) COMP_LINE='redislock who p' COMPREPLY=()
    _redislock "$tool" p who
    is "${#COMPREPLY[@]}" 6 'names:' # without those of control characters and backquotes
    COMP_WORDS=("$tool" who -- -) COMP_CWORD=3 COMP_LINE='redislock who -- -' COMPREPLY=()
    _redislock "$tool" - --
    is "${COMPREPLY[*]}" -pwn:
    [ ! -e "$folder/pwned" ] || fail 'a name was run'
}

completes() {
    . "$completion"
    COMP_WORDS=(redislock k) COMP_CWORD=1 COMPREPLY=()
    _redislock redislock k redislock
    is "${COMPREPLY[*]}" kick
    "$tool" run 'stock:1' -- sleep 60 &
    local holder=$!
    eventually held stock:1
    COMP_WORDS=("$tool" who sto) COMP_CWORD=2 COMPREPLY=()
    _redislock "$tool" sto who
    is "${COMPREPLY[*]}" 'stock:1'
    COMP_WORDS=(redislock run --le) COMP_CWORD=2 COMPREPLY=()
    _redislock redislock --le run
    is "${COMPREPLY[*]}" --lease
    kill $holder
    wait $holder
    is $? 143
}

# The commands in the guide work as it says.
guide() {
    local commands=$folder/guide.sh
    awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
        "$(dirname "${BASH_SOURCE[0]}")/../../doc/guide.md" >"$commands"
    ln -s "$(realpath "$tool")" "$folder/redislock"
    PATH=$folder:$PATH REDISLOCK_URL=unix://$folder/redis bash -euo pipefail "$commands" >"$folder/out" 2>"$folder/err"
    is $? 0
    has 'guide:job' "$folder/out"
    has 'append-only file on' "$folder/out"
}

for cases in desk steps; do
    . "$(dirname "${BASH_SOURCE[0]}")/$cases.sh"
done
"$case_name"
