"""rcpkg.published: the printed tables are those of the sources; what they state about themselves is recomputed."""

import re
from pathlib import Path

import numpy as np
import pytest

from rcpkg import published
