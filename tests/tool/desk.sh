# Cases of check.sh: what an operator sees and does. In some of them the locale is UTF-8.

java=1b1f96fc-15c1-4297-a056-e1c973a409fe
leaves() { # leaves <name> <milliseconds>: a lock of Redisson's
    redis hset "$1" "$java:52" 1 >/dev/null
    redis pexpire "$1" "$2" >/dev/null
}
names() { sed '1d; s/ .*//' "$folder/out" | tr '\n' ' '; }
listens() { [ "$(redis pubsub numsub "redisson_lock__channel:{$1}" | tail -n 1)" -ge "$2" ]; }
ends() { # ends <process>...: ended by TERM
    kill "$@"
    wait "$@" || true
}

sorts_and_limits() {
    local processes=() waiter
    "$tool" run old -- sleep 60 & processes+=($!)
    eventually held old
    leaves a 50000 && leaves b 40000 && leaves c 90000 && redis hset d "$java:52" 1 >/dev/null
    for waiter in 1 2; do
        "$tool" run -q c -- true & processes+=($!)
    done
    "$tool" run -q b -- true & processes+=($!)
    eventually listens c 2
    eventually listens b 1
    "$tool" ls '[abcd]' >"$folder/out"
    is "$(names)" 'a b c d '
    "$tool" ls --sort left '[abcd]' >"$folder/out"
    is "$(names)" 'b a c d '
    "$tool" ls --sort waiters '[abcd]' >"$folder/out"
    is "$(names)" 'c b a d '
    "$tool" watch -n 1h '[abcd]' >"$folder/out" & waiter=$!
    eventually grep -q '^d ' "$folder/out"
    ends $waiter
    is "$(names)" 'c b a d  '
    older() { [ "$("$tool" ls --json old | sed 's/.*"connected_s":\([0-9]*\).*/\1/')" -ge 2 ]; }
    eventually older
    "$tool" run young -- sleep 60 & processes+=($!)
    eventually held young
    "$tool" ls --sort age >"$folder/out"
    is "$(names)" 'old young a b c d '
    has '^NAME  *HOLDER  *LEFT  *WAITERS  *AGE' "$folder/out"
    "$tool" ls --sort left --limit 2 >"$folder/out" 2>"$folder/err"
    has '^old' "$folder/out" # 30 s
    has '^\(…\|\.\.\.\) and 4 more$' <(tail -n 1 "$folder/out")
    "$tool" ls --json --sort waiters --limit 1 >"$folder/out" 2>"$folder/err"
    is "$(wc -l <"$folder/out")" 1
    has '"name":"c"' "$folder/out"
    has 'and 5 more' "$folder/err"
    "$tool" ls --limit 6 >"$folder/out"
    ! grep -q more "$folder/out" || fail 'all are there'
    ends "${processes[@]}"
}

# In a terminal the lines have its width, and no name is cut; elsewhere nothing is.
fits_the_width() {
    local long=com.example.billing.InvoiceService.generateMonthlyInvoices/customer=10004
    leaves "$long" 600000
    leaves stock:1 600000
    unshare --uts sh -c 'hostname worker-eu-central-1a-7f9c4d5b6d-x2x9k; exec "$@"' sh \
        "$tool" run job -- sleep 60 &
    local holder=$! size
    eventually held job
    "$tool" ls >"$folder/out"
    has '^job  *worker-eu-central-1a-7f9c4d5b6d-x2x9k:[0-9]*  *[0-9.]* s  *0  *fencedLock  *1$' "$folder/out"
    has "^$long  client ${java%%-*} .* redisLock  *1$" "$folder/out"
    ! grep -q "$java" "$folder/out" || fail 'a UUID in the table'
    for size in 'stty cols 80' 'stty cols 60' 'stty cols 0; export COLUMNS=80' 'stty cols 0; export COLUMNS=60'; do
        TERM=dumb LC_ALL=C.UTF-8 script -qec "$size; '$tool' ls" /dev/null </dev/null 2>&1 |
            tr -d '\r' >"$folder/narrow"
        [ "$(grep -vF "$long" "$folder/narrow" | LC_ALL=C.UTF-8 wc -L)" -le "${size##*[ =]}" ] ||
            fail "$size: $(cat "$folder/narrow")"
        has "^$long$" "$folder/narrow"
        has '^  *client 1b1f96fc  *10 min  *0$' "$folder/narrow"
        has '^job  *worker-eu.*…' "$folder/narrow"
        has '^stock:1  *client 1b1f96fc  *10 min  *0' "$folder/narrow"
    done
    ends $holder
}

three_thousand_locks() {
    local i n=0 processes=() line
    for i in $(seq 2990); do
        printf 'hset order:%d:checkout %s:%d 1\npexpire order:%d:checkout 600000\n' "$i" "$java" "$i" "$i"
    done | redis >/dev/null
    for i in 0 1 2 3 4 5 6 7 8 9; do
        "$tool" run "stock:$i" -- sleep 100 & processes+=($!)
    done
    for i in 0 1 2 3 4 5 6 7 8 9; do eventually held "stock:$i"; done
    "$tool" run -q stock:7 -- true & processes+=($!)
    eventually listens stock:7 1
    local mux=(tmux -S "$folder/tmux" -f /dev/null)
    "${mux[@]}" new-session -d -x 80 -y 24 "REDISLOCK_URL='$REDISLOCK_URL' LC_ALL=C.UTF-8 '$tool' watch -n 100ms"
    on_screen="${mux[*]} capture-pane -p"
    screen() { "${mux[@]}" capture-pane -p >"$folder/screen"; }
    counts() { screen && grep -q 'and 2981 more' "$folder/screen"; }
    eventually counts
    is "$(head -n 1 "$folder/screen")" "3000 locks '*' at $(url | sed 's/?.*//; s#//##')"
    has '^NAME  *HOLDER  *LEFT  *WAITERS' "$folder/screen"
    is "$(sed -n '4s/ .*//p' "$folder/screen")" stock:7 'the one that is waited for comes first:'
    has '^stock:7  *[^ ]*:[0-9][0-9]*  *[0-9.]* s  *1 ' "$folder/screen"
    has '^order:1000:checkout  *client 1b1f96fc  *10 min  *0 ' "$folder/screen"
    "${mux[@]}" resize-window -x 80 -y 12
    narrower() { screen && grep -q 'and 2993 more' "$folder/screen"; }
    eventually narrower
    ends "${processes[@]}"
}

# Each line of the table begins with a word of the shell.
what_is_shown_can_be_typed() {
    held_by_enemies
    local name shell locale all=("${hostile[@]}" $'caf\xc3\xa9' 'ロック:1' 'my job' "it's" '~' '#1' '=x'
        'a{b,c}' 'a\b' 'tenant-{42}:x' $'a\u202eb' $'a\u200bb' 'ab' $'e\u0301' $'\u0301e' $'a\u00a0b' $'\xc3(' '!!' '*' '$HOME')
    for name in "${all[@]}"; do
        redis hset "$name" $java:52 1 >/dev/null
    done
    for locale in C C.UTF-8; do
        LC_ALL=$locale "$tool" ls >"$folder/out"
        ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' "$folder/out" || fail 'controls'
        for shell in bash zsh; do
            sed '1d' "$folder/out" | while read -r line; do
                LC_ALL=C.UTF-8 $shell -fc "set -- $line; printf '%s\\0' \"\$1\"" ||
                    LC_ALL=C.UTF-8 $shell -c "set -- $line; printf '%s\\0' \"\$1\""
            done | LC_ALL=C sort -z >"$folder/read"
            printf '%s\0' "${all[@]}" | LC_ALL=C sort -z >"$folder/made"
            cmp "$folder/made" "$folder/read" || fail "$shell, $locale: $(cat "$folder/out")"
        done
    done
    [ ! -e "$folder/pwned" ] && [ ! -e pwned ] || fail 'a name was run'
    has '^ロック:1 ' "$folder/out"
    has $'^caf\xc3\xa9 ' "$folder/out"
    has '^tenant-{42}:x ' "$folder/out"
    has $'^e\u0301 ' "$folder/out"
    has "^\\$'a\\\\xe2\\\\x80\\\\xaeb' " "$folder/out"
    is "$(sed -n 's/client.*//; /^ロック/p' "$folder/out" | LC_ALL=C.UTF-8 wc -L)" \
        "$(sed -n 's/client.*//; /^ab /p' "$folder/out" | wc -L)" 'the columns of wide letters:'
    "$tool" who 'a\x41' >"$folder/out"
    is $? 1 # an argument is taken as it is
}

says_what_was_meant() {
    says 2 'there is no command .list.; did you mean redislock ls?' list
    says 2 'did you mean redislock watch?' wacth
    says 2 'say run, lock, unlock, ls' frobnicate
    "$tool" 2>"$folder/err"
    is $? 2
    has 'say what to do: run, lock' "$folder/err"
    says 0 'Usage: redislock' help
    says 0 'REDISLOCK_TOKEN' help run
    says 0 '^redislock [0-9]' version
    says 125 '-- is missing before the command: redislock run job -- make ...' run job make report
    says 125 '--wait is an option of run and comes after that word: redislock run --wait' --wait 5s run job -- true
    says 2 '--json is an option of ls' --json ls
    says 2 '--wait is an option of run, lock, not of ls' ls --wait 5
    says 125 'run has no option --wiat; did you mean --wait?' run --wiat 5s job -- true
    says 2 'put it in quotes' ls a b
    says 2 'is one too many' who my job
    says 125 'needs the NAME of a lock before --' run -- true
    says 2 'sorted by name, left, waiters or age' ls --sort size
    says 2 'kick needs a NAME, or --host HOST' kick
    says 125 'one command' run -c true job -- true
    ! held job || fail 'the lock was taken'
}

says_who_holds_it() {
    "$tool" run job -- sleep 60 &
    local holder=$! waiter
    eventually held job
    local by="held by $(hostname | cut -c1-20).*, process $holder, [0-9.]* s left, [01] wait"
    "$tool" run job -- true 2>"$folder/err" & waiter=$!
    eventually grep -q "^redislock: waiting for lock 'job': $by" "$folder/err"
    ends $waiter
    run -n job -- true 2>"$folder/err"
    is $? 75
    has "^redislock: lock 'job' could not be taken: $by" "$folder/err"
    run -w 100ms job -- true 2>"$folder/err"
    is $? 75
    has "could not be taken in [0-9]* ms: $by" "$folder/err"
    run --quiet -w 1500ms job -- true 2>"$folder/err"
    is $? 75
    is "$(cat "$folder/err")" ''
    run --verbose free -- true 2>"$folder/err"
    has "^redislock: getting lock 'free' took [0-9]* ms$" "$folder/err"
    has '^redislock: executing true$' "$folder/err"
    user '~*' '&*' +@all -client -pubsub
    run -n job -- true 2>"$folder/err"
    is $? 75
    has 'could not be taken: held by client' "$folder/err"
    REDISLOCK_URL=$(url)
    ends $holder
}

many_may_hold_it() {
    local readers=() i
    for i in 1 2; do
        "$tool" run -s rw -- sleep 60 & readers+=($!)
    done
    all_read() { [ "$(redis hlen rw)" = 3 ]; }
    eventually all_read
    run -n -s rw -- true
    is $? 0
    run -n -x rw -- true 2>"$folder/err"
    is $? 75
    run -n rw -- true 2>"$folder/err"
    is $? 125
    has 'each kind needs names of its own' "$folder/err"
    ends "${readers[@]}"
    run -n -x rw -- "$tool" run -n -s rw -- true 2>"$folder/err"
    is $? 75
    readers=()
    REDISLOCK_URL=$(url 900)
    for i in 1 2; do
        "$tool" run --holders 2 sem -- sh -c 'echo x >>$0; trap "exit 4" TERM; while :; do sleep 0.05; done' \
            "$folder/on" & readers+=($!)
    done
    both() { [ "$(wc -l <"$folder/on")" = 2 ]; }
    eventually both
    run -w 1500ms --holders 2 sem -- true 2>"$folder/err" # longer than a lease: they are renewed
    is $? 75
    has "waiting for semaphore 'sem': all 2 permits are taken" "$folder/err"
    run --holders 3 sem -- true 2>"$folder/err"
    is $? 125
    has 'has 2 permits, not 3' "$folder/err"
    kill "${readers[0]}"
    wait "${readers[0]}"
    is $? 4
    run -n --holders 2 sem -- sh -c 'echo "$REDISLOCK_NAME,${REDISLOCK_TOKEN-none}"' >"$folder/out"
    is "$(cat "$folder/out")" sem,none
    redis del '{sem}:timeout' >/dev/null # a permit is lost
    wait "${readers[1]}"
    is $? 76
    run --lease 1s --holders 2 other -- sh -c "$stubborn" "$folder/x" 2>"$folder/err"
    is $? 76
    has "semaphore 'other' is at risk" "$folder/err"
    all_are_gone
}

holds_without_a_command() {
    local holder
    "$tool" run job >"$folder/out" 2>"$folder/err" & holder=$!
    eventually grep -q "^holding 'job', token [0-9]*, until Ctrl-C" "$folder/out"
    held job || fail 'it does not hold it'
    kill -INT $holder # ignored, as in each background job of a script
    kill -TERM $holder
    wait $holder
    is $? 0
    ! held job || fail 'the lock was left'
    REDISLOCK_URL=$(url 600)
    "$tool" run job >"$folder/out" 2>"$folder/err" & holder=$!
    eventually grep -q '^holding' "$folder/out"
    "$tool" kick --yes job >"$folder/out"
    wait $holder
    is $? 76
    has "lock 'job' is lost" "$folder/err"
    run --lease 300ms job >"$folder/out" 2>"$folder/err"
    is $? 76
    has 'is at risk' "$folder/err"
    is "$(run job -c 'echo "$REDISLOCK_NAME" $0; exit 7'; echo $?)" $'job /bin/sh\n7'
}

kicks_a_machine() {
    local there=(unshare --uts sh -c 'hostname web-9; exec "$@"' sh "$tool" run) processes=() name
    for name in a b; do
        "${there[@]}" $name -- sleep 60 & processes+=($!)
    done
    "${there[@]}" -s rw -- sleep 60 & processes+=($!)
    "$tool" run -s rw -- sleep 60 & processes+=($!)
    "$tool" run mine -- sleep 60 & processes+=($!)
    held_by_java
    both_read() { [ "$(redis hlen rw)" = 3 ]; }
    eventually both_read
    for name in a b mine; do eventually held $name; done
    says 1 'say --yes' kick --host web-9
    has '^a  *web-9:' "$folder/out"
    has 'web-9 last sent something [0-9]* s ago: it may well be alive' "$folder/out"
    has "'rw' is read from other machines too" "$folder/err"
    has 'of 1 lock it is unknown' "$folder/err"
    held a && held b || fail 'it did not wait for an answer'
    says 0 "'a' is free" kick --yes --host web-9
    has "'b' is free" "$folder/out"
    ! held a && ! held b || fail 'not all are free'
    held rw && held mine && held job || fail 'it freed locks of others'
    says 1 'no lock is known to be held on web-9' kick --yes --host web-9
    says 2 'excludes' kick --host web-9 a
    ends "${processes[@]}" 2>/dev/null
}

no_name_is_expanded_by_zsh_or_fish() {
    held_by_enemies
    local mux=(tmux -S "$folder/tmux" -f /dev/null)
    cd "$folder" || exit 1
    ln -s "$(realpath "$tool")" redislock
    mkdir functions
    cp "${completion%bash}zsh" functions/_redislock
    PATH=$folder:$PATH fish -Nc "source '${completion%bash}fish'; complete -C 'redislock who '" >out 2>err
    has '^pwn:\$(touch\${IFS}pwned)' out
    has '^pwn:`touch pwned`' out
    "${mux[@]}" new-session -d -x 150 -y 30 "REDISLOCK_URL='$REDISLOCK_URL' PATH='$folder':\$PATH PS1='> ' zsh -f"
    on_screen="${mux[*]} capture-pane -p"
    shows() { "${mux[@]}" capture-pane -p | grep -qF -- "$1"; }
    type_in() { "${mux[@]}" send-keys "$@"; }
    type_in 'fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D; echo rea""dy' Enter
    eventually shows ready
    type_in -l 'redislock who pwn:\$'
    type_in Tab
    eventually shows 'pwn:\$\(touch\$\{IFS\}pwned\)'
    type_in Enter
    eventually shows "'pwn:\$(touch\${IFS}pwned)' (redisLock)"
    [ ! -e pwned ] || fail 'a name was run'
}

# The help, the manual and the completions know the same commands and options.
options_are_everywhere() {
    local here tool_folder command word options file
    here=$(dirname "${BASH_SOURCE[0]}")
    tool_folder=$(realpath "$here/../../tool")
    local commands
    commands=$("$tool" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p')
    is "$(wc -w <<<"$commands")" 8 'commands:'
    zsh -n "$tool_folder/completion.zsh" || fail 'zsh cannot read it'
    fish -n "$tool_folder/completion.fish" || fail 'fish cannot read it'
    for command in '' $commands; do
        options=$("$tool" $command --help | sed '/^Subcommands:/,$d' | grep -o '^  -[^ ]*' | tr , '\n')
        [ -n "$options" ] || fail "$command has no options"
        for word in $command $options; do
            grep -q -e "$word" <(sed 's/\\-/-/g' "$tool_folder/redislock.1") || fail "the manual has no $word"
            for file in bash zsh fish; do
                case $word in
                    --*) "offered_by_$file" "$command" "$word" || fail "completion.$file: no $word of '$command'" ;;
                    -*) ;;
                    *) "offered_by_$file" '' "$word" || fail "completion.$file: no $word" ;;
                esac
            done
        done
    done
}
offered_by_bash() ( # offered_by_bash <command> <word>: it is among what is offered after its first letters
    . "$completion"
    COMP_WORDS=(redislock $1 "$2") COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _redislock redislock "$2" "$1"
    printf '%s\n' "${COMPREPLY[@]}" | grep -x -- "$2" >/dev/null
)
offered_by_fish() {
    fish -Nc "source '${completion%bash}fish'; complete -C 'redislock $1 $2'" 2>/dev/null | grep -- "^$2\b" >/dev/null
}
# zsh completes in a terminal only: what its function hands to _arguments and _describe is looked at.
offered_by_zsh() {
    zsh -fc 'compdef() { :; }
        _arguments() {
            local each
            for each in "$@"; do print -r -- ${${${each#\(*\)}%%\[*}%=}; done
            state=${${words[3]:+arguments}:-command} line=($words[2])
            return 1
        }
        _describe() { print -rl -- ${${(P)2}%%:*}; }
        words=(redislock ${=1} "$2"); source "$0"; _redislock || true' "${completion%bash}zsh" "$1" "$2" |
        grep -x -e "$2" >/dev/null # all is read
}
