"""A GPU as a device, by way of CuPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.cuda.device import Device, DeviceArray, Kernels

__all__ = ["CupyDevice", "find_device"]

MORE_SHARED = 48 << 10  # shared memory of a block without a special request
INSTALL = "pip install 'hedgerow[cuda]'"


@cache
def find_device() -> CupyDevice:
    """The current GPU; raises ImportError or RuntimeError with the reason if there is none."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"device='cuda' needs CuPy, which is not installed ({error}); {INSTALL}, or pass "
            "device='cpu'"
        ) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
        cupy.cuda.runtime.runtimeGetVersion()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            "device='cuda' needs an NVIDIA GPU, and a driver that supports the CUDA version of "
            f"CuPy, but CUDA reports: {error}; update the driver, or pass device='cpu'"
        ) from error
    if n_devices == 0:
        raise RuntimeError(
            "device='cuda' needs an NVIDIA GPU, and there is none; pass device='cpu'"
        )
    return CupyDevice(cupy)


class CupyKernels(Kernels):
    """The kernels of a module that NVRTC has compiled."""

    def __init__(self, device: CupyDevice, module: Any) -> None:
        self.device, self.module = device, module
        self._functions: dict[str, Any] = {}

    def launch(
        self,
        name: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: Any,
        shared_bytes: int = 0,
    ) -> None:
        """Enqueue the kernel in the stream."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = self.module.get_function(name)
        if shared_bytes > MORE_SHARED and function.max_dynamic_shared_size_bytes < shared_bytes:
            function.max_dynamic_shared_size_bytes = shared_bytes
        with self.device.stream:
            function(
                grid if isinstance(grid, tuple) else (grid,),
                (block,),
                tuple(map(as_argument, arguments)),
                shared_mem=shared_bytes,
            )


def as_argument(argument: Any) -> Any:
    """An argument of the size that kernels expect."""
    if argument is None:
        return np.uint64(0)
    if isinstance(argument, int):
        return np.int32(argument)
    return np.float64(argument) if type(argument) is float else argument


class CupyDevice(Device):
    """The current GPU of this process, and a stream of its own."""

    def __init__(self, cupy: ModuleType) -> None:
        super().__init__()
        self.cupy: Any = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        attributes = cupy.cuda.Device().attributes
        self.n_multiprocessors = int(attributes["MultiProcessorCount"])
        self.shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"])

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An array in CuPy's pool of memory."""
        with self.stream:
            return self.cupy.empty(shape, dtype)

    def clear(self, array: DeviceArray, byte: int = 0) -> None:
        """Set all bytes, asynchronously."""
        if array.nbytes:
            array.data.memset_async(byte, array.nbytes, self.stream)

    def write(self, array: NDArray[Any], out: DeviceArray) -> None:
        """Copy an array to the GPU, asynchronously, in stream order."""
        out.set(array, stream=self.stream)

    def download(self, array: DeviceArray) -> NDArray[Any]:
        """Wait for the GPU, and copy an array from it."""
        with self.stream:
            found: NDArray[Any] = array.get(stream=self.stream)
        return found

    def fetch(self, array: DeviceArray) -> Callable[[], NDArray[Any]]:
        """Start copying to pinned memory; the returned function waits for the copy alone."""
        cuda = self.cupy.cuda
        memory = cuda.alloc_pinned_memory(array.nbytes)
        copy = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        array.get(stream=self.stream, out=copy, blocking=False)
        is_there = self.stream.record()

        def wait() -> NDArray[Any]:
            is_there.synchronize()
            return copy

        return wait

    def take(self, array: DeviceArray, rows: DeviceArray) -> DeviceArray:
        """Some rows of an array."""
        with self.stream:
            return array[rows]

    def put(self, array: DeviceArray, rows: DeviceArray, values: DeviceArray) -> None:
        """Overwrite some rows of an array."""
        with self.stream:
            array[rows] = values

    def free_bytes(self) -> int:
        """Free memory of the GPU, plus free memory in CuPy's pool."""
        pool = self.cupy.get_default_memory_pool()
        return int(self.cupy.cuda.Device().mem_info[0]) + int(pool.free_bytes())

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        """Record the launches as a CUDA graph in the second call; the first compiles kernels."""
        return Recorded(self, steps)

    def compile(self, source: str, options: tuple[str, ...], *, exact: bool) -> CupyKernels:
        """Compile with NVRTC; CuPy caches compiled kernels in the user's home folder."""
        more = ("--std=c++17", f"--fmad={'false' if exact else 'true'}")
        module = self.cupy.RawModule(code=source, options=(*more, *options), backend="nvrtc")
        return CupyKernels(self, module)


class Recorded:
    """Launches that are the same each time."""

    def __init__(self, device: CupyDevice, steps: Callable[[], None]) -> None:
        self.device, self.steps = device, steps
        self._graph: Any = None
        self._has_run = False

    def __call__(self) -> None:
        """Launch them all."""
        if not self._has_run:
            self._has_run = True
            self.steps()
            return
        stream = self.device.stream
        if self._graph is None:
            stream.begin_capture()
            self.steps()
            self._graph = stream.end_capture()
        self._graph.launch(stream=stream)
