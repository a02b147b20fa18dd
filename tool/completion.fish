# Completion of redislock for fish.

# The locks that are held, but for names that JSON does not show as they are. fish quotes what is chosen.
function __redislock_names
    redislock ls --json 2>/dev/null | string replace -rf '^{"name":"([^"\\\\\x{fffd}]*)".*' '$1'
end

function __redislock_uses
    for command in $argv
        __fish_seen_subcommand_from $command; and return 0
    end
    return 1
end

complete -c redislock -f
complete -c redislock -s h -l help -d 'Show help'
complete -c redislock -s V -l version -d 'Show the version'
complete -c redislock -s u -l url -x -d 'The server'

set -l commands run lock unlock ls who watch kick doctor
set -l none "not __fish_seen_subcommand_from $commands"
complete -c redislock -n "$none" -a run -d 'Run a command while a lock is held'
complete -c redislock -n "$none" -a lock -d 'Take a lock for the steps of a script'
complete -c redislock -n "$none" -a unlock -d 'Give back what lock took'
complete -c redislock -n "$none" -a ls -d 'List the locks that are held'
complete -c redislock -n "$none" -a who -d 'Say who holds a lock and who waits'
complete -c redislock -n "$none" -a watch -d 'Show the locks again and again'
complete -c redislock -n "$none" -a kick -d 'Free a lock, or all of a machine'
complete -c redislock -n "$none" -a doctor -d 'Check whether the server is fit for locks'

complete -c redislock -n '__redislock_uses run lock ls who watch kick doctor' -a '(__redislock_names)' -d 'Lock'

set -l hold '__redislock_uses run lock'
complete -c redislock -n $hold -s s -l shared -d 'Many may hold it'
complete -c redislock -n $hold -s x -l exclusive -d 'Nobody else may hold it'
complete -c redislock -n $hold -l holders -x -d 'How many may hold it'
complete -c redislock -n $hold -s w -l wait -x -d 'How long to wait'
complete -c redislock -n $hold -s n -l nonblock -d 'Do not wait'
complete -c redislock -n $hold -s l -l lease -x -d 'A lease that is not renewed'
complete -c redislock -n $hold -l verbose -d 'Say how long the wait took'
complete -c redislock -n $hold -s q -l quiet -d 'Do not say who holds the lock'
complete -c redislock -n $hold -s E -l not-obtained-status -x -d 'Exit status without the lock'
complete -c redislock -n '__redislock_uses run' -s c -l command -x -d 'A line of shell'
complete -c redislock -n '__redislock_uses run' -l no-term -d 'Only warn when the lock is at risk'
complete -c redislock -n '__redislock_uses run unlock' -l lost-status -x -d 'Exit status when the lock was lost'
complete -c redislock -n '__redislock_uses lock' -s f -l token-file -r -F -d 'What unlock needs'
complete -c redislock -n '__redislock_uses lock' -s p -l process -x -a '(__fish_complete_pids)' -d 'End with it'
complete -c redislock -n '__redislock_uses unlock' -F

complete -c redislock -n '__redislock_uses ls watch' -l sort -x -a 'name left waiters age' -d 'Order'
complete -c redislock -n '__redislock_uses ls watch' -l limit -x -d 'Shows at most N'
complete -c redislock -n '__redislock_uses ls who watch doctor' -l json -d 'One JSON object a line'
complete -c redislock -n '__redislock_uses watch' -s n -l interval -x -d 'How often'
complete -c redislock -n '__redislock_uses kick' -l host -x -d 'All locks of a machine'
complete -c redislock -n '__redislock_uses kick' -s y -l yes -d 'Do not ask'
