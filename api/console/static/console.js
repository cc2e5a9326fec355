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
  const colors = [style("--accent"), style("--bad"), style("--info"), style("--warn")];
  const axis = { stroke: style("--dim"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } };
  const labels = figure.dataset.labels.split(",");
  const options = {
    width: figure.clientWidth,
    height: 180,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [axis, { ...axis, size: 56 }],
    series: [{}, ...labels.map((label, at) => ({ label, stroke: colors[at], width: 2, points: { show: series[0].length < 40, size: 4 } }))],
  };
  figure.plot = new uPlot(options, series, figure);
}

function drawAll() {
  if (window.uPlot) document.querySelectorAll("figure[data-chart]").forEach(draw);
}

// On a phone the menu starts closed.
const menu = document.querySelector(".menu");
const phone = matchMedia("(max-width: 52rem)");
const fold = () => menu && (menu.open = !phone.matches);
phone.addEventListener("change", fold);
fold();

addEventListener("resize", () => document.querySelectorAll("figure[data-chart]").forEach((figure) =>
  figure.plot && figure.plot.setSize({ width: figure.clientWidth, height: 180 })));
document.addEventListener("htmx:after:swap", drawAll);
document.addEventListener("htmx:after:swap", () => {
  const event = document.querySelector("#event[hx-sse\\:connect]");
  if (event) event.dataset.updated = "1";
});
// When an event ends, its buttons change: load the page again.
document.addEventListener("end", () => location.reload());

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

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

drawAll();
