#compdef redislock
# Completion of redislock for zsh.

# The locks that are held. Anybody may have chosen a name: compadd quotes them, and nothing is expanded.
_redislock_names() {
    local line
    local -a names word
    for line in ${${(f)"$(_call_program locks $tool ls 2>/dev/null)"}[2,-1]}; do
        word=(${(z)line}) # the first word is the name, as a shell reads it
        names+=("${(Q)word[1]}")
    done
    compadd -- $names
}

_redislock() {
    local -a commands hold list
    local tool=$words[1] state line context
    typeset -A opt_args
    commands=(
        'run:run a command while a lock is held'
        'lock:take a lock for the steps of a script'
        'unlock:release what lock took'
        'ls:list the locks that are held'
        'who:say who holds a lock and who waits'
        'watch:show the locks again and again'
        'kick:free a lock, or all of a machine'
        'doctor:check whether the server is fit for locks'
    )
    hold=(
        '(-s --shared -x --exclusive --holders)'{-s,--shared}'[many may hold it]'
        '(-s --shared -x --exclusive --holders)'{-x,--exclusive}'[nobody else may hold it]'
        '(-s --shared -x --exclusive)--holders=[how many may hold it]:number'
        '(-w --wait -n --nonblock)'{-w,--wait=}'[how long to wait]:time'
        '(-w --wait -n --nonblock)'{-n,--nonblock}'[do not wait]'
        '(-l --lease)'{-l,--lease=}'[a lease that is not renewed]:time'
        '--verbose[say how long the wait took]'
        '(-q --quiet)'{-q,--quiet}'[do not say who holds the lock]'
        '(-E --not-obtained-status)'{-E,--not-obtained-status=}'[exit status without the lock]:status'
    )
    list=(
        '--sort=[order]:order:(name left waiters age)'
        '--limit=[how many at most]:number'
        '--json[one JSON object a line]'
        '1:pattern:_redislock_names'
    )
    _arguments -C \
        '(-h --help)'{-h,--help}'[show help]' \
        '(-V --version)'{-V,--version}'[show the version]' \
        '(-u --url)'{-u,--url=}'[the server]:url' \
        '1:command:->command' \
        '*::argument:->arguments' && return
    if [[ $state == command ]]; then
        _describe command commands
        return
    fi
    local -a global
    global=(
        '(-h --help)'{-h,--help}'[show help]'
        '(-u --url)'{-u,--url=}'[the server]:url'
    )
    case $line[1] in
        run)
            _arguments $global $hold \
                '(-c --command)'{-c,--command=}'[a line of shell]:command line' \
                '--no-term[only warn when the lock is at risk]' \
                '--lost-status=[exit status when the lock was lost]:status' \
                '1:lock:_redislock_names' '*::command:_normal'
            ;;
        lock)
            _arguments $global $hold \
                '(-f --token-file)'{-f,--token-file=}'[what unlock needs]:file:_files' \
                '(-p --process)'{-p,--process=}'[end with this process]:process:_pids' \
                '1:lock:_redislock_names'
            ;;
        unlock) _arguments $global '--lost-status=[exit status when the lock was lost]:status' '1:token file:_files' ;;
        ls) _arguments $global $list ;;
        watch) _arguments $global $list '(-n --interval)'{-n,--interval=}'[how often]:time' ;;
        who | doctor) _arguments $global '--json[one JSON object a line]' '1:lock:_redislock_names' ;;
        kick)
            _arguments $global '(-y --yes)'{-y,--yes}'[do not ask]' '--host=[all locks of a machine]:host:_hosts' \
                '1:lock:_redislock_names'
            ;;
    esac
}

# autoloaded, this file is the function; sourced, it only defines it
if [[ $funcstack[1] == _redislock ]]; then
    _redislock "$@"
elif (( $+functions[compdef] )); then
    compdef _redislock redislock
fi
