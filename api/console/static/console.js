// Small additions to pages that work without scripts: charts, shortcuts, confirmations.
"use strict";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Draw the series of each figure with data-chart; redraw it when the page part is updated.
function draw(figure) {
  const series = JSON.parse(figure.dataset.chart);
  if (figure.plot) {
    figure.plot.setData(series);
    return;
  }
  const meanings = { succeeded: "--good", failed: "--bad", waiting: "--warn", accepted: "--info" };
  const axis = { stroke: style("--dim"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } };
  const labels = figure.dataset.labels.split(",");
  const days = series[0].at(-1) - series[0][0] > 2 * 86400;
  // Times are in UTC, as everywhere in the console.
  const times = (_, ticks) => ticks.map((at) => new Date(at * 1000).toISOString().slice(...(days ? [5, 10] : [11, 16])))
    .map((label, at, all) => (label === all[at - 1] ? "" : label));
  const time = (_, at) => (at === null ? "–" : new Date(at * 1000).toISOString().slice(0, 16).replace("T", " "));
  const options = {
    width: figure.clientWidth,
    height: 180,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, values: times }, { ...axis, size: 56 }],
    series: [{ label: "UTC", value: time }, ...labels.map((label) => ({ label, stroke: style(meanings[label] || "--accent"), width: 2, points: { show: series[0].length < 40, size: 4 } }))],
  };
  figure.plot = new uPlot(options, series, figure);
  // The legend is laid out by a table without meaning.
  figure.querySelectorAll("table").forEach((legend) => legend.setAttribute("role", "presentation"));
}

function drawAll() {
  if (window.uPlot) document.querySelectorAll("figure[data-chart]").forEach(draw);
}

// The style shows the menu and all filters on a wide window. Older browsers need this for that.
const wide = matchMedia("(min-width: 52.01rem)");
const unfold = () => {
  for (const part of document.querySelectorAll(".menu, .more")) part.open = wide.matches || part.hasAttribute("data-used");
};
if (!CSS.supports("selector(::details-content)")) {
  wide.addEventListener("change", unfold);
  unfold();
}

addEventListener("resize", () => document.querySelectorAll("figure[data-chart]").forEach((figure) =>
  figure.plot && figure.plot.setSize({ width: figure.clientWidth, height: 180 })));
document.addEventListener("htmx:after:swap", drawAll);
// An update keeps open what a person has opened: the new part of the page has it closed.
const opened = new Set();
document.addEventListener("click", (event) => {
  const part = event.target.closest("summary")?.parentElement;
  if (part) setTimeout(() => opened[part.open ? "add" : "delete"](part));
});
document.addEventListener("htmx:after:swap", () => opened.forEach((part) => { part.open = true; }));
document.addEventListener("htmx:after:swap", () => {
  const event = document.querySelector("#event[hx-sse\\:connect]");
  if (event) event.dataset.updated = "1";
});
// When an event ends, its buttons change: load the page again, unless a form or a link leads to
// another page, because the reload would take the place of that navigation.
let leaving = false;
addEventListener("beforeunload", () => { leaving = true; });
document.addEventListener("end", () => leaving || location.reload());

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
  const form = event.target;
  if (form.method === "post" && !event.defaultPrevented) {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
    form.setAttribute("aria-busy", "true");
    setTimeout(() => ready(form), 20000);
  }
  leaving = !event.defaultPrevented;
});

// A form is sent once, also by a double click; again after a time, or when the page is shown again.
function ready(form) {
  delete form.dataset.sent;
  form.removeAttribute("aria-busy");
}
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(ready));

// Tick all boxes of a list.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const box of document.querySelectorAll(`input[name="${event.target.dataset.all}"]`)) box.checked = event.target.checked;
});

// Shortcuts: g and a letter opens a page, / goes to the first field, j and k move through a list.
let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (going) {
    going = false;
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  if (event.key === "g") going = true;
  if (event.key === "/") {
    const field = document.querySelector("main input:not([type=hidden]), main textarea");
    if (field) { event.preventDefault(); field.focus(); }
  }
  if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("a.row")];
    const at = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    if (rows[at]) rows[at].focus();
  }
});

// A slider over a list of links: it names the link at its place. Releasing the pointer opens it. A
// key only moves it, because each press would load a page, and Enter opens the link.
for (const slider of document.querySelectorAll("[data-slider]")) {
  const links = [...document.getElementById(slider.dataset.slider).querySelectorAll("a")];
  const output = slider.closest("label").querySelector("output");
  slider.max = Math.max(0, links.length - 1);
  const current = links.findIndex((link) => link.hasAttribute("aria-current"));
  slider.value = current < 0 ? slider.max : current;
  slider.closest("label").hidden = links.length < 2;
  let byKey = false;
  const show = () => {
    output.textContent = links[slider.value] ? links[slider.value].textContent : "";
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  const open = () => links[slider.value] && links[slider.value].click();
  slider.addEventListener("input", show);
  slider.addEventListener("pointerdown", () => { byKey = false; });
  slider.addEventListener("keydown", (event) => {
    byKey = true;
    if (event.key === "Enter") open();
  });
  slider.addEventListener("change", () => byKey || open());
  show();
}

// The graph: a click opens an entity, or the event that a relation comes from.
function drawGraph(box) {
  const data = JSON.parse(box.dataset.graph);
  const range = document.getElementById("validity");
  const label = document.getElementById("valid");
  const times = data.links.flatMap((link) => [link.from, link.to]).filter((at) => at !== null);
  const [first, last] = [Math.min(...times), Math.max(...times, Date.now() / 1000)];
  let at = null;
  const holds = (link) => at === null || ((link.from === null || link.from <= at) && (link.to === null || link.to > at));
  const ink = style("--ink"), accent = style("--accent"), line = style("--dim");
  const graph = new ForceGraph(box)
    .width(box.clientWidth).height(box.clientHeight).graphData(data)
    .nodeRelSize(4).nodeColor(() => accent).linkColor(() => line)
    .linkVisibility(holds).linkDirectionalArrowLength(4).linkDirectionalArrowRelPos(1)
    .linkCanvasObjectMode(() => "after")
    .linkCanvasObject((link, canvas, scale) => {
      if (scale < 1.2 || !link.source.x) return;
      write(canvas, link.name, (link.source.x + link.target.x) / 2, (link.source.y + link.target.y) / 2, 9 / scale, line);
    })
    .nodeCanvasObjectMode(() => "after")
    .nodeCanvasObject((node, canvas, scale) => write(canvas, node.name, node.x, node.y + 8 / scale + 3, 11 / scale, ink))
    .nodeLabel(() => "").linkLabel(() => "")
    .onNodeClick((node) => { location.href = box.dataset.entity + node.id + location.search; })
    .onLinkClick((link) => { location.href = box.dataset.event + link.event; })
    .cooldownTime(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 4000);
  graph.onEngineStop(() => graph.zoomToFit(0, 40));
  range.addEventListener("input", () => {
    at = range.value === range.max ? null : first + ((last - first) * range.value) / range.max;
    label.textContent = at === null ? "any time" : new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
    graph.linkVisibility(holds);
  });
}

function write(canvas, text, x, y, size, color) {
  canvas.font = `${size}px system-ui, sans-serif`;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  canvas.fillStyle = color;
  canvas.fillText(text.slice(0, 40), x, y);
}

const box = document.getElementById("graph");
if (box && window.ForceGraph) drawGraph(box);

drawAll();
