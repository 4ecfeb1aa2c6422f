"""A device on the CPU: the kernels, compiled by a C++ compiler, with NumPy arrays."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.cuda.device import Device, Kernels

HERE = Path(__file__).parent
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(')
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC")
LAUNCH = 'if (!strcmp(name, "{0}")) return shim::launch<{0}>(arguments, x, y, threads, bytes), 0;'


class ShimKernels(Kernels):
    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))

    def launch(
        self,
        name: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: Any,
        shared_bytes: int = 0,
    ) -> None:
        cells = [as_cell(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
        x, y = grid if isinstance(grid, tuple) else (grid, 1)
        failed = self.library.launch(
            name.encode(), pointers, x, y, block, ctypes.c_size_t(shared_bytes)
        )
        assert not failed, f"there is no kernel {name}"


def as_cell(argument: Any) -> np.ndarray:
    """An argument in the format of CUDA, as an array."""
    if argument is None:
        return np.zeros(1, np.uint64)
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return np.array([argument.ctypes.data], np.uint64)
    if isinstance(argument, (int, float)) and not isinstance(argument, np.generic):
        return np.array([argument], np.int32 if isinstance(argument, int) else np.float64)
    return np.array([argument])


class ShimDevice(Device):
    """Few multiprocessors and little shared memory, so that loops and tiles are tested."""

    n_multiprocessors = 2
    shared_bytes = 1 << 14

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        assert np.dtype(dtype).kind in "iuf", "CuPy has no other arrays"
        array = np.empty(shape, dtype)
        array.view(np.uint8).reshape(-1)[...] = 0xCD if array.size else 0
        return array

    def clear(self, array: np.ndarray, byte: int = 0) -> None:
        array[...] = np.frombuffer(bytes([byte] * array.itemsize), array.dtype)[0]

    def write(self, array: np.ndarray, out: np.ndarray) -> None:
        assert array.dtype == out.dtype
        assert array.shape == out.shape
        out[...] = array

    def download(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def fetch(self, array: np.ndarray) -> Callable[[], np.ndarray]:
        copy = array.copy()
        return lambda: copy

    def take(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return array[rows]

    def put(self, array: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
        array[rows] = values

    def free_bytes(self) -> int:
        return 1 << 30

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        return steps

    def compile(self, source: str, options: tuple[str, ...], *, exact: bool) -> ShimKernels:
        shim = (HERE / "cuda_shim.hpp").read_text()
        inputs = source, shim, options, COMPILER, FLAGS, LAUNCH
        digest = hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]
        library = self.folder / f"{digest}.so"
        if not library.exists():
            build(source, options, library)
        return ShimKernels(library)


def build(text: str, options: tuple[str, ...], library: Path) -> None:
    """Compile the library and move it into place atomically, since other processes may use it."""
    assert COMPILER is not None
    preprocess = [COMPILER, "-E", "-P", "-x", "c++", "-D__launch_bounds__(...)=", *options, "-"]
    seen = subprocess.run(preprocess, input=text, capture_output=True, text=True, check=True).stdout
    launches = "\n".join(LAUNCH.format(name) for name in KERNEL.findall(seen))
    source = library.with_suffix(f".{os.getpid()}.cpp")
    source.write_text(
        f'#include "cuda_shim.hpp"\n{text}\n'
        'extern "C" int launch(const char* name, void** arguments, unsigned x, unsigned y,'
        f" unsigned threads, size_t bytes) {{\n{launches}\nreturn 1;\n}}\n"
    )
    half = library.with_suffix(f".{os.getpid()}.so")
    command = [COMPILER, *FLAGS, *options, f"-I{HERE}", "-o", str(half), str(source)]
    subprocess.run(command, check=True)
    source.unlink()
    half.rename(library)
