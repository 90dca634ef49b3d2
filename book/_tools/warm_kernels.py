"""For pytest: the kernels of notebooks are forked from a process that has imported what all of them import.

That saves 49 of the 195 processor seconds that 45 notebooks take. The names of a kernel are those of
its own cells. `notebooks.py` and ``make book EXECUTE=1`` start each kernel from nothing.
"""

import gc
import os
import time
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

from jupyter_client.provisioning import local_provisioner

SERVER = get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "jupyter_client.provisioning.local_provisioner",
        "ipykernel.kernelapp",
        "ipykernel.debugger",
        "tornado.platform.asyncio",
        "IPython.core.completerlib",
        "rcbook.figures",
        "rcbook.experiments",
        "rcbook.small_families",
        "rcpkg.calibration",
        "rcpkg.gaussians",
        "rcpkg.local",
        "sklearn.cluster",
        "sklearn.datasets",
        "sklearn.ensemble",
        "sklearn.linear_model",
        "sklearn.mixture",
        "sklearn.model_selection",
        "sklearn.pipeline",
    ]
)
# what a kernel sets before matplotlib is imported
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


def run(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel, which ends with the server."""
    import pandas as pd  # which the server has, and the processes of the tests need not
    from ipykernel.kernelapp import IPKernelApp

    gc.freeze()  # what is imported stays: no collection looks at it, nor copies its pages for that
    gc.set_threshold(20_000)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.chdir(folder)
    os.environ.update(environment)
    pd.set_option("display.max_columns", 20)  # what pandas chooses where a kernel imports it
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])


class Kernel:
    """What a client asks of the process of a kernel."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], *, cwd: str, env: dict[str, str], **_: Any):
        arguments = command[command.index("ipykernel_launcher") + 1 :]
        self.process = SERVER.Process(target=run, args=(arguments, cwd, env))
        self.process.start()
        self.pid = self.process.pid
        while os.getpgid(self.pid) != self.pid:  # the client will stop the whole group
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


local_provisioner.launch_kernel = Kernel
