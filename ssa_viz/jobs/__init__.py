"""Training runs as processes of their own, with a folder each. They outlive the page, the browser and the server.

runs/<id>/run.json                the settings; everything that `python -m ssa_viz train --config` needs
runs/<id>/environment.json        versions and threads that it ran with
runs/<id>/status.json             what it is doing, with a heartbeat
runs/<id>/metrics.jsonl           one line a measurement, appended
runs/<id>/probe-*.npz             the attention on a fixed sequence, as training went
runs/<id>/state-*.safetensors     what an exact continuation needs, the last two
runs/<id>/model.safetensors, config.json, metrics.json     the finished checkpoint, as in models/
"""

from ssa_viz.jobs.control import create, discard, export, pause, rename, restore, resume, stop
from ssa_viz.jobs.folder import RunConfig, read_run
from ssa_viz.jobs.listing import Listed, listed, runs
from ssa_viz.jobs.queue import runs_at_once, start_waiting
from ssa_viz.jobs.records import Picture, Records, probe_at, probe_steps
from ssa_viz.jobs.status import ACTIVE, Status, read_status
from ssa_viz.jobs.worker import work

__all__ = [
    "ACTIVE",
    "Listed",
    "Picture",
    "Records",
    "RunConfig",
    "Status",
    "create",
    "discard",
    "export",
    "listed",
    "pause",
    "probe_at",
    "probe_steps",
    "read_run",
    "read_status",
    "rename",
    "restore",
    "resume",
    "runs",
    "runs_at_once",
    "start_waiting",
    "stop",
    "work",
]
