"""Which form a loss takes in which situation, and why."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from losslib.declared import changes
from losslib.kernels import is_plain, proxies
from losslib.kernels.forms import Kernel, kernels, unfit_parts
from losslib.proxies import ProxyLoss


class Situation(NamedTuple):
    """What the choice rests on, besides the loss."""

    rows: int
    references: int | None = None  # of a separate set
    device: str = "cpu"
    width: int = 128  # columns of the embeddings
    tuples: bool = False  # whether pairs are given by index
    labelled: bool = True  # whether labels tell the pairs, and compare as whole numbers
    values_known: bool = True  # False while compiling and for fake tensors


class Choice(NamedTuple):
    """plain, dense, blocked, rows or own, and why ("because ...").

    even: whether classes of one size are better off in the dense form, in the order of their labels.
    """

    form: str
    reason: str
    even: bool = False


_CHOSEN: WeakKeyDictionary[Any, tuple[object, Choice]] = WeakKeyDictionary()


def chosen(loss: Any, kernel: Kernel, here: Situation) -> Choice:
    """What `choose` said, for as long as nothing that it rests on has changed."""
    if torch.compiler.is_compiling():
        return choose(loss, here)
    resting_on = (here, kernel, changes(), is_plain())
    last = _CHOSEN.get(loss)
    if last is None or last[0] != resting_on:
        last = _CHOSEN[loss] = (resting_on, choose(loss, here))
    return last[1]


def choose(loss: Any, here: Situation) -> Choice:
    """The form a loss takes."""
    if isinstance(loss, ProxyLoss):
        return _against_proxies(loss, here)
    refused = _refused(loss, here)
    if refused:
        return Choice("plain", refused)
    kernel = kernels()[type(loss)]
    unfit, above = kernel.unfit(loss), kernel.above(loss)
    many = here.rows * (here.references or here.rows) > above**2
    if unfit and _not_by_rows(loss, kernel, here):
        return Choice("plain", unfit)
    if kernel.dense is None:
        return _of_its_own(here)
    where = unfit or _unblocked(loss, kernel, here)
    if unfit or (where and many and not _not_by_rows(loss, kernel, here)):
        form, why = "rows", f"blocks of whole rows need memory linear in them; {where}"
    elif where:
        form, why = "dense", f"value and gradient come from the distance matrix in one pass; {where}"
    else:
        form, why = "blocked", f"above {above} rows blocks of rows sorted by label stay in the cache"
    even = not unfit and not _unordered(here) and kernel.evenly(loss, here.rows)
    if even:
        why += "; classes of one size go as one matrix in the order of labels"
    return Choice(form, why, even)


def _against_proxies(loss: Any, here: Situation) -> Choice:
    listed = "rows are weighed by an index tuple" if here.tuples else ""
    refused = proxies.refused(loss, here.rows, here.device) or listed
    if refused:
        return Choice("plain", refused)
    return Choice("dense", "value and gradients come from the matrix of rows and proxies in one pass")


def _of_its_own(here: Situation) -> Choice:
    if here.references is not None or not here.labelled or not here.values_known or here.device != "cpu":
        return Choice("plain", "only a batch with whole-number labels on the CPU has a shorter way")
    return Choice("own", "only two rows of each class take part")


def _refused(loss: Any, here: Situation) -> str:
    if not torch.compiler.is_compiling() and is_plain():
        return "losslib.kernels.plain() is in force"
    kernel = kernels().get(type(loss))
    if kernel is None:
        return "this loss has no fused form"
    if here.tuples:
        return "pairs are given by index"
    if here.device not in ("cpu", "cuda"):
        return f"there is no fused form for {here.device}"
    if here.rows < 2 or here.references == 0:
        return "there are no pairs to speak of"
    apart = here.references is not None and not kernel.takes_references
    return "the references are a set of their own" if apart else ""


def _not_by_rows(loss: Any, kernel: Kernel, here: Situation) -> bool:
    """Whether blocks of whole rows are not possible."""
    if kernel.by_rows is None or here.device != "cpu" or not here.values_known or not here.labelled:
        return True
    return bool((kernel.unfit_by_rows or unfit_parts)(loss))


def _unordered(here: Situation) -> str:
    """Why rows are not put in the order of their labels; "" where they may be."""
    if here.device != "cpu" or not here.values_known:
        return "its shapes are static, for accelerators and compilation"
    if here.references is not None:
        return "the references are a set of their own"
    return "" if here.labelled else "its labels are not whole numbers"


def _unblocked(loss: Any, kernel: Kernel, here: Situation) -> str:
    """Why not the blocked form; "" where it is taken."""
    if kernel.blocked is None:
        return "it has no blocked form"
    if why := _unordered(here):
        return why
    if here.rows <= (above := kernel.above(loss)):
        return f"up to {above} rows that is the quickest"
    return kernel.not_in_blocks(loss, here.rows)
