"""The figure of the study of raw tables beside rivals, on the page *Why not …?*.

Its tables are `summary` and `verdicts` of `rcbook.experiments.studies.tables_with_rivals`.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from rcbook.experiments.studies import tables_with_rivals as study


def differences(names: tuple[str, ...] = study.ALL_ASIDE) -> Figure:
    """How much more log-loss than ours each rival has on each set, complete and hidden; a bar marks the median."""
    figure, axes = plt.subplots(1, len(study.SHARES), figsize=(9.2, 5.2), sharey=True)
    rivals = study.summary(study.SHARES[-1], names).index[1:][::-1]
    for ax, share in zip(axes, study.SHARES):
        losses = study.table(share, names)
        for height, rival in enumerate(rivals):
            excess = (losses[rival] - losses[study.OURS]).dropna()
            ax.plot(excess, np.full(len(excess), height), "o", ms=4, alpha=0.6, color="0.45")
            ax.plot([excess.median()] * 2, [height - 0.35, height + 0.35], color="0.1", lw=2)
        ax.axvline(0.0, color="0.5", lw=1)
        ax.set_xscale("symlog", linthresh=0.1)
        ax.set(title=f"{share:.0%} hidden" if share else "complete", xlabel="log-loss in excess of ours, nats")
    axes[0].set_yticks(range(len(rivals)), rivals)
    return figure
