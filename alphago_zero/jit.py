"""`njit`: how every compiled kernel of the project is compiled and cached.

In: a Python function over plain arrays. Out: machine code, without the interpreter lock, with IEEE arithmetic.
Numba keeps its cache in `NUMBA_CACHE_DIR` if that is set, else in `__pycache__` beside the source, else in the user's
own cache directory. Where none of these can be written, kernels are compiled anew in each process.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Callable

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def njit(function: Callable | None = None, **options) -> Callable:
    """Compile `function` at its first call: `@njit`, or `@njit(inline="always")` with further options of Numba."""
    if function is None:
        return functools.partial(njit, **options)
    # Kernels hand each other tuples of many arrays. Inlined, they do not copy them; and since the arrays outlive the
    # kernels, these need not count references to them (`_nrt`). Together that makes a search seven times as fast.
    # A kernel that makes arrays of its own says `_nrt=True`.
    options = {"_nrt": False, "forceinline": True, **options}
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    try:
        kernel.enable_caching()
    except RuntimeError:  # no directory can be written
        return kernel
    # Numba looks only at the kernel's own file; a kernel is stale, too, when one that it calls has changed elsewhere.
    file = kernel._cache._cache_file
    file._source_stamp = (file._source_stamp, _package_stamp())
    return kernel


@functools.cache
def _package_stamp() -> str:
    """A hash of all modules of the package that have kernels: constants a kernel uses belong in one of them."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"njit" in source)).hexdigest()


@intrinsic
def prefetch(typing_context, array, index, offset):
    """Tell the CPU that the memory `offset` bytes behind `array[index]` will be needed soon."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(array)(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, view.strides)[0]
        byte = ir.IntType(8).as_pointer()
        place = builder.add(builder.mul(arguments[1], stride), arguments[2])
        address = builder.gep(builder.bitcast(view.data, byte), [place])
        number = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], function_type)
        builder.call(function, [address, number(0), number(3), number(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate
