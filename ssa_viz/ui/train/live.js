// Curves and attention of runs while they train. The server sends only what is new, with the place where it goes;
// what came before is kept here. When something is missing (the page was left and is back), all of it is asked for.
const memory = new WeakMap();
const HEIGHT = 210, LEFT = 46, RIGHT = 10, TOP = 30, BOTTOM = 24;

export default function({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".live");
  let own = memory.get(root);
  if (!own || own.key !== data.key) {
    own = { key: data.key, lines: {}, maps: {} };
    memory.set(root, own);
    root.querySelector(".charts").replaceChildren();
    root.querySelector(".maps").replaceChildren();
  }
  own.data = data;
  let missing = false;
  for (const chart of data.charts) {
    const lines = (own.lines[chart.id] ??= data.runs.map(() => ({ steps: [], values: [] })));
    chart.points.forEach((sent, run) => {
      const line = lines[run];
      if (sent.from > line.steps.length) { missing = true; return; }
      line.steps.length = line.values.length = sent.from;
      line.steps.push(...sent.steps); line.values.push(...sent.values);
    });
  }
  if (missing) setTriggerValue("whole", Date.now());
  for (const map of data.maps) if (map.cells) own.maps[map.run] = map;
  own.draw = () => { draw(root, own); };
  own.draw();
  if (!own.watching) {
    own.watching = new ResizeObserver(() => own.draw());
    own.watching.observe(root);
  }
}

function draw(root, own) {
  const { data } = own;
  const charts = root.querySelector(".charts"), maps = root.querySelector(".maps");
  for (const chart of data.charts) {
    curve(canvas(charts, chart.id, HEIGHT), chart, own.lines[chart.id], data);
  }
  for (const run of data.maps.map(map => map.run)) {
    if (own.maps[run]) picture(canvas(maps, "map " + run, 320), own.maps[run], data);
  }
}

function canvas(place, id, height) {
  let found = [...place.children].find(each => each.dataset.id === id);
  if (!found) {
    found = document.createElement("canvas");
    found.dataset.id = id; found.setAttribute("role", "img"); found.style.height = height + "px";
    place.appendChild(found);
  }
  const ratio = window.devicePixelRatio || 1, width = found.clientWidth;
  if (found.width !== Math.round(width * ratio)) found.width = Math.round(width * ratio);
  if (found.height !== Math.round(height * ratio)) found.height = Math.round(height * ratio);
  const pen = found.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px " + (getComputedStyle(found).fontFamily || "sans-serif");
  return { element: found, pen, width, height };
}

function curve({ element, pen, width, height }, chart, lines, data) {
  const right = width - RIGHT, bottom = height - BOTTOM;
  const all = lines.flatMap(line => line.values).filter(value => Number.isFinite(value) && (!chart.log || value > 0));
  let [low, high] = chart.span ?? [Math.min(...all), Math.max(...all)];
  if (!all.length && !chart.span) [low, high] = chart.log ? [0.1, 1] : [0, 1];
  if (!chart.span && !chart.log) low = Math.min(0, low);
  if (low === high) { low -= chart.log ? low / 2 : 0.5; high += chart.log ? high : 0.5; }
  const place = chart.log ? Math.log10 : value => value;
  const x = step => LEFT + (right - LEFT) * step / data.steps;
  const y = value => bottom - (bottom - TOP) * (place(value) - place(low)) / (place(high) - place(low));
  pen.fillStyle = data.ink; pen.textAlign = "left"; pen.textBaseline = "alphabetic";
  pen.font = pen.font.replace("12px", "600 13px"); pen.fillText(chart.title, 2, 14);
  pen.font = pen.font.replace("600 13px", "12px").replace("13px", "12px");
  pen.strokeStyle = data.grid; pen.lineWidth = 1; pen.fillStyle = data.muted; pen.textBaseline = "middle";
  for (const tick of ticks(low, high, chart.log)) {
    pen.beginPath(); pen.moveTo(LEFT, y(tick)); pen.lineTo(right, y(tick)); pen.stroke();
    pen.textAlign = "right"; pen.fillText(short(tick), LEFT - 6, y(tick));
  }
  pen.textBaseline = "top";
  for (const tick of ticks(0, data.steps, false)) {
    pen.textAlign = tick === data.steps ? "right" : "center"; pen.fillText(short(tick), x(tick), bottom + 6);
  }
  lines.forEach((line, run) => {
    pen.strokeStyle = data.runs[run].colour; pen.lineWidth = 2.2; pen.lineJoin = "round";
    pen.setLineDash(data.runs[run].dash);
    pen.beginPath();
    line.steps.forEach((step, i) => {
      const value = chart.log ? Math.max(line.values[i], low) : line.values[i];
      if (i) pen.lineTo(x(step), y(value)); else pen.moveTo(x(step), y(value));
    });
    pen.stroke(); pen.setLineDash([]);
  });
  const last = lines.map((line, run) => data.runs[run].name + " " + short(line.values.at(-1))).join(", ");
  element.setAttribute("aria-label", chart.title + ": " + last);
  element.drawn = { title: chart.title, lines, low, high };
}

function picture({ element, pen, width, height }, map, data) {
  const bytes = Uint8Array.from(atob(map.cells), letter => letter.charCodeAt(0));
  const size = map.size, room = Math.min(width - 24, height - 44);
  const image = new ImageData(size, size);
  for (let query = 0; query < size; query++) {
    for (let key = 0; key <= query; key++) {
      const [r, g, b] = mixed(data.stops, bytes[query * size + key] / 255);
      image.data.set([r, g, b, 255], 4 * (query * size + key));
    }
  }
  const small = new OffscreenCanvas(size, size);
  small.getContext("2d").putImageData(image, 0, 0);
  pen.fillStyle = data.ink; pen.textAlign = "left"; pen.textBaseline = "alphabetic";
  pen.fillText(map.title, 20, 14);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 20, 24, room, room);
  const cell = room / size;
  pen.strokeStyle = data.outlier; pen.lineWidth = 1.5;
  pen.strokeRect(20 + cell * map.outlier, 24 + cell * map.outlier, cell, room - cell * map.outlier);
  pen.setLineDash([3, 3]); pen.strokeRect(20, 24 + cell * map.outlier, cell * map.outlier, cell); pen.setLineDash([]);
  pen.fillStyle = data.outlier; pen.textAlign = "center";
  pen.fillText("70", 20 + cell * (map.outlier + 0.5), 24 + cell * map.outlier - 4);
  pen.fillStyle = data.muted; pen.textAlign = "left"; pen.fillText("key →", 20, 24 + room + 14);
  pen.save(); pen.translate(12, 24 + 40); pen.rotate(-Math.PI / 2); pen.fillText("← query", 0, 0); pen.restore();
  element.setAttribute("aria-label", map.title + ", attention with queries down and keys across");
  element.drawn = { title: map.title, size, cells: bytes };
}

function mixed(stops, share) {
  const at = share * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(at));
  return [0, 1, 2].map(c => Math.round(stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (at - i)));
}

function ticks(low, high, log) {
  const found = [];
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    for (let power = first; power <= last; power += Math.max(1, Math.ceil((last - first) / 4))) found.push(10 ** power);
    return found.length > 1 ? found : [low, high];
  }
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(each => each >= rough * 0.999);
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) found.push(tick);
  return found;
}

function short(value) {
  if (value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.001 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
  return text.replace("-", "\u2212");
}
