"""The protocol that every scoring function follows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError, UnknownNameError

# A parameter's least distance from its bounds, and its largest size: float32 holds both without loss.
SMALLEST, LARGEST = 1e-6, 1e6

RowSum = Literal["one", "one or zero", "at most one", "any"]


@dataclass(frozen=True)
class Parameter:
    """One scalar of a scoring function, held once per head.

    Attributes:
        name: identifier in code and configs.
        symbol: LaTeX symbol.
        meaning: one clause for a slider's help text.
        default: starting value.
        lower, upper: the open bounds of the value, −inf or inf where there is none; an upper bound needs a lower one.
            `inclusive` allows the bounds themselves when the value is fixed.
        slider: range that a page offers.
        constant: never learned, as it only sets a scale that is known before training.
    """

    name: str
    symbol: str
    meaning: str
    default: float
    lower: float
    slider: tuple[float, float]
    inclusive: bool = False
    upper: float = math.inf
    constant: bool = False

    def learns(self, learnable: Mapping[str, bool]) -> bool:
        """Whether the value is trained, given what a config says for each name (it learns unless stated)."""
        return not self.constant and learnable.get(self.name, True)

    def validate(self, value: float, *, learnable: bool) -> float:
        """Return `value` as a float if this parameter can start from it.

        Raises:
            InvalidInputError: the value is not a number, not finite, too large, or not inside the bounds.
        """
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{self.name} must be a number, not {value!r}") from None
        low, high = max(self.lower + SMALLEST, -LARGEST), min(self.upper - SMALLEST, LARGEST)
        bounds = [bound for bound in (self.lower, self.upper) if self.inclusive and math.isfinite(bound)]
        if not (low <= number <= high or (number in bounds and not learnable)):
            also = " or ".join(f"{bound:g}" for bound in bounds)
            raise InvalidInputError(
                f"{self.name} must be a number from {low:.7g} to {high:.7g}"
                f"{f' (or {also} when it is fixed)' if also else ''}, not {number:g}"
            )
        return number

    def constrained(self, raw: Tensor) -> Tensor:
        """The value inside the bounds that a stored `raw` stands for: raw itself, softplus, or a sigmoid."""
        raw = raw.to(working_dtype(raw.dtype))
        if math.isinf(self.lower):
            return raw
        if math.isinf(self.upper):
            return self.lower + F.softplus(raw)
        return self.lower + (self.upper - self.lower) * torch.sigmoid(raw)

    def unconstrained(self, value: float) -> float:
        """The raw value that `constrained` maps to `value`."""
        if math.isinf(self.lower):
            return value
        excess = value - self.lower
        if math.isinf(self.upper):
            return excess + math.log(-math.expm1(-excess))  # log(expm1(excess)) without overflow
        return math.log(excess) - math.log(self.upper - value)


class ScoringFunction(nn.Module, ABC):
    """Logits x (B, H, Q, K) and a boolean mask (True = visible) to weights w (B, H, Q, K).

    Every function keeps these rules; `tests/test_scoring_contract.py` checks them for all registered ones:
    a key that is not visible has weight 0 and no influence, whatever its logit (NaN included); a row without
    a visible key is all zeros; half-precision logits are worked on in float32 and the weights returned in the
    logits' own dtype; a NaN or +inf logit at a visible key makes its whole row NaN rather than a plausible
    number (`ssa_viz.model.Trace.check_finite` turns that into an error); a visible −inf counts as hidden; no
    weight is negative, and a higher logit never has less weight.

    Most functions are `forward` alone. One that compares queries and keys in its own way overrides `logits` too.
    `score`, `magnified` and `grown` are what is known of it in closed form, for pages and tests.

    A parameter is one value per head. A learnable one is stored unconstrained as `raw_<name>` and mapped into its
    bounds; a fixed one is a buffer `<name>` with the value itself.

    Attributes:
        row_sum: what the weights of a row with a visible key add up to: `one`; `one or zero`, where a row may be
            empty; `at most one`, where the rest goes to no token; `any`.
        smooth: whether the weights are differentiable everywhere; the others have kinks.

    Raises:
        UnknownNameError: `initial` or `learnable` names a parameter that the function does not have.
        InvalidInputError: an initial value is outside its range, or a constant is asked to learn.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    order: ClassVar[int] = 100
    formula: ClassVar[str]
    source: ClassVar[str]
    parameters_spec: ClassVar[tuple[Parameter, ...]] = ()
    row_sum: ClassVar[RowSum] = "one"
    smooth: ClassVar[bool] = True

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
            learns = spec.learns(learnable)
            if spec.constant and learnable.get(spec.name, False):
                raise InvalidInputError(f"{spec.name} of {self.name} is a constant and cannot learn")
            value = spec.validate(initial.get(spec.name, spec.default), learnable=learns)
            if learns:
                raw = torch.full((heads,), spec.unconstrained(value))
                self.register_parameter(f"raw_{spec.name}", nn.Parameter(raw))
            else:
                self.register_buffer(spec.name, torch.full((heads,), value))

    @abstractmethod
    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        """Weights (B, H, Q, K) in the logits' dtype; `visible` is boolean and broadcasts to the logits."""

    def implementation(self, logits: Tensor) -> str:
        """How `forward` would work on these logits: `torch`, or `fused` where one compiled loop does it."""
        return "torch"

    def logits(self, query: Tensor, key: Tensor, places: Tensor) -> Tensor:
        """Logits (B, H, Q, K) of queries (B, H, Q, D) and keys (B, H, K, D): q·k/√D.

        Args:
            places: the position in the sequence of each of the last Q of the K tokens and of those before, (K,). The
                queries are the last Q tokens.
        """
        return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)

    def score(self, logits: Tensor) -> Tensor | None:
        """s(x) before normalising, in the logits' shape (B, H, Q, K); None where it is no function of one logit."""
        return None

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor | None:
        """What the row λ·logits leaves for all keys but the strongest, to leading order for large λ; None if unknown.

        Args:
            logits: one row with all keys visible, (K,) with K ≥ 2, float64.
            factors: λ, (F,).

        Returns:
            Σ w over all keys but one of the largest weight, (F,), for head 0.
        """
        return None

    def grown(self, others: Tensor, largest: Tensor) -> Tensor | None:
        """What a row leaves for `others` when one more logit grows, to leading order for large t; None if unknown.

        Args:
            others: the logits that stay, (K − 1,) with K ≥ 2, float64.
            largest: t, the logit that grows, (F,).

        Returns:
            Σ w over `others`, (F,), for head 0.
        """
        return None

    def value(self, name: str) -> Tensor:
        """The parameter `name`, one value per head, (H,), inside its range."""
        raw = getattr(self, f"raw_{name}", None)
        if raw is None:
            fixed: Tensor = getattr(self, name)
            return fixed
        return next(p for p in self.parameters_spec if p.name == name).constrained(raw)

    def values(self) -> dict[str, list[float]]:
        """Every parameter's current values, one per head."""
        return {p.name: self.value(p.name).detach().tolist() for p in self.parameters_spec}


def left_out(logits: Tensor, visible: Tensor) -> Tensor:
    """The keys that a row does without: hidden ones and those at −inf, boolean, in the logits' shape."""
    return ~visible | (logits == -torch.inf)


def prepared(logits: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """The logits in the dtype to work in, 0 where a key is left out, and which are: no hidden NaN can do harm."""
    hidden = left_out(logits, visible)
    # torch.where takes half the time of masked_fill.
    return torch.where(hidden, 0.0, logits.to(working_dtype(logits.dtype))), hidden


def spoilt(weights: Tensor, logits: Tensor, hidden: Tensor) -> Tensor:
    """The weights, with NaN for the whole row where a NaN or +inf is among logits whose hidden ones are replaced.

    For functions that work on each key alone; the others' sums do it by themselves.
    """
    bad = ~(logits.detach().amax(dim=-1, keepdim=True) < torch.inf)
    return weights.masked_fill(bad, torch.nan).masked_fill(hidden, 0.0) if perhaps(bad) else weights


def perhaps(mask: Tensor) -> bool:
    """Whether any element may be True: known on a CPU, and not worth the wait on other devices."""
    return mask.device.type != "cpu" or bool(mask.any())


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float32 for the half precisions, else the input's own."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
