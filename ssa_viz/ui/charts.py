"""A chart with its downloads, the way every page shows one."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from ssa_viz.figures import export

# Plotly's own export of the drawn chart: nothing is sent to a server, and no browser is needed on it.
IMAGE_SCRIPT = """
export default function({ data, parentElement }) {
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => {
      const chart = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
      if (!chart || !window.Plotly) return;
      const { width, height } = chart.getBoundingClientRect();
      window.Plotly.downloadImage(chart, {
        format: button.dataset.format, filename: data.filename, width, height, scale: 2,
      });
    };
  }
}
"""
IMAGE_STYLE = """
div { display: flex; gap: .5rem; }
button { flex: 1; font: inherit; color: inherit; background: transparent; cursor: pointer; padding: .35rem .75rem;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: .5rem; }
button:hover, button:focus-visible { border-color: currentColor; }
"""
IMAGE_BUTTONS = '<div><button data-format="png">PNG</button><button data-format="svg">SVG</button></div>'


def key_of(text: str) -> str:
    """`text` as a part of a key: everything but letters and digits is an underscore."""
    return "".join(c if c.isalnum() else "_" for c in text)


def chart(
    figure: go.Figure,
    key: str,
    *,
    alt: str,
    data: Callable[[], bytes],
    on_select: Callable[[], None] | None = None,
) -> None:
    """Draw `figure` under `key` (letters, digits and underscores) and a menu to download it.

    Args:
        alt: what the chart shows, for those who do not see it.
        data: makes the CSV of everything drawn; called only when somebody asks for it.
        on_select: called when a point is chosen; `st.session_state[key]` then holds the choice.
    """
    st.plotly_chart(
        figure,
        key=key,
        theme=None,
        alt=alt,
        on_select=on_select or "ignore",
        selection_mode="points",
        config={"displaylogo": False, "displayModeBar": False, "scrollZoom": False},
    )
    menu = st.popover("Download", icon=":material/download:", type="tertiary", key=f"{key}_menu", on_change="rerun")
    if not menu.open:
        return
    with menu:
        _image_buttons(key)
        st.download_button(
            "HTML",
            lambda: export.to_html(figure),
            f"{key}.html",
            "text/html",
            key=f"{key}_html",
            on_click="ignore",
            width="stretch",
        )
        st.download_button("CSV", data, f"{key}.csv", "text/csv", key=f"{key}_csv", on_click="ignore", width="stretch")


def _image_buttons(key: str) -> None:
    buttons = st.components.v2.component("image_download", html=IMAGE_BUTTONS, css=IMAGE_STYLE, js=IMAGE_SCRIPT)
    buttons(data={"chart": key, "filename": key}, key=f"{key}_images")
