# The first process of a container: sh -c TEXT sh FOLDER WORK COMMAND [ARGUMENT...]
# FOLDER/started names it before it is the command.
set -C
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
{ printf "%s %s\n" "$boot" "$stat" >"$1/started"; } 2>/dev/null || exit 125
cd -- "$2" || exit 126
unset OLDPWD
shift 2
exec "$@"
