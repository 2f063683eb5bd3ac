# Sourced by scripts/train and scripts/test: makes .venv and installs what is missing. POSIX shell.
set -eu
unset CDPATH # else cd may say where it went
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python

is_suitable() { # python: TensorFlow 2.15, which training needs, has no wheel for other versions
    "$1" -c 'import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))' >/dev/null 2>&1
}

make_environment() {
    for candidate in python3.11 python3.10 python3.9 python3 python; do
        if is_suitable "$candidate" && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "Making $venv with $("$candidate" --version)." >&2
            "$candidate" -m venv --clear "$venv"
            return
        fi
    done
    if command -v uv >/dev/null; then
        echo "Making $venv with Python 3.11 from uv." >&2
        rm -rf "$venv"
        uv venv --quiet --seed --python 3.11 "$venv"
        return
    fi
    echo "$0: needs Python 3.9 to 3.11 with venv, found none: install uv (it fetches one), or use" \
        "'pyenv install 3.11', 'conda create -n go python=3.11', or your system's python3-venv; then run again." >&2
    exit 1
}

# A copy of each requirements file, written last, says that it is installed. So an interrupted run is repaired
# by the next one, and where nothing changed nothing is looked up.
is_installed() { # requirements file
    cmp -s "$root/$1" "$venv/$1"
}

set_up() { # requirements files
    if ! { is_suitable "$python" && "$python" -c 'import pip'; } 2>/dev/null; then
        make_environment
    fi
    for package in "$venv"/lib/python*/site-packages/*.dist-info; do
        [ -e "$package/INSTALLER" ] || rm -rf "$package" # pip was stopped while it wrote this one: that file comes last
    done
    for file; do
        is_installed "$file" && continue
        echo "Installing $file into $venv (once; a few minutes)." >&2
        "$python" -m pip install --quiet --disable-pip-version-check -r "$root/$file"
        cp "$root/$file" "$venv/$file.new"
        mv "$venv/$file.new" "$venv/$file"
    done
}
