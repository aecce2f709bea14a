# Runs one container: sh shim.sh SETSID FOLDER WORK COMMAND [ARGUMENT...]
#
# It outlives whoever started it, so the exit code is in FOLDER/exit even when nobody waits.
# FOLDER/claim is made here or by somebody who forbids the start, never by both: a container
# starts at most once. FOLDER/started names the command's process before it is the command.
# Each record ends with a newline; one that does not is still being written.
setsid=$1 folder=$2 work=$3
shift 3
set -C # makes > fail where a file is
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
{ printf '%s %s\n' "$boot" "$stat" >"$folder/claim"; } 2>/dev/null || exit 125
# shellcheck disable=SC2016 # the inner shell expands it
"$setsid" /bin/sh -c '
    set -C
    read -r stat </proc/$$/stat
    { printf "%s %s\n" "$1" "$stat" >"$2/started"; } 2>/dev/null || exit 125
    cd -- "$3" || exit 126
    unset OLDPWD
    shift 3
    exec "$@"' sh "$boot" "$folder" "$work" "$@" &
exec >/dev/null 2>&1 # what this shell has to say is no output of the container
wait $!
code=$?
set +C
# A full disk must not lose the code; a folder that is gone needs none.
until printf '%s\n' "$code" >"$folder/exit" || [ ! -d "$folder" ]; do
    sleep 1
done
