# Cases of check.sh: lock and unlock, for the steps of a script.

keeper() { "$tool" who --json "$1" | sed 's/.*"process":\([0-9]*\).*/\1/'; }

steps_of_a_script() {
    "$tool" lock -f "$folder/file" job
    is $? 0
    held job || fail 'it does not hold it'
    has "^REDISLOCK_NAME='job'$" "$folder/file"
    is "$(. "$folder/file" && echo "$REDISLOCK_TOKEN")" "$(sed -n 's/^REDISLOCK_TOKEN=//p' "$folder/file")"
    run -n job -- true 2>"$folder/err"
    is $? 75
    "$tool" lock -n -f "$folder/other" job 2>"$folder/err"
    is $? 75
    has 'could not be taken: held by' "$folder/err"
    [ ! -e "$folder/other" ] || fail 'a file of nothing'
    "$tool" lock -f "$folder/file" more 2>"$folder/err"
    is $? 125
    has 'is in use by process' "$folder/err"
    local process
    process=$(keeper job)
    "$tool" unlock "$folder/file"
    is $? 0
    ! held job || fail 'the lock was left'
    gone "$process" || fail 'the keeper goes on'
    [ ! -e "$folder/file" ] || fail 'the file was left'
    "$tool" unlock "$folder/file" 2>"$folder/err"
    is $? 2
    has 'there is no token file' "$folder/err"
    # another's turn comes while it waits
    "$tool" lock -f "$folder/file" job
    (eventually listens job 1 && "$tool" unlock "$folder/file") &
    "$tool" lock -f "$folder/next" job
    is $? 0
    "$tool" unlock "$folder/next"
    is $? 0
}

steps_end_with_the_script() {
    bash -c '"$0" lock -f "$1" job && "$0" who job && :' "$tool" "$folder/file" >"$folder/out"
    has '^.job. (fencedLock)' "$folder/out"
    eventually free job
    eventually test ! -e "$folder/file"
    bash -c '"$0" lock -f "$1" job && kill -9 $$' "$tool" "$folder/file"
    is $? 137
    eventually free job
    eventually test ! -e "$folder/file"
    # whoever reads what the script writes is not kept waiting, nor is anything else that it has open
    exec 7>"$folder/flocked"
    flock 7
    is "$("$tool" lock -p $$ -f "$folder/file" job 2>&1)" ''
    exec 7>&-
    flock -n "$folder/flocked" true || fail 'it keeps the file of another'
    held job || fail 'it has ended with the subshell'
    "$tool" unlock "$folder/file"
    # nobody waits for it any more
    held_by_java
    "$tool" lock -q -f "$folder/file" job &
    local waiter=$!
    eventually listened
    kill -KILL $waiter
    nobody_listens() { ! listened; }
    eventually nobody_listens
    [ ! -e "$folder/file" ] || fail 'a file of nothing'
}

steps_in_several_shells() {
    sh -c '"$0" lock --lease 1m -f "$1" job; :' "$tool" "$folder/file"
    held job || fail 'it has ended with its shell'
    sh -c '"$0" unlock "$1"; exit $?' "$tool" "$folder/file"
    is $? 0
    ! held job || fail 'the lock was left'
    sleep 60 &
    local process=$!
    sh -c '"$0" lock --process "$2" -f "$1" job; :' "$tool" "$folder/file" $process
    held job || fail 'it has ended with its shell'
    kill $process
    eventually free job
    "$tool" lock --lease 1m -p $$ -f "$folder/file" job 2>"$folder/err"
    is $? 125
}

steps_that_go_wrong() {
    REDISLOCK_URL=$(url 600)
    "$tool" lock -f "$folder/file" job
    "$tool" kick --yes job >"$folder/out"
    eventually grep -q ENDED=lost "$folder/file"
    "$tool" unlock "$folder/file" 2>"$folder/err"
    is $? 76
    has 'was lost before it was released' "$folder/err"
    "$tool" lock --lease 200ms -f "$folder/file" job
    eventually free job
    "$tool" unlock --lost-status 3 "$folder/file" 2>"$folder/err"
    is $? 3
    "$tool" lock -f "$folder/file" job
    kill -KILL "$(keeper job)"
    "$tool" unlock "$folder/file" 2>"$folder/err"
    is $? 76
    has 'was killed' "$folder/err"
    "$tool" lock -f "$folder/no/file" job 2>"$folder/err"
    is $? 125
    has 'No such file' "$folder/err"
    "$tool" lock -p 99999999 -f "$folder/file" job 2>"$folder/err"
    is $? 125
    echo words >"$folder/file"
    "$tool" unlock "$folder/file" 2>"$folder/err"
    is $? 2
    has 'is not a token file' "$folder/err"
    [ -e "$folder/file" ] || fail 'a file of the user is gone'
    printf "REDISLOCK_NAME='job'\nREDISLOCK_HOST='elsewhere'\n" >"$folder/file"
    "$tool" unlock "$folder/file" 2>"$folder/err"
    is $? 2
    has 'taken on .elsewhere.: unlock it there' "$folder/err"
}
