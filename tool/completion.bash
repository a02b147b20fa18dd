# Completion of redislock for bash.

# Adds the locks that are held and whose names begin with a word, quoted for the command line. Anybody may have chosen a
# name: none goes to a command that expands it, and none is offered that quotes or backquotes around the word would
# turn into something else. _redislock_names TOOL WORD MARK: MARK says that -- came before.
_redislock_names() {
    local tool=$1 word=$2 mark=$3 typed=${COMP_LINE-} head='' line name quoted
    [[ ${COMP_WORDS[COMP_CWORD]} != *[\"\'\`]* ]] || return
    typed=${typed:0:${COMP_POINT-0}}
    typed=${typed##*[[:space:]]}
    if [[ $typed == *"$word" ]]; then # bash's word may begin behind a colon
        head=${typed%"$word"}
    fi
    while IFS= read -r line; do
        line=${line#'{"name":"'}
        line=${line%%'","kind":"'*} # within the name its quotes have backslashes
        [[ $line != *'\u00'* ]] || continue
        line=${line//'\"'/'"'}
        printf -v name %b "${line//$'\xef\xbf\xbd'/'\x'}" # see --json in redislock(1)
        if [[ $name == *[[:cntrl:]\`]* || ($name == -* && -z $mark) ]]; then
            continue
        fi
        printf -v quoted %q "$name"
        if [[ $quoted == "$head$word"* || (-z $head && $name == "$word"*) ]]; then
            COMPREPLY+=("${quoted#"$head"}")
        fi
    done < <("$tool" ls --json 2>/dev/null)
}

_redislock() {
    local tool=$1 word=$2 command='' mark='' i
    local commands='run lock unlock ls who watch kick doctor' options='--help --url'
    local hold='--shared --exclusive --holders --wait --nonblock --lease --verbose --quiet --not-obtained-status'
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --) # the command that is run; right behind run, a name
                mark=1
                if [[ $command == run && ${COMP_WORDS[i - 1]} != run ]]; then
                    if declare -F _command_offset >/dev/null; then
                        _command_offset $((i + 1))
                    fi
                    return
                fi
                ;;
            run | lock | unlock | ls | who | watch | kick | doctor) command=${command:-${COMP_WORDS[i]}} ;;
        esac
    done
    case $command in
        '') options+=' --version' ;;
        run) options+=" $hold --command --no-term --lost-status" ;;
        lock) options+=" $hold --token-file --process" ;;
        unlock) options+=' --lost-status' ;;
        ls) options+=' --json --sort --limit' ;;
        who | doctor) options+=' --json' ;;
        watch) options+=' --json --sort --limit --interval' ;;
        kick) options+=' --host --yes' ;;
    esac
    if [[ ${COMP_WORDS[COMP_CWORD - 1]} == --sort ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'name left waiters age' -- "$word")
    elif [[ ($command == unlock && $word != -*) || ${COMP_WORDS[COMP_CWORD - 1]} == @(-f|--token-file) ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [[ $word == -* && -z $mark ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
    else
        _redislock_names "$tool" "$word" "$mark"
    fi
}
complete -F _redislock redislock
