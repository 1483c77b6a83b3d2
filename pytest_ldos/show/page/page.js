"use strict";
/* Sorts tables by a column, and draws any part of a timeline. What is here works without it: tables, and a fixed picture. */
const valueOf = (cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : NaN);
const compare = (one, other, sign) => {
  const [a, b] = [valueOf(one), valueOf(other)];
  if (Number.isNaN(a) !== Number.isNaN(b)) { return Number.isNaN(a) ? 1 : -1; }
  return sign * (Number.isNaN(a) ? one.textContent.localeCompare(other.textContent) : a - b);
};
const sortBy = (table, place, heading) => {
  const down = heading.ariaSort ? heading.ariaSort !== "descending" : heading.classList.contains("number");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) => compare(one.cells[place], other.cells[place], down ? -1 : 1));
  for (const each of heading.parentNode.cells) { each.removeAttribute("aria-sort"); }
  heading.ariaSort = down ? "descending" : "ascending";
  body.append(...rows);
};
for (const table of document.querySelectorAll("main table")) {
  if (table.tHead && table.tBodies[0].rows.length > 2) {
    [...table.tHead.rows[0].cells].forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, place, heading));
      heading.append(button);
    });
  }
}

const inflate = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
const unpack = async (data) => {
  const bytes = await inflate(data.packed);
  const tables = {};
  let offset = 0;
  for (const [kind, count, names] of data.columns) {
    tables[kind] = { count };
    for (const name of names) {
      const column = new Int32Array(count);
      for (let row = 0; row < count; row += 1) {
        column[row] = bytes[offset + row] | (bytes[offset + count + row] << 8) | (bytes[offset + 2 * count + row] << 16) | (bytes[offset + 3 * count + row] << 24);
      }
      if (["begin", "sent", "tail"].includes(name)) {
        for (let row = 1; row < count; row += 1) { column[row] += column[row - 1]; }
      }
      tables[kind][name] = column;
      offset += 4 * count;
    }
  }
  return tables;
};
const lowest = (column, value, low, high) => {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) { low = middle + 1; } else { high = middle; }
  }
  return low;
};
const duration = (us) => {
  const size = Math.abs(us);
  if (size >= 1e6) { return `${(us / 1e6).toPrecision(4)} s`; }
  return size >= 1e3 ? `${(us / 1e3).toPrecision(4)} ms` : `${us.toPrecision(3)} µs`;
};

const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

class Zoom {
  constructor(place, data, tables) {
    Object.assign(this, { place, data, tables, from: 0, until: data.length, names: 260, row: 26, top: data.goals.length ? 30 : 8 });
    this.height = this.top + this.row * data.tracks.length + 24;
    this.starts = {};
    for (const kind of ["runs", "sent", "waiting", "processing", "executing", "cpu"]) {
      this.starts[kind] = data.tracks.map((_, track) => lowest(tables[kind].track, track, 0, tables[kind].count));
      this.starts[kind].push(tables[kind].count);
    }
    this.build();
    this.paint();
  }

  build() {
    const make = (kind, parent, words) => {
      const made = document.createElement(kind);
      if (words) { made.textContent = words; }
      parent.append(made);
      return made;
    };
    const controls = make("div", this.place);
    controls.className = "controls";
    controls.setAttribute("role", "group");
    controls.ariaLabel = "Part of the timeline";
    const steps = [["zoom in", () => this.zoom(0.5)], ["zoom out", () => this.zoom(2)], ["earlier", () => this.move(-0.4)], ["later", () => this.move(0.4)], ["all", () => this.show(0, this.data.length)]];
    for (const [words, act] of steps) { make("button", controls, words).addEventListener("click", act); }
    if (this.data.goals.length) {
      const label = make("label", controls, "goal ");
      const choice = make("select", label);
      make("option", choice, "–").value = "";
      this.data.goals.forEach((goal, number) => { make("option", choice, goal[0]).value = number; });
      choice.addEventListener("change", () => {
        if (choice.value) {
          this.goal(Number(choice.value));
          this.box.focus({ preventScroll: true });
        }
      });
    }
    this.box = make("div", this.place);
    this.box.className = "canvas";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "group");
    this.box.ariaLabel = "Timeline: plus and minus zoom, the arrow keys move, 0 shows all, n and p follow the next and previous publication, Escape ends it";
    this.canvas = make("canvas", this.box);
    this.canvas.setAttribute("role", "img");
    this.status = make("p", this.place);
    this.status.setAttribute("role", "status");
    this.place.querySelector(".fixed").hidden = true;
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) {
        event.preventDefault();
        if (event.shiftKey) { this.move(Math.sign(event.deltaX + event.deltaY) * 0.1); } else { this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(event)); }
      }
    }, { passive: false });
    let held = null;
    let dragged = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      held = [event.clientX, this.from, this.until];
      dragged = false;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("click", (event) => { if (!dragged) { this.pick(event); } });
    this.canvas.addEventListener("pointerup", () => { held = null; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (held) {
        dragged ||= Math.abs(event.clientX - held[0]) > 3;
        const shift = ((held[0] - event.clientX) / this.width()) * (held[2] - held[1]);
        this.show(held[1] + shift, held[2] + shift);
      } else { this.tell(event); }
    });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.at(event)));
    new ResizeObserver(() => this.draw()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("hashchange", () => this.follow());
    document.addEventListener("click", (event) => { if (event.target.closest && event.target.closest('a[href^="#goal-"]')) { setTimeout(() => this.follow()); } });
    this.follow();
  }

  follow() {
    const found = /^#goal-(\d+)$/.exec(location.hash);
    if (found && this.data.goals[found[1] - 1]) {
      this.goal(found[1] - 1);
      this.box.scrollIntoView({ block: "center" });
      this.box.focus({ preventScroll: true });
    }
  }

  goal(number) {
    const [, begin, length] = this.data.goals[number];
    this.show(begin - 0.05 * length, begin + 1.05 * length);
    this.trace(this.ofGoal(number));
  }

  /* Publications of action servers in the time of a goal: status, feedback. */
  ofGoal(number) {
    const { sent, topic, count } = this.tables.messages;
    const [, begin, length] = this.data.goals[number];
    const found = [];
    for (let at = lowest(sent, begin / this.data.unit, 0, count); at < count && sent[at] * this.data.unit <= begin + length; at += 1) {
      if ((this.data.words[topic[at]] || "").includes("/_action/")) { found.push(at); }
    }
    return found;
  }

  /* Follows the publication under the pointer, or the goal; an empty place changes nothing. */
  pick(event) {
    const { track, sent, count } = this.tables.messages;
    const row = Math.floor((event.offsetY - this.top) / this.row);
    if (row < 0) {
      const number = this.data.goals.findIndex(([, begin, length]) => begin <= this.at(event) && this.at(event) <= begin + length);
      if (number >= 0) { this.trace(this.ofGoal(number)); }
      return;
    }
    const [at, slack] = [this.at(event), (8 * (this.until - this.from)) / this.width()];
    let nearest = -1;
    for (let each = lowest(sent, (at - slack) / this.data.unit, 0, count); each < count && sent[each] * this.data.unit <= at + slack; each += 1) {
      const isNearer = nearest < 0 || Math.abs(sent[each] * this.data.unit - at) < Math.abs(sent[nearest] * this.data.unit - at);
      if (track[each] === row && isNearer) { nearest = each; }
    }
    if (nearest >= 0) { this.trace([nearest]); }
  }

  step(by) {
    const { sent, count } = this.tables.messages;
    const last = this.lit ? this.lit.seeds[0] : lowest(sent, this.from / this.data.unit, 0, count) - (by > 0);
    const next = Math.min(Math.max(last + by, 0), count - 1);
    if (count) {
      const at = sent[next] * this.data.unit;
      if (at < this.from || at > this.until) { this.move((at - (this.from + this.until) / 2) / (this.until - this.from)); }
      this.trace([next]);
    }
  }

  /* The publication made from a message; -1 for none. */
  made(row) {
    const { tail, made } = this.tables.arrows;
    return made[row] ? tail[row] + made[row] : -1;
  }

  /* Lights what these publications were made from, and what was made from them. */
  trace(seeds) {
    const { messages, arrows } = this.tables;
    if (!this.sources) {
      this.sources = new Map();
      for (let row = 0; row < arrows.count; row += 1) {
        const made = this.made(row);
        if (!this.sources.has(made)) { this.sources.set(made, []); }
        this.sources.get(made).push(row);
      }
    }
    const led = (at) => {
      const rows = [];
      for (let row = lowest(arrows.tail, at, 0, arrows.count); row < arrows.count && arrows.tail[row] === at; row += 1) { rows.push([row, this.made(row)]); }
      return rows;
    };
    const lit = { seeds, sent: new Set(seeds), arrows: new Set() };
    for (const steps of [led, (at) => (this.sources.get(at) || []).map((row) => [row, arrows.tail[row]])]) {
      const [open, seen] = [[...seeds], new Set(seeds)];
      while (open.length) {
        for (const [row, other] of steps(open.pop())) {
          lit.arrows.add(row);
          if (other >= 0 && !seen.has(other)) {
            seen.add(other);
            lit.sent.add(other);
            open.push(other);
          }
        }
      }
    }
    this.lit = seeds.length ? lit : null;
    const received = new Set([...lit.arrows].map((row) => `${arrows.tail[row]} ${arrows.head[row]} ${arrows.taken[row]}`));
    const from = seeds.length > 1 ? `${seeds.length} publications of action servers in the goal's time` : seeds.map((at) => `${this.data.words[messages.topic[at]]} at ${duration(messages.sent[at] * this.data.unit)}`);
    this.followed = `; following ${from}: ${counted(lit.sent.size, "publication")}, ${counted(received.size, "reception")}; Escape ends it`;
    const word = (number) => this.data.words[number];
    const names = new Set();
    const name = (node, role, topic) => { [word(node), word(topic), `${word(node)} ${role} ${word(topic)}`].forEach((each) => names.add(each)); };
    for (const at of lit.sent) { name(messages.node[at], "publishes", messages.topic[at]); }
    for (const row of lit.arrows) { name(arrows.node[row], "subscribes", messages.topic[arrows.tail[row]]); }
    document.documentElement.classList.toggle("following", seeds.length > 0);
    for (const each of document.querySelectorAll("svg.flow g > title")) { each.parentNode.classList.toggle("lit", names.has(each.textContent.split(": ")[0])); }
    for (const { cells, classList } of document.querySelectorAll("main tbody tr")) {
      classList.toggle("lit", cells.length > 2 && names.has(`${cells[1].textContent.replace(/ \([^()]*\)$/, "")} ${cells[2].textContent} ${cells[0].textContent}`));
    }
    this.status.textContent = this.lit ? this.followed.slice(2) : "";
    this.draw();
  }

  drawLit(pen, width) {
    const { unit } = this.data;
    const { messages, arrows } = this.tables;
    pen.fillStyle = this.colours.page;
    pen.globalAlpha = 0.7;
    pen.fillRect(this.names, this.top, width - this.names, this.height - 24 - this.top);
    pen.globalAlpha = 1;
    for (const row of this.lit.arrows) {
      const made = this.made(row);
      const taken = (messages.sent[arrows.tail[row]] + arrows.taken[row]) * unit;
      if (made >= 0 && messages.track[made] === arrows.head[row]) {
        const [from, until] = [Math.max(this.x(taken), this.names), Math.min(this.x(messages.sent[made] * unit), width)];
        pen.fillStyle = this.colours.s0;
        if (until > from) { pen.fillRect(from, this.top + this.row * arrows.head[row] + 4, Math.max(until - from, 1), 12); }
      }
      this.arrow(pen, row);
    }
    pen.fillStyle = this.colours.text;
    for (const at of this.lit.sent) {
      const x = this.x(messages.sent[at] * unit);
      if (x >= this.names && x <= width) { pen.fillRect(x - 1, this.top + this.row * messages.track[at], this.lit.seeds.includes(at) ? 5 : 3, 6); }
    }
  }

  width() { return Math.max(this.box.clientWidth - this.names, 100); }

  at(event) { return this.from + ((event.offsetX - this.names) / this.width()) * (this.until - this.from); }

  show(from, until) {
    const length = Math.min(Math.max(until - from, 20), this.data.length);
    this.from = Math.min(Math.max(from, 0), this.data.length - length);
    this.until = this.from + length;
    this.draw();
  }

  zoom(factor, around = (this.from + this.until) / 2) { this.show(around - (around - this.from) * factor, around + (this.until - around) * factor); }

  move(share) {
    const shift = share * (this.until - this.from);
    this.show(this.from + shift, this.until + shift);
  }

  key(event) {
    const acts = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.show(0, this.data.length), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), n: () => this.step(1), p: () => this.step(-1), Escape: () => this.trace([]) };
    if (event.key in acts && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      acts[event.key]();
    }
  }

  x(us) { return this.names + ((us - this.from) / (this.until - this.from)) * this.width(); }

  draw() {
    if (this.waiting) { return; }
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(this.box.clientWidth, 400);
    Object.assign(this.canvas, { width: width * ratio, height: this.height * ratio });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${this.height}px` });
    const pen = this.canvas.getContext("2d");
    const style = getComputedStyle(this.box);
    this.colours = Object.fromEntries(["text", "muted", "edge", "field", "s0", "s1", "s2", "s3", "s4", "s5", "bad", "page", "wait"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    this.gaps(pen, width);
    this.axis(pen, width);
    this.data.tracks.forEach((_, track) => this.track(pen, track, width));
    this.data.goals.forEach((goal) => this.goalSlice(pen, goal, width));
    const told = `${duration(this.until - this.from)} from ${duration(this.from)}`;
    this.canvas.ariaLabel = `Timeline, ${told}`;
    if (this.lit) { this.drawLit(pen, width); }
    this.status.textContent = told + (this.lit ? this.followed : this.arrows(pen) ? "" : "; zoom in to see arrows");
  }

  gaps(pen, width) {
    pen.fillStyle = this.colours.bad;
    pen.globalAlpha = 0.18;
    for (const [begin, length] of this.data.gaps) {
      const x = Math.max(this.x(begin), this.names);
      const end = Math.min(this.x(begin + length), width);
      if (end >= this.names && x <= width) { pen.fillRect(x, this.top, Math.max(end - x, 1), this.height - 24 - this.top); }
    }
    pen.globalAlpha = 1;
  }

  axis(pen, width) {
    const span = this.until - this.from;
    let step = 10 ** Math.floor(Math.log10(span / 4));
    while (span / step > 8) { step *= step.toString().startsWith("2") ? 2.5 : 2; }
    pen.fillStyle = this.colours.muted;
    pen.strokeStyle = this.colours.edge;
    for (let at = Math.ceil(this.from / step) * step; at <= this.until; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, this.top);
      pen.lineTo(x, this.height - 18);
      pen.stroke();
      pen.textAlign = x > width - 40 ? "right" : "center";
      pen.fillText(duration(at), x, this.height - 5);
    }
    pen.textAlign = "left";
  }

  track(pen, track, width) {
    const y = this.top + this.row * track;
    this.spans(pen, "waiting", track, y + 17, 3, () => this.colours.wait, false, 0);
    this.spans(pen, "processing", track, y + 17, 3, () => this.colours.s1, false, 0);
    this.spans(pen, "executing", track, y + 17, 3, () => this.colours.s2, false, 0);
    this.spans(pen, "runs", track, y + 4, 12, (word) => (word < 0 ? this.colours.muted : this.colours[`s${word % 6}`]), true);
    this.spans(pen, "sent", track, y, 4, () => this.colours.text);
    this.spans(pen, "cpu", track, y + 21, 4, () => this.colours.bad);
    pen.fillStyle = this.colours.page;
    pen.fillRect(0, y, this.names - 4, this.row);
    pen.fillStyle = this.colours.text;
    const name = this.data.tracks[track];
    pen.fillText(name.length > 42 ? `…${name.slice(-41)}` : name, 0, y + 14);
    pen.fillStyle = this.colours.edge;
    pen.fillRect(0, y + this.row - 1, width, 1);
  }

  spans(pen, kind, track, y, height, colour, named = false, least = 1) {
    const { unit } = this.data;
    const table = this.tables[kind];
    const end = this.starts[kind][track + 1];
    let drawn = -1;
    for (let row = Math.max(lowest(table.begin, this.from / unit, this.starts[kind][track], end) - 4, this.starts[kind][track]); row < end; row += 1) {
      const begin = table.begin[row] * unit;
      if (begin > this.until) { break; }
      const x = Math.max(this.x(begin), this.names);
      const after = this.x(begin + table.length[row] * unit);
      if (after < this.names || after < drawn) { continue; }
      const width = Math.max(after - x, least);
      pen.fillStyle = colour(table.word[row]);
      pen.fillRect(x, y, width, height);
      drawn = x + width;
      if (named && width > 40 && table.word[row] >= 0) {
        pen.save();
        pen.beginPath();
        pen.rect(x, y, width, height);
        pen.clip();
        pen.fillStyle = this.colours.page;
        pen.fillText(this.data.words[table.word[row]], x + 3, y + 10);
        pen.restore();
      }
    }
  }

  goalSlice(pen, [name, begin, length, phases], width) {
    const x = Math.max(this.x(begin), this.names);
    const end = Math.min(this.x(begin + length), width);
    if (end < this.names || x > width) { return; }
    pen.fillStyle = this.colours.field;
    pen.fillRect(x, 2, Math.max(end - x, 2), 20);
    pen.save();
    pen.beginPath();
    pen.rect(x, 0, end - x, 24);
    pen.clip();
    pen.fillStyle = this.colours.text;
    pen.fillText(name, x + 4, 16);
    for (const [phase, at] of phases) {
      const place = this.x(at);
      pen.fillRect(place, 2, 1, 20);
      if (end - x > 500) { pen.fillText(phase, place + 4, 16); }
    }
    pen.restore();
  }

  arrows(pen) {
    const { unit } = this.data;
    const { messages, arrows } = this.tables;
    const [first, last] = [this.from, this.until].map((us) => lowest(arrows.tail, lowest(messages.sent, us / unit, 0, messages.count), 0, arrows.count));
    if (last - first > 600) { return false; }
    pen.globalAlpha = 0.55;
    for (let row = Math.max(first - 50, 0); row < last; row += 1) { this.arrow(pen, row); }
    pen.globalAlpha = 1;
    return true;
  }

  arrow(pen, row) {
    const { messages, arrows } = this.tables;
    const tail = arrows.tail[row];
    const [begin, end] = [messages.sent[tail], messages.sent[tail] + arrows.taken[row]].map((each) => each * this.data.unit);
    const [x, y] = [this.x(begin), this.top + this.row * messages.track[tail] + 2];
    const [toX, toY] = [this.x(end), this.top + this.row * arrows.head[row] + 4];
    if (end < this.from || begin > this.until || x < this.names) { return; }
    pen.strokeStyle = this.colours.text;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
    pen.lineTo(toX - 3, toY + (toY > y ? -4 : 4));
    pen.stroke();
  }

  tell(event) {
    const track = Math.floor((event.offsetY - this.top) / this.row);
    if (track < 0 || track >= this.data.tracks.length) { return; }
    const { unit, words, tracks } = this.data;
    const table = this.tables.runs;
    const at = this.at(event) / unit;
    const slack = ((this.until - this.from) / this.width()) / unit;
    const row = lowest(table.begin, at + slack, this.starts.runs[track], this.starts.runs[track + 1]) - 1;
    if (row >= this.starts.runs[track] && table.begin[row] + table.length[row] + slack >= at) {
      const name = table.word[row] < 0 ? "several callbacks" : words[table.word[row]];
      this.canvas.title = `${tracks[track]}: ${name}, ${duration(table.length[row] * unit)} from ${duration(table.begin[row] * unit)}`;
    } else { this.canvas.title = tracks[track]; }
  }
}

for (const place of document.querySelectorAll(".timeline")) {
  const data = JSON.parse(place.querySelector("script").textContent);
  requestAnimationFrame(() => setTimeout(async () => new Zoom(place, data, await unpack(data))));
}
