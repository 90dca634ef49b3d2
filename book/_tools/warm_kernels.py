"""A plugin of pytest for nbval: kernels are forked from a process that has imported what most notebooks import.

So an import costs once what it costs in a kernel. Whether a notebook imports what it uses is seen where `notebooks.py`
stores its outputs, in a kernel of its own.
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
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # matplotlib reads it when it is imported


def run(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel, in a session of its own."""
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    pd.set_option("display.max_columns", 20)  # as where a kernel imports pandas
    launch_new_instance(argv=arguments)


class Fork:
    """A kernel's process as `jupyter_client` knows it, which takes a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], cwd: str, env: dict[str, str], **_: Any) -> None:
        arguments = command[command.index("ipykernel_launcher") + 1 :]
        self.process = FORKS.Process(target=run, args=(arguments, cwd, env))
        self.process.start()
        self.pid = self.process.pid
        while os.getpgid(self.pid) != self.pid:  # until it has its session, whose group signals go to
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode


local_provisioner.launch_kernel = Fork
