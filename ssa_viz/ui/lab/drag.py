"""Bars to drag: one for each logit, by mouse, touch or keyboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from ssa_viz.figures.palette import Palette

KEY = "drag"  # session key of the component
TURN = "lab:turn"  # session key of the newest change that came from the bars

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
# Values on their way from here are newer than what comes back from the server until it has seen them: each change
# has a turn, and an answer to an older one is not drawn.
JS = """
const memory = new WeakMap();
const STEP = 0.1, WAIT = 90;
const short = value => String(Math.round(value * 1000) / 1000).replace("-", "\\u2212");
export default function({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bars");
  let own = memory.get(root);
  if (!own) { own = { values: [], turn: 0, held: null, timer: null, sent: 0 }; memory.set(root, own); }
  root.style.setProperty("--bar", data.colour);
  root.style.setProperty("--ink", data.ink);
  own.send = () => {
    clearTimeout(own.timer); own.timer = null; own.sent = Date.now();
    setTriggerValue("logits", { values: own.values.slice(), turn: own.turn });
  };
  const change = (index, value) => {
    const next = Math.min(own.high, Math.max(own.low, Math.round(value / STEP) * STEP));
    if (Math.abs(next - own.values[index]) < 1e-9) return;
    own.values[index] = Math.round(next * 1000) / 1000;
    own.turn = Math.max(own.turn + 1, Date.now());
    draw();
    if (!own.timer) own.timer = setTimeout(() => own.send(), Math.max(0, WAIT - (Date.now() - own.sent)));
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
    element.onpointerup = element.onpointercancel = () => {
      if (own.held !== index) return;
      own.held = null; if (own.timer) own.send();
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
  if (own.held === null && data.turn >= own.turn) {
    own.values = data.values.slice(); own.low = data.low; own.high = data.high;
  }
  root.classList.toggle("many", own.values.length > 14);
  const slots = root.querySelectorAll(".slot");
  for (let i = slots.length; i < own.values.length; i++) root.appendChild(slot(i));
  for (let i = own.values.length; i < slots.length; i++) slots[i].remove();
  draw();
}
"""


def draggable(values: Sequence[float], palette: Palette, on_change: Callable[[list[float]], None]) -> None:
    """Draw the bars; `on_change` gets all values when one was moved, about ten times a second while it moves."""
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


def _moved(on_change: Callable[[list[float]], None]) -> None:
    sent = st.session_state[KEY].get("logits")
    values, turn = (sent.get("values"), sent.get("turn")) if isinstance(sent, Mapping) else (None, None)
    # What a browser sends is not to be trusted: only finite numbers are taken.
    numbers = isinstance(values, list) and all(isinstance(v, int | float) and np.isfinite(v) for v in values)
    if numbers and values:
        st.session_state[TURN] = turn if isinstance(turn, int | float) else 0
        on_change([float(v) for v in values])


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The ends of the bars' axis: −5 to 10, or wider by a round number where the logits need it."""
    return -_round_up(max([5.0, *(-v for v in values)]), 5.0), _round_up(max([10.0, *values]), 10.0)


def _round_up(size: float, least: float) -> float:
    if size <= least:
        return least
    power = 10.0 ** np.floor(np.log10(size))
    return float(next(step * power for step in (1, 1.5, 2, 3, 5, 8, 10) if step * power >= size * (1 - 1e-12)))
