"""The emulator's former name, for scripts that use it: the same as `cuda_emulator`."""

from cuda_emulator import KernelError, KernelWarning, Settings, cuda, current, install, options, uninstall

__all__ = ["KernelError", "KernelWarning", "Settings", "cuda", "current", "install", "options", "uninstall"]
