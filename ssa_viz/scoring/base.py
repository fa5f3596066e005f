"""The protocol that every scoring function follows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError, UnknownNameError

# A parameter's least distance from its lower bound, and its largest value: float32 holds both without loss.
SMALLEST, LARGEST = 1e-6, 1e6


@dataclass(frozen=True)
class Parameter:
    """One scalar of a scoring function, held once per head.

    Attributes:
        name: identifier in code and configs.
        symbol: LaTeX symbol.
        meaning: one clause for a slider's help text.
        default: starting value.
        lower: the open lower bound of the value; `inclusive` allows the bound itself when the value is fixed.
        slider: range that a page offers.
    """

    name: str
    symbol: str
    meaning: str
    default: float
    lower: float
    slider: tuple[float, float]
    inclusive: bool = False

    def validate(self, value: float, *, learnable: bool) -> float:
        """Return `value` as a float if this parameter can start from it.

        Raises:
            InvalidInputError: the value is not a number, not finite, too large, or not above the bound.
        """
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{self.name} must be a number, not {value!r}") from None
        at_bound = self.inclusive and not learnable and number == self.lower
        if not (at_bound or self.lower + SMALLEST <= number <= LARGEST):
            raise InvalidInputError(
                f"{self.name} must be a number from {self.lower + SMALLEST:.7g} to {LARGEST:g}"
                f"{f' (or {self.lower:g} when it is fixed)' if self.inclusive else ''}, not {number:g}"
            )
        return number


class ScoringFunction(nn.Module, ABC):
    """Logits x (B, H, Q, K) and a boolean mask (True = visible) to weights w (B, H, Q, K).

    Every function keeps these rules; `tests/test_scoring_contract.py` checks them for all registered ones:
    a key that is not visible has weight 0 and no influence, whatever its logit (NaN included); a row without
    a visible key is all zeros; half-precision logits are worked on in float32 and the weights returned in the
    logits' own dtype; a NaN or +inf logit at a visible key makes its whole row NaN rather than a plausible
    number (`ssa_viz.model.Trace.check_finite` turns that into an error); a visible −inf counts as hidden.

    A parameter is one value per head. A learnable one is stored unconstrained as `raw_<name>` and mapped to
    lower + softplus(raw); a fixed one is a buffer `<name>` with the value itself.

    Raises:
        UnknownNameError: `initial` or `learnable` names a parameter that the function does not have.
        InvalidInputError: an initial value is outside its range.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    order: ClassVar[int] = 100
    formula: ClassVar[str]
    source: ClassVar[str]
    parameters_spec: ClassVar[tuple[Parameter, ...]] = ()
    rows_sum_to_one: ClassVar[bool] = True

    def __init__(
        self,
        heads: int,
        *,
        initial: Mapping[str, float] | None = None,
        learnable: Mapping[str, bool] | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        initial, learnable = dict(initial or {}), dict(learnable or {})
        known = [p.name for p in self.parameters_spec]
        for name in [*initial, *learnable]:
            if name not in known:
                raise UnknownNameError(f"{self.name} has no parameter {name!r}; it has: {', '.join(known) or 'none'}")
        for spec in self.parameters_spec:
            learns = learnable.get(spec.name, True)
            value = spec.validate(initial.get(spec.name, spec.default), learnable=learns)
            if learns:
                self.register_parameter(f"raw_{spec.name}", nn.Parameter(_unconstrain(value - spec.lower, heads)))
            else:
                self.register_buffer(spec.name, torch.full((heads,), value))

    @abstractmethod
    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        """Weights (B, H, Q, K) in the logits' dtype; `visible` is boolean and broadcasts to the logits."""

    def value(self, name: str) -> Tensor:
        """The parameter `name`, one value per head, (H,), inside its range."""
        raw = getattr(self, f"raw_{name}", None)
        if raw is None:
            fixed: Tensor = getattr(self, name)
            return fixed
        lower = next(p.lower for p in self.parameters_spec if p.name == name)
        return lower + F.softplus(raw)

    def values(self) -> dict[str, list[float]]:
        """Every parameter's current values, one per head."""
        return {p.name: self.value(p.name).detach().tolist() for p in self.parameters_spec}


def _unconstrain(excess: float, heads: int) -> Tensor:
    """The raw value whose softplus is `excess` > 0: log(expm1(e)), without overflow for a large e."""
    raw = excess + math.log(-math.expm1(-excess))
    return torch.full((heads,), raw)


def left_out(logits: Tensor, visible: Tensor) -> Tensor:
    """The keys that a row does without: hidden ones and those at −inf, boolean, in the logits' shape."""
    return ~visible | (logits == -torch.inf)


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float32 for the half precisions, else the input's own."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
