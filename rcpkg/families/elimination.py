"""Rows with gaps in a Bayesian network: what is missing is summed out, of rows with different gaps at a time.

From the last feature to the first, the factors whose last missing feature is j are multiplied and summed over x_j,
which leaves a factor of earlier features (bucket elimination: Dechter, 1999). Rows with the same such features go
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from rcpkg.base import Array
from rcpkg.families.cliques import LARGEST_TABLES, Families, margin, onto

LARGEST_BLOCK = 2**22  # entries of the tables of rows that are summed at a time: 32 MB
ROWS = -1  # the last axis of these tables, after the class and the features of their scope

Index = NDArray[np.intp]
Scope = tuple[int, ...]


class TooManyRows(Exception):
    """Their tables together are larger than the largest block."""


@dataclass(eq=False)
class Factor:
    """What some ``rows`` leave of feature ``j``: log f (r, states of ``scope`` …, rows), of missing features before it.

    Where x_j was missing and summed out, f = Σ ``given`` · ``heard``, tables of the features (``scope``, j) and
    ``ears``: what the family of j gives, and what was heard from later features. These are the ``senders``: a factor,
    which of its rows, and their places among ours.
    """

    j: int
    rows: Index
    scope: Scope
    log_table: Array
    given: Array | None = None
    heard: Array | None = None
    ears: Scope = ()
    senders: list[tuple[Factor, Index, Index]] = field(default_factory=list)
    above: Array | None = None  # probability of the states of ``scope`` under what is there in the row

    @property
    def entries(self) -> int:
        """Entries of the tables."""
        return sum(table.size for table in (self.log_table, self.given, self.heard) if table is not None)


def aligned(table: Array, have: Scope, want: Scope) -> Array:
    """A table (r, states of ``have`` …, rows) in a shape that broadcasts over the states of ``want``."""
    return onto(table, (*have, ROWS), (*want, ROWS))


def by_label(labels: Index) -> Iterator[tuple[int, Index]]:
    """Each label, and the places where it stands."""
    order = np.argsort(labels.astype(np.min_scalar_type(labels.max(initial=0))), kind="stable")
    ordered = labels[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return zip(ordered[np.r_[:1, starts]].tolist(), np.split(order, starts))


class Elimination:
    """One sweep over rows whose ``places`` (d, n) are −1 where features are missing.

    ``log_total`` (r, n) is log Σ ∏_j p(x_j | x_pa(j)) over the families that are ``active`` (d, n), those with a
    missing member that matter; ``summed`` are the factors of missing features, from the last to the first, with their
    tables if it ``keeps`` them.
    """

    def __init__(
        self, families: Families, places: Index, log_tables: list[Array], active: NDArray[np.bool_], keeps: bool
    ) -> None:
        self.keeps, self.families, self.places, self.missing = keeps, families, places, places < 0
        self.log_tables, self.tables = log_tables, [np.exp(table) for table in log_tables]
        self.log_total = np.zeros((len(log_tables[0]), places.shape[1]))
        self.summed: list[Factor] = []
        self.inbox: list[list[Factor]] = [[] for _ in families.order]
        self.rank, self.entries = np.argsort(families.order), 0
        self.number = np.empty(places.shape[1], dtype=np.intp)
        for j in reversed(families.order):
            rows = np.flatnonzero(active[j])
            if len(rows):
                self._eliminate(j, rows)

    def _eliminate(self, j: int, rows: Index) -> None:
        """Make the factors of feature j, and send each to the last of the missing features that it is of."""
        inbox, self.inbox[j] = self.inbox[j], []
        if not self.keeps:
            self.entries -= sum(sender.entries for sender in inbox)
        self.number[rows], scopes = self._scopes(j, rows, inbox)
        parts = [list(by_label(self.number[sender.rows])) for sender in inbox]
        groups = [(label, rows[inside]) for label, inside in by_label(self.number[rows])]
        heard: dict[int, list[tuple[Factor, Index, Index]]] = {label: [] for label, _ in groups}
        for _, those in groups:
            self.number[those] = np.arange(len(those))
        for sender, of_sender in zip(inbox, parts):
            for label, part in of_sender:
                heard[label].append((sender, part, self.number[sender.rows[part]]))
        for label, those in groups:
            factor = self._factor(j, those, scopes[label], heard[label])
            self.entries += factor.entries
            if self.entries > LARGEST_BLOCK and len(self.number) > 1:
                raise TooManyRows
            if factor.scope:
                self.inbox[factor.scope[-1]].append(factor)
            else:
                self.log_total[:, factor.rows] += factor.log_table

    def _scopes(self, j: int, rows: Index, inbox: list[Factor]) -> tuple[Index, dict[int, Scope]]:
        """The missing features, in the order of the network, that the factors of each row are of: labels of the rows,
        and what these stand for."""
        members = sorted(self.families.members[j], key=self.rank.__getitem__)
        labels = np.zeros(len(rows), dtype=np.intp)
        for f in reversed(members):
            labels += labels + self.missing[f, rows]
        present = np.flatnonzero(np.bincount(labels)).tolist()
        scopes = {label: tuple(f for i, f in enumerate(members) if label >> i & 1) for label in present}
        if self.families.decomposable:  # then what is sent is of the members
            return labels, scopes
        number = {scope: label for label, scope in scopes.items()}
        for sender in inbox:
            places = np.searchsorted(rows, sender.rows)
            for label, part in by_label(labels[places]):
                joined = tuple(sorted({*scopes[label], *sender.scope}, key=self.rank.__getitem__))
                labels[places[part]] = new = number.setdefault(joined, len(number) + (1 << len(members)))
                scopes[new] = joined
        return labels, scopes

    def _factor(self, j: int, rows: Index, scope: Scope, senders: list[tuple[Factor, Index, Index]]) -> Factor:
        """The factor of feature j in rows in which it is of the missing features ``scope``."""
        self._check_size(rows, scope)
        if not self.missing[j, rows[0]]:
            return Factor(j, rows, scope, self._given(self.log_tables[j], j, rows, scope))
        given = self._given(self.tables[j], j, rows, scope)
        ears = tuple(f for f in scope if f == j or any(f in sender.scope for sender, _, _ in senders))
        heard = np.zeros((len(given), *self.families.n_states[list(ears)], len(rows)))
        for sender, part, at in senders:
            of_part = slice(None) if len(part) == len(sender.rows) else part
            heard[..., slice(None) if len(at) == len(rows) else at] += aligned(
                sender.log_table[..., of_part], sender.scope, ears
            )
        top = heard.max(axis=tuple(range(1, heard.ndim - 1)))
        top[np.isneginf(top)] = 0.0
        heard -= top.reshape(len(top), *[1] * len(ears), -1)
        with np.errstate(divide="ignore"):
            log_table = np.log(self._summed(given, np.exp(heard), ears, scope))
            lost = np.isneginf(log_table).reshape(-1, len(rows)).any(axis=0)
            if lost.any():  # to underflow, perhaps
                log_given = np.log(given if given.shape[-1] == 1 else given[..., lost])
                log_table[..., lost] = logsumexp(log_given + aligned(heard[..., lost], ears, scope), axis=len(scope))
        log_table += top.reshape(len(top), *[1] * (len(scope) - 1), -1)
        if not self.keeps:
            return Factor(j, rows, scope[:-1], log_table)
        factor = Factor(j, rows, scope[:-1], log_table, given, np.exp(heard, out=heard), ears, senders)
        self.summed.append(factor)
        return factor

    @staticmethod
    def _summed(given: Array, heard: Array, ears: Scope, scope: Scope) -> Array:
        """Σ ``given`` · ``heard`` over the states of the last feature."""
        if len(ears) == 1 and given.shape[-1] == 1:
            total = given.reshape(len(given), -1, heard.shape[1]) @ heard
            return total.reshape(*given.shape[:-2], -1)
        return (given * aligned(heard, ears, scope)).sum(axis=len(scope))

    def _check_size(self, rows: Index, scope: Scope) -> None:
        """Refuse a table that is too large for one row, or for the block."""
        r = len(self.log_total)
        size = r * int(np.prod(self.families.n_states[list(scope)], dtype=object))
        if size > LARGEST_TABLES:
            raise ValueError(
                f"{self.missing[:, rows[0]].sum()} values of a row are missing together, and to sum over them takes a "
                f"table of {size // r} cells a class: impute them, give missing values a state of their own, or use "
                "a decomposable network or fewer parents"
            )
        if size * len(rows) > LARGEST_BLOCK and len(self.number) > 1:
            raise TooManyRows

    def _given(self, table: Array, j: int, rows: Index, scope: Scope) -> Array:
        """The ``table`` of the family of j at what is known of rows: (r, states of ``scope`` …, rows), one of all."""
        members = self.families.members[j]
        own = [f for f in scope if f in members]
        known = [f for f in members if f not in own]
        table = table.transpose(0, *(1 + members.index(f) for f in (*own, *known)))
        place = np.zeros(1, dtype=np.intp)
        for f in known:
            place = place * self.families.n_states[f] + self.places[f, rows]
        return aligned(table.reshape(*table.shape[: 1 + len(own)], -1).take(place, axis=-1), tuple(own), scope)

    def joints(self) -> Iterator[tuple[int, Index, Scope, Array]]:
        """p(missing members of a family | what is there, y), of the families that have one: the feature of the family,
        rows, these members and a table (r, their states …, rows); from the first missing feature to the last."""
        for factor in reversed(self.summed):
            scope = (*factor.scope, factor.j)
            joint = factor.given * aligned(factor.heard, factor.ears, scope)
            total = joint.sum(axis=len(scope), keepdims=True)
            joint = np.divide(joint, total, out=np.full_like(joint, 1 / joint.shape[-2]), where=total > 0)
            if factor.scope:
                joint *= np.expand_dims(factor.above, len(scope))
            for sender, part, at in factor.senders:
                of_sender = margin(joint[..., at], (*scope, ROWS), (*sender.scope, ROWS))
                if sender.given is None:
                    yield sender.j, sender.rows[part], sender.scope, of_sender
                else:
                    if sender.above is None:
                        sender.above = np.empty(sender.log_table.shape)
                    sender.above[..., part] = of_sender
            own = tuple(f for f in self.families.members[factor.j] if f in scope)
            yield factor.j, factor.rows, own, margin(joint, (*scope, ROWS), (*own, ROWS))


def sweeps(
    families: Families, places: Index, log_tables: list[Array], active: NDArray[np.bool_], keeps: bool
) -> Iterator[tuple[Index, Elimination]]:
    """Sweeps over blocks of the rows with an active family, and which rows these are."""
    rows = np.flatnonzero(active.any(axis=0))
    size = max(1, LARGEST_BLOCK // (len(log_tables[0]) * int(families.sizes.max())))
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)][::-1]
    while blocks:
        block = blocks.pop()
        try:
            sweep = Elimination(families, places[:, block], log_tables, active[:, block], keeps)
        except TooManyRows:
            blocks += [block[len(block) // 2 :], block[: len(block) // 2]]
        else:
            yield block, sweep


def log_marginal(families: Families, places: Index, log_tables: list[Array]) -> Array:
    """log Σ over the missing features of ∏_j p(x_j | x_pa(j)) over the families that have one, shape (n, r).

    A missing feature without a descendant that is known sums to one.
    """
    places = np.ascontiguousarray(places.T)
    missing = places < 0
    active = ~missing  # matter to their parents
    for j in reversed(families.order):
        for f in families.parents[j]:
            active[f] |= active[j]
    for j, of in enumerate(families.members):
        active[j] &= missing[list(of)].any(axis=0)
    out = np.zeros((places.shape[1], len(log_tables[0])))
    for rows, sweep in sweeps(families, places, log_tables, active, keeps=False):
        out[rows] = sweep.log_total.T
    return out


def state_probabilities(families: Families, places: Index, log_tables: list[Array], weights: Array) -> list[Array]:
    """Σ_y W_iy p(x_j = v | what is there of x_i, y) for each feature j, (n, r_j); one of a state that is known.

    Where what is there is impossible in a class, states that it does not decide on are equally probable there.
    """
    found = [np.equal.outer(of, np.arange(k)).astype(float) for of, k in zip(places.T, families.n_states)]
    places = np.ascontiguousarray(places.T)
    active = ~families.complete(places >= 0).T
    for block, sweep in sweeps(families, places, log_tables, active, keeps=True):
        for j, rows, members, p in sweep.joints():
            if members[-1] == j:
                p = margin(p, (*members, ROWS), (j, ROWS))
                found[j][block[rows]] = np.einsum("yvi,iy->iv", p, weights[block[rows]])
    return found


def expected_cells(families: Families, places: Index, log_tables: list[Array], weights: Array) -> Array:
    """Σ_i W_iy p(x_pa(j), x_j | what is there of x_i, y) over the rows in which a member of the family is missing, as
    cells (r, K); ``places`` (n, d) are −1 where features are missing."""
    tables = [np.zeros((weights.shape[1], size)) for size in families.sizes]
    places = np.ascontiguousarray(places.T)
    active = ~families.complete(places >= 0).T
    for block, sweep in sweeps(families, places, log_tables, active, keeps=True):
        for j, rows, missing, p in sweep.joints():
            of, members, shape = block[rows], families.members[j], families.shapes[j]
            strides = dict(zip(members, np.r_[np.cumprod(shape[:0:-1])[::-1], 1].astype(np.intp)))
            cell = np.zeros(len(of), dtype=np.intp)
            for f in members:
                if f not in missing:
                    cell += strides[f] * places[f, of]
            counts = (p * weights[of].T.reshape(p.shape[0], *[1] * len(missing), -1)).reshape(len(p), -1, len(of))
            states = np.indices([families.n_states[f] for f in missing]).reshape(len(missing), -1)
            offsets = np.array([strides[f] for f in missing]) @ states
            index = (offsets[:, None] + cell).ravel()
            for y, table in enumerate(tables[j]):
                table += np.bincount(index, counts[y].ravel(), minlength=len(table))
    return families.join(tables)
