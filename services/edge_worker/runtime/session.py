"""Opens an ONNX Runtime session as asked, or says why not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime as ort

from services.common.weights.errors import CorruptModel, ProviderUnavailable

CPU = "CPUExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
_CPU_INFO = Path("/proc/cpuinfo")
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class OnnxOptions:
    """How ONNX Runtime is to run.

    Attributes:
        providers: Execution providers in order of preference; every one must be there.
        threads: Threads of one call; None: the CPU quota of this process.
        arena: Keep freed activations for the next call (faster, never gives back).
        mem_pattern: Plan activations by shape; of no use where every call has another.
        engine_cache: Folder in which TensorRT keeps built engines; None: no cache.
    """

    providers: tuple[str, ...] = (CPU,)
    threads: int | None = None
    arena: bool = True
    mem_pattern: bool = False
    engine_cache: Path | None = None


def cpu_quota(cpu_max: Path = _CPU_MAX) -> int:
    """Whole CPUs this process may use: its affinity, cut by the cgroup v2 quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = cpu_max.read_text(encoding="ascii").split()
        limit = int(quota) // int(period)
    except (OSError, ValueError):  # no cgroup v2, or "max": no limit
        return cpus or 1
    return max(1, min(cpus or 1, limit))


def overflows(cpu_info: Path = _CPU_INFO) -> bool:
    """True on an x86 CPU without VNNI, where sums of two 8-bit products meet in 16 bits."""
    try:
        lines = cpu_info.read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), None)
    return flags is not None and not {"avx512_vnni", "avx_vnni"} & set(flags)


def open_session(model: Path, options: OnnxOptions) -> ort.InferenceSession:
    """Loads a model file.

    Raises:
        ProviderUnavailable: A provider asked for is not there.
        CorruptModel: ONNX Runtime cannot load the file.
    """
    _require(options.providers, ort.get_available_providers(), "is not part of this installation")
    try:
        session = ort.InferenceSession(
            str(model),
            sess_options=_session_options(options),
            providers=[(name, _provider_options(name, options)) for name in options.providers],
            enable_fallback=0,
        )
    except Exception as error:  # ONNX Runtime's errors share no public base class
        raise CorruptModel(f"ONNX Runtime cannot load {model}: {error}") from error
    # A provider whose libraries or device are missing is dropped without an error.
    _require(options.providers, session.get_providers(), "found no usable device or library")
    return session


def _require(wanted: tuple[str, ...], present: list[str], why: str) -> None:
    if not wanted:
        raise ProviderUnavailable(f"no execution provider configured; present: {present}")
    for name in wanted:
        if name not in present:
            raise ProviderUnavailable(f"{name} {why}; present: {', '.join(present)}")


def _session_options(options: OnnxOptions) -> ort.SessionOptions:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads or cpu_quota()
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.enable_cpu_mem_arena = options.arena
    settings.enable_mem_pattern = options.mem_pattern
    settings.log_severity_level = _ERRORS_ONLY
    # A spinning pool takes the CPU that the event loop and the other lane need.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if overflows():  # widens weights; costs half the speed where it is not needed
        settings.add_session_config_entry("session.x64quantprecision", "1")
    return settings


def _provider_options(name: str, options: OnnxOptions) -> dict[str, Any]:
    if name == _TENSORRT and options.engine_cache is not None:
        return {
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(options.engine_cache),
        }
    return {}
