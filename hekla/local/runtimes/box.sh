# Starts one container in a sandbox: sh box.sh FOLDER BUBBLEWRAP [ARGUMENT...]
#
# FOLDER/claim is made here or by somebody who forbids the start, never by both: a container
# starts at most once. Bubblewrap takes this shell's place, waits for the container, and writes
# the exit code into FOLDER/status, whether or not anybody waits for it.
folder=$1
shift
set -C # makes > fail where a file is
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
{ printf '%s %s\n' "$boot" "$stat" >"$folder/claim"; } 2>/dev/null || exit 125
exec 3>"$folder/status" || exit 125
exec "$@"
