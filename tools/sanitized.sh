#!/bin/sh
# Run a command with the sanitizers' libraries: tools/sanitized.sh COMMAND [ARGUMENT ...]
#
# Python itself is not built with the sanitizers, so their libraries have to be loaded before it;
# what the command starts inherits the environment. `make sanitize` uses this script.
set -eu
cxx=${CXX:-c++}
preload=
# libstdc++ too: without it the sanitizer cannot intercept exceptions that are thrown later.
for library in libasan.so libubsan.so libstdc++.so; do
  path=$($cxx -print-file-name=$library)
  case $path in
    /*) preload="$preload $path" ;;
    *) echo "$cxx has no $library: make sanitize needs GCC and its sanitizers" >&2; exit 1 ;;
  esac
done
export LD_PRELOAD="${preload# }"
# The interpreter does not free everything at exit, and that is no leak of ours.
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:abort_on_error=1"
export UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:print_stacktrace=1"
# With Python's own allocator every buffer lies within a large one, where no overrun is seen.
export PYTHONMALLOC=malloc
exec "$@"
