"""Bars to drag: one for each logit, by mouse, touch or keyboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from ssa_viz.figures.palette import Palette
from ssa_viz.inspect.lab import MOST_KEYS

KEY = "drag"  # session key of the component
TURN = "lab:turn"  # session key of the newest change that came from the bars
PLACES = frozenset(map(str, range(MOST_KEYS)))  # as JSON names them

HTML = '<div class="bars" role="group" aria-label="Logits, one bar for each key"></div>'
# The padding is that of the panels below, so that bars of one key stand in one line.
CSS = """
.bars { display: flex; height: 168px; padding: 0 12px 0 34px; position: relative; user-select: none;
  font: 12px var(--st-font, system-ui, sans-serif); }
.slot { flex: 1; position: relative; cursor: ns-resize; touch-action: none; border-radius: 4px; outline: none;
  min-width: 0; }
.slot:hover { background: color-mix(in srgb, currentColor 5%, transparent); }
.slot:focus-visible { box-shadow: 0 0 0 2px var(--ink); }
.zero { position: absolute; left: 34px; right: 12px; height: 1px; pointer-events: none;
  background: color-mix(in srgb, currentColor 35%, transparent); }
.name { position: absolute; left: 0; font-size: 11px; transform: translateY(-50%); opacity: .7; }
.bar { position: absolute; left: 18%; right: 18%; border-radius: 3px; background: var(--bar); }
.value { position: absolute; left: -20%; right: -20%; text-align: center; font-variant-numeric: tabular-nums;
  pointer-events: none; white-space: nowrap; }
.many .value { font-size: 9px; }
"""
# What was moved here is newer than what comes back from the server until it has seen it: each change has a turn, and
# an answer to an older one is not drawn. The next change waits for that answer, so that a slow browser or network
# draws fewer rows instead of falling behind. Only the moved keys are sent: what was typed meanwhile stays.
JS = """
const memory = new WeakMap();
const STEP = 0.1, WAIT = 90, PATIENCE = 3000;  // milliseconds between two changes, and until an answer counts as lost
const short = value => String(Math.round(value * 1000) / 1000).replace("-", "\\u2212");
export default function({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bars");
  let own = memory.get(root);
  if (!own) {
    own = { values: [], moved: {}, turn: 0, sent: 0, at: 0, held: null, timer: null, waiting: null };
    memory.set(root, own);
  }
  root.style.setProperty("--bar", data.colour);
  root.style.setProperty("--ink", data.ink);
  own.send = () => {
    clearTimeout(own.timer); clearTimeout(own.waiting);
    own.timer = null; own.at = Date.now(); own.sent = own.turn;
    own.waiting = setTimeout(() => own.answered(), PATIENCE);
    setTriggerValue("logits", { moved: { ...own.moved }, turn: own.turn });
  };
  own.answered = () => {
    clearTimeout(own.waiting); own.waiting = null;
    if (own.turn > own.sent) own.sendSoon(); else own.moved = {};
  };
  own.sendSoon = () => {
    if (own.timer || own.waiting) return;
    own.timer = setTimeout(() => own.send(), Math.max(0, WAIT - (Date.now() - own.at)));
  };
  const change = (index, value) => {
    const next = Math.min(own.high, Math.max(own.low, Math.round(value / STEP) * STEP));
    if (Math.abs(next - own.values[index]) < 1e-9) return;
    own.values[index] = Math.round(next * 1000) / 1000;
    own.moved[index] = own.values[index]; own.turn += 1;
    draw(); own.sendSoon();
  };
  const at = event => {
    const box = root.getBoundingClientRect();
    return own.high - (event.clientY - box.top - 18) / (box.height - 36) * (own.high - own.low);
  };
  const slot = index => {
    const element = document.createElement("div");
    element.className = "slot"; element.tabIndex = 0;
    element.setAttribute("role", "slider"); element.setAttribute("aria-orientation", "vertical");
    element.innerHTML = '<div class="bar"></div><div class="value"></div>';
    element.onpointerdown = event => {
      if (event.button) return;
      event.preventDefault(); element.focus({ preventScroll: true });
      element.setPointerCapture(event.pointerId); own.held = index; change(index, at(event));
    };
    element.onpointermove = event => { if (own.held === index) change(index, at(event)); };
    element.onpointerup = element.onpointercancel = element.onlostpointercapture = () => {
      if (own.held !== index) return;
      own.held = null; if (own.turn > own.sent) own.send();
    };
    element.onkeydown = event => {
      const big = event.shiftKey ? 1 : STEP, value = own.values[index];
      const to = { ArrowUp: value + big, ArrowDown: value - big, PageUp: value + 1, PageDown: value - 1,
        Home: own.low, End: own.high }[event.key];
      if (to === undefined) {
        const near = { ArrowLeft: element.previousElementSibling, ArrowRight: element.nextElementSibling }[event.key];
        if (near && near.classList.contains("slot")) near.focus();
        return;
      }
      event.preventDefault(); change(index, to);
    };
    return element;
  };
  const draw = () => {
    const percent = value => 18 + (own.high - value) / (own.high - own.low) * (168 - 36);
    const zero = percent(0);
    root.querySelector(".zero").style.top = zero + "px";
    root.querySelector(".name").style.top = zero + "px";
    root.querySelectorAll(".slot").forEach((element, index) => {
      const value = own.values[index], top = percent(value);
      const bar = element.querySelector(".bar"), said = element.querySelector(".value");
      bar.style.top = Math.min(top, zero) + "px";
      bar.style.height = Math.max(2, Math.abs(top - zero)) + "px";
      said.style.top = (value < 0 ? top + 2 : top - 17) + "px";
      said.textContent = short(value);
      element.setAttribute("aria-label", "logit of key " + (index + 1));
      element.setAttribute("aria-valuemin", own.low); element.setAttribute("aria-valuemax", own.high);
      element.setAttribute("aria-valuenow", value); element.setAttribute("aria-valuetext", short(value));
    });
  };
  if (!root.querySelector(".zero")) {
    root.innerHTML = '<div class="zero"></div><div class="name" aria-hidden="true">x = 0</div>';
  }
  if (data.turn >= own.sent && own.waiting) own.answered();
  // A server that was started again counts from 0.
  const forgotten = data.turn === 0 && !own.waiting && own.turn === own.sent;
  if (own.held === null && (data.turn >= own.turn || forgotten)) {
    own.values = data.values.slice(); own.low = data.low; own.high = data.high;
    own.turn = own.sent = data.turn;
  }
  root.classList.toggle("many", own.values.length > 14);
  const slots = root.querySelectorAll(".slot");
  for (let i = slots.length; i < own.values.length; i++) root.appendChild(slot(i));
  for (let i = own.values.length; i < slots.length; i++) slots[i].remove();
  draw();
}
"""


def draggable(values: Sequence[float], palette: Palette, on_change: Callable[[dict[int, float]], None]) -> None:
    """Draw the bars; `on_change` gets what was moved, place to logit, up to ten times a second while it moves.

    Draw them after what shows their values: once they are drawn, the next change may come and end this run.
    """
    bars = st.components.v2.component("draggable_bars", html=HTML, css=CSS, js=JS)
    low, high = _span(values)
    data = {
        "values": list(values),
        "turn": st.session_state.get(TURN, 0),
        "low": low,
        "high": high,
        "colour": palette.muted,
        "ink": palette.ink,
    }
    bars(data=data, key=KEY, on_logits_change=lambda: _moved(on_change))


def _moved(on_change: Callable[[dict[int, float]], None]) -> None:
    sent = st.session_state[KEY].get("logits")
    moved, turn = (sent.get("moved"), sent.get("turn")) if isinstance(sent, Mapping) else (None, None)
    # What a browser sends is not to be trusted: only finite numbers at places from 0 are taken.
    if isinstance(moved, Mapping) and moved and all(_usable(place, value) for place, value in moved.items()):
        st.session_state[TURN] = turn if isinstance(turn, int | float) else 0
        on_change({int(place): float(value) for place, value in moved.items()})


def _usable(place: object, value: object) -> bool:
    return (
        isinstance(place, str)
        and place in PLACES
        and isinstance(value, int | float)
        and bool(np.isfinite(float(value)))
    )


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The ends of the bars' axis: −5 to 10, or wider by a round number where the logits need it."""
    return -_round_up(max([5.0, *(-v for v in values)]), 5.0), _round_up(max([10.0, *values]), 10.0)


def _round_up(size: float, least: float) -> float:
    if size <= least:
        return least
    power = 10.0 ** np.floor(np.log10(size))
    return float(next(step * power for step in (1, 1.5, 2, 3, 5, 8, 10) if step * power >= size * (1 - 1e-12)))
