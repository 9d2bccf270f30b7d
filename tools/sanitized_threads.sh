#!/bin/sh
# Run a command with the thread sanitizer's library: tools/sanitized_threads.sh COMMAND [ARGUMENT ...]
#
# Python itself is not built with it, so the library has to be loaded before it. The sanitizer keeps its
# notes at fixed addresses, which a randomised layout of memory may have taken: setarch switches that off
# for the command. Suppressions (tools/threads.supp) are for code that is not ours; a race in native/ that is
# meant is named there, where it happens. `make sanitize-threads` uses this script.
set -eu
cxx=${CXX:-c++}
path=$($cxx -print-file-name=libtsan.so)
case $path in
  /*) ;;
  *) echo "$cxx has no libtsan.so: make sanitize-threads needs GCC and its thread sanitizer" >&2; exit 1 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
export TSAN_OPTIONS="suppressions=$here/threads.supp:exitcode=66:halt_on_error=0:history_size=5:ignore_noninstrumented_modules=1"
# Threads of numerical libraries would only add to what has to be watched.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export PYTHONMALLOC=malloc
# Only for the command: its shell and setarch need no library.
exec setarch "$(uname -m)" -R env LD_PRELOAD="$path" "$@"
