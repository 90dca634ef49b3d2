"""A plugin of pytest for nbval: kernels are forked from a process that has imported what all chapters import.

An import counts again in each of over forty kernels; here it counts once. What a notebook imports itself, and whether
it imports all that it uses, is seen where `notebooks.py` stores its outputs, in a kernel of its own.
"""

import multiprocessing
import os
import time
from typing import Any

import pandas as pd
from jupyter_client.provisioning import local_provisioner

COMMON = ["rcbook.checking", "rcbook.experiments", "rcbook.figures", "rcpkg.plotting", "rcpkg.table"]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ipykernel.ipkernel", "warm_kernels", *COMMON])
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # which matplotlib reads where it is imported


def run(connection: str, folder: str, environment: dict[str, str]) -> None:
    """Be a kernel, in a session of its own."""
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    pd.set_option("display.max_columns", 20)  # as pandas has it where a kernel imports it
    launch_new_instance(argv=["-f", connection])


class Forked:
    """What Jupyter wants to know of the process of a kernel."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], cwd: str, env: dict[str, str], **_: Any) -> None:
        connection = command[command.index("-f") + 1]
        self.process = FORKS.Process(target=run, args=(connection, cwd, env))
        self.process.start()
        self.pid = self.process.pid
        while os.getpgid(self.pid) != self.pid:  # until it has a session: signals go to its group
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, signal: int) -> None:
        os.kill(self.pid, signal)


local_provisioner.launch_kernel = Forked
