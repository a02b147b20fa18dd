# Completion of redislock for bash.
_redislock() {
    local tool=$1 word=$2 command='' i
    local commands='run ls who watch kick doctor' options='--help --url'
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --) # the command that is run
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                fi
                return
                ;;
            run | ls | who | watch | kick | doctor) command=${command:-${COMP_WORDS[i]}} ;;
        esac
    done
    case $command in
        run) options+=' --wait --lease --no-term --not-obtained-status --lost-status' ;;
        ls | who | doctor) options+=' --json' ;;
        watch) options+=' --json --interval' ;;
        kick) options+=' --yes' ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
    else # names of locks that are held
        mapfile -t COMPREPLY < <(compgen -W "$("$tool" ls 2>/dev/null | sed '1d; s/ .*//')" -- "$word")
    fi
}
complete -F _redislock redislock
