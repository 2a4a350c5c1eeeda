"""What the page looks like, and what it does in the browser: its style sheet and its script."""

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: #1b1b1f;
  background: #fff; margin: 0 auto; max-width: 1180px; padding: 24px 28px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 22px; margin: 40px 0 0; border-top: 2px solid #d8d8de; padding-top: 20px; }
h3 { font-size: 17px; margin: 28px 0 6px; } h4 { font-size: 15px; margin: 14px 0 4px; }
p { margin: 6px 0; } ul { margin: 6px 0; padding-left: 20px; } li { margin: 3px 0; }
.quiet, small { color: #56565f; } small { font-size: 12px; }
.verdict { border-left: 8px solid #1a7f37; background: #eef8f0; padding: 12px 16px; margin: 14px 0; }
.verdict.not { border-color: #b3261e; background: #fdf0ef; } .verdict b { font-size: 19px; }
.broken { border-left: 4px solid #b3261e; padding: 2px 14px; margin: 12px 0; background: #fdf6f5; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 14px; }
.card { border: 1px solid #d8d8de; border-radius: 6px; padding: 8px 16px 12px; min-width: 0; }
.swatch { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 7px; }
.legend > span { display: block; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 6px 0 12px; font-size: 13.5px; }
th, td { text-align: left; vertical-align: top; padding: 4px 14px 4px 0; border-bottom: 1px solid #e6e6ea; }
thead th { border-bottom: 2px solid #c8c8d0; } tbody th { font-weight: 500; }
.numbers td, .numbers thead th + th { text-align: right; }
.numbers td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.checks td:not(:last-child) { white-space: nowrap; }
.checks td:last-child { color: #56565f; min-width: 260px; }
.verdict.open { border-color: #9a6700; background: #fdf8e8; } .open { color: #7a5200; }
.holds { color: #1a7f37; } .fails { color: #b3261e; } code { font-size: 13px; overflow-wrap: anywhere;
  background: #f3f3f6; padding: 1px 5px; border-radius: 4px; } summary { cursor: pointer; color: #0b57a4; }
button { font: inherit; font-size: 13.5px; color: #0b57a4; background: #eef4fb; border: 1px solid #b8cfe8;
  border-radius: 5px; padding: 2px 10px; cursor: pointer; margin: 2px 0 4px; }
.replay { height: 560px; border: 1px solid #d8d8de; border-radius: 6px; overflow: hidden; }
.replay iframe { width: 100%; height: 100%; border: 0; display: block; } .curves { min-height: 200px; }
@media print { body { max-width: none; padding: 0; } .replay, button { display: none; }
  .card, .curves, table { break-inside: avoid; } }
"""

SCRIPT = """
"use strict";
const read = id => { const held = document.getElementById(id); return held && JSON.parse(held.textContent); };
const section = element => element.closest("section");

function draw(holder) {
  if (holder.dataset.drawn) return;
  holder.dataset.drawn = "1";
  const figure = read(holder.id + "-data");
  Plotly.newPlot(holder, figure.data, figure.layout, { responsive: true, displaylogo: false });
  holder.on("plotly_click", event => seek(section(holder), event.points[0].x));
  holder.on("plotly_relayout", change => follow(holder, change));
}

let following = false;  // a zoom of one figure becomes that of its neighbours, and goes no further
function follow(holder, change) {
  if (following) return;
  const axis = Object.keys(change).map(key => key.match(/^xaxis\\d*/)).find(found => found);
  if (!axis) return;
  following = true;
  const span = holder.layout.xaxis.autorange ? { "xaxis.autorange": true }
    : { "xaxis.range": holder.layout.xaxis.range.slice() };
  const others = [...section(holder).querySelectorAll(".curves[data-drawn]")].filter(one => one !== holder);
  Promise.all(others.map(one => Plotly.relayout(one, span))).finally(() => { following = false; });
}

function play(holder) {
  if (holder.firstChild) return holder.firstChild;
  const player = read("player"), frame = document.createElement("iframe");
  frame.title = "replay";
  frame.srcdoc = player.head + read(holder.id + "-data") + player.tail;
  return holder.appendChild(frame);
}

// The player has no call for a moment: its field for the time is filled in, as by hand, until it is there.
function seek(where, t) {
  const holder = where.querySelector(".replay");
  if (!holder) return;
  holder.wanted = (t - Number(holder.dataset.start)).toFixed(9);
  if (!holder.seeking) reach(holder, 100);
}

function reach(holder, tries) {
  const inside = play(holder).contentDocument;
  const field = inside && inside.querySelector("input[inputmode=decimal]");
  const now = field && Number(inside.querySelector("[role=slider]").getAttribute("aria-valuenow"));
  holder.seeking = tries > 0 && !(field && Math.abs(now - holder.wanted) < 1e-6);
  if (!holder.seeking) return;
  if (field) {
    const view = inside.defaultView;
    Object.getOwnPropertyDescriptor(view.HTMLInputElement.prototype, "value").set.call(field, holder.wanted);
    field.dispatchEvent(new view.Event("input", { bubbles: true }));
  }
  setTimeout(() => reach(holder, tries - 1), 100);
}

addEventListener("click", event => {
  const button = event.target.closest("[data-seek]");
  if (!button) return;
  section(button).querySelector(".replay").scrollIntoView({ block: "center" });
  seek(section(button), Number(button.dataset.seek));
});
const near = new IntersectionObserver(seen => seen.filter(one => one.isIntersecting).forEach(one => {
  near.unobserve(one.target);
  one.target.matches(".replay") ? play(one.target) : draw(one.target);
}), { rootMargin: "300px" });
document.querySelectorAll(".replay, .curves").forEach(holder => near.observe(holder));
addEventListener("beforeprint", () => document.querySelectorAll(".curves").forEach(draw));
"""
