#!/bin/sh
# Make .venv ready: `ops/venv.sh run` for what `make run` needs, `ops/venv.sh dev` for everything.
#
# A stamp in .venv records what was installed for which pyproject.toml, so a second call needs no
# network and returns at once. The `dev` set contains the `run` set. Speaks on stderr only.
set -eu
exec >&2
cd "$(dirname "$0")/.."

venv=.venv
installing=$venv/citeflow-installing

die() {
    echo "error: $*"
    exit 1
}

# Silent; fails when the interpreter does not run or is not one the project supports.
supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

base_of() {
    "$1" -c 'import sys; print(sys.base_prefix, sys.version)'
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        supported "$PYTHON" || die "PYTHON=$PYTHON is not a working Python 3.11, 3.12 or 3.13"
        python=$PYTHON
        return
    fi
    for python in python3.13 python3.12 python3.11 python3; do
        if supported "$python"; then return; fi
    done
    die "no Python 3.11, 3.12 or 3.13 found on PATH; install one, or name it: make PYTHON=/path/to/python3 ..."
}

# A virtual environment is not used after a kill in the middle of its set-up (the marker is still
# there), nor when its interpreter is gone or not the one asked for.
reusable() {
    if [ -e "$installing" ] || ! supported "$venv/bin/python"; then return 1; fi
    [ -z "${PYTHON:-}" ] || [ "$(base_of "$PYTHON")" = "$(base_of "$venv/bin/python")" ]
}

create() {
    echo "Creating $venv with $("$python" --version)"
    rm -rf "$venv"
    mkdir "$venv"
    : >"$installing"
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv "$venv"
    elif "$python" -m pip --version >/dev/null 2>&1; then
        # Debian splits ensurepip off; a pip that is there can fill the environment as well.
        "$python" -m venv --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install --quiet pip
    else
        die "$python has neither ensurepip nor pip (Debian, Ubuntu: apt install python3-venv)"
    fi
}

case ${1:-} in
    run) extras=stream,embedded stamps="$venv/citeflow-run $venv/citeflow-dev" ;;
    dev) extras=dev stamps=$venv/citeflow-dev ;;
    *) die "usage: $0 run|dev" ;;
esac
key="$(cksum <pyproject.toml) $(pwd -P)"

up_to_date() {
    reusable || return 1
    for stamp in $stamps; do
        if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then return 0; fi
    done
    return 1
}

if [ -n "${PYTHON:-}" ]; then find_python; fi
if up_to_date; then exit 0; fi

# One set-up at a time. The lock belongs to this process and to the pip it starts, so it is free
# again when the last of them has ended, however it ended.
find_python
exec 9<ops/venv.sh
lock() {
    "$python" -c "import fcntl; fcntl.flock(9, fcntl.LOCK_EX $1)"
}
if ! lock '| fcntl.LOCK_NB' 2>/dev/null; then
    echo "Waiting for another set-up of $venv to end"
    lock ''
    if up_to_date; then exit 0; fi
fi

# After a kill the marker stays and the next call starts afresh. After an orderly failure (no
# network, say) pip has put back what it found, so what worked before still works.
trap 'exit 130' INT TERM HUP
if ! reusable || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then create; fi
: >"$installing"
echo "Installing citeflow[$extras] into $venv (first use: a minute or two)"
code=0
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]" || code=$?
if [ $code -ne 0 ]; then
    if [ $code -lt 128 ]; then rm -f "$installing"; fi
    die "the installation failed; see above"
fi
printf '%s\n' "$key" >"$venv/citeflow-$1"
rm -f "$installing"
