"use strict";
// Data of the pipeline chart as drawing needs it, and text that fits into it.

const accel = (() => {
  /** Gzipped JSON in base64, unpacked. */
  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  const sums = differences => { let sum = 0; return differences.map(one => (sum += one)); };

  const grouped = n => Math.round(n).toLocaleString("en-US");

  /** The first index in sorted `values` whose value is greater than `limit`. */
  function above(values, limit) {
    let low = 0, high = values.length;
    while (low < high) { const middle = (low + high) >> 1; if (values[middle] > limit) high = middle; else low = middle + 1; }
    return low;
  }

  /** A function that returns an instruction's number as text: `17`, or `2:17` for program 2 of several. */
  function numbering({ begins }) {
    return index => { const n = above(begins, index); return begins.length > 1 ? `${n}:${index - begins[n - 1]}` : String(index); };
  }

  /** The columns of a page, with differences summed up, and maps from instructions to their slices and tokens. */
  function prepared(data) {
    const flows = { counter: data.flows.counter, source: sums(data.flows.source), target: sums(data.flows.target) };
    const where = new Map();                        // instruction -> [track, slice]
    const tracks = data.tracks.map((track, number) => {
      const s = track.slices, p = track.spans;
      const slices = { index: sums(s.index), start: sums(s.start), row: s.row };
      slices.stop = slices.start.map((start, n) => start + s.length[n]);
      slices.begin = slices.start.map((start, n) => start + s.begin[n]);
      slices.end = slices.start.map((start, n) => start + s.end[n]);
      let reach = 0;
      slices.reach = slices.stop.map(stop => (reach = Math.max(reach, stop)));
      slices.index.forEach((index, n) => where.set(index, [number, n]));
      const stops = sums(p.length);
      const spans = { stop: stops, start: stops.map((stop, n) => stop - p.length[n]), state: p.state,
        reason: p.reason, instruction: sums(p.instruction), awaited: sums(p.awaited) };
      return { ...track, slices, spans };
    });
    const tokens = new Map();                       // instruction -> its flows
    flows.source.forEach((source, n) => {
      for (const one of [source, flows.target[n]]) tokens.set(one, [...(tokens.get(one) || []), n]);
    });
    return { ...data, flows, tracks, where, tokens };
  }

  /** The share of each state in `count` equal parts of the cycles [from, to). */
  function shares(spans, from, to, count) {
    const found = [0, 1, 2].map(() => new Float64Array(count));
    const width = (to - from) / count;
    for (let n = above(spans.stop, from); n < spans.stop.length && spans.start[n] < to; n++) {
      const state = spans.state[n];
      if (state > 2) continue;
      const start = Math.max(from, spans.start[n]), stop = Math.min(to, spans.stop[n]);
      let part = Math.min(count - 1, Math.floor((start - from) / width));
      for (let at = start; at < stop && part < count; part++) {
        const end = Math.min(stop, from + (part + 1) * width);
        if (end > at) { found[state][part] += (end - at) / width; at = end; }
      }
    }
    return found;
  }

  /** The cycles of the critical path for each unit in `count` equal parts of [from, to); `begin` to `end` are segments. */
  function pathCycles(path, units, from, to, count, begin, end) {
    const found = units.map(() => new Float64Array(count)), part = (to - from) / count;
    for (let n = begin; n < end; n++) {
      const unit = units.indexOf(path.unit[n]);
      for (let at = Math.max(from, path.start[n]), stop = Math.min(to, path.start[n] + path.cycles[n]); at < stop;) {
        const bin = Math.min(count - 1, Math.floor((at - from) / part)), next = Math.min(stop, bin === count - 1 ? to : from + (bin + 1) * part);
        if (next <= at) break;
        found[unit][bin] += next - at;
        at = next;
      }
    }
    return found;
  }

  /** As much of a name as fits: all of it, the tile of a transfer, or its first letters. */
  function fitting(name, letters, kind) {
    const space = name.indexOf(" "), tile = space < 0 ? name : name.slice(space + 1);
    if (letters < 4) return "";
    if (name.length <= letters) return name;
    return kind === "transfer" && tile.length <= letters ? tile : name.slice(0, letters - 1) + "…";
  }

  /** A text as lines of at most `letters` letters, broken between words. */
  function wrapped(text, letters) {
    const lines = [];
    for (const word of text.split(" ").filter(Boolean)) {
      const last = lines.length ? `${lines[lines.length - 1]} ${word}` : "";
      if (last && last.length <= letters) lines[lines.length - 1] = last; else lines.push(word);
    }
    return lines;
  }

  return { unpack, grouped, chartData: { above, numbering, prepared, shares, pathCycles, fitting, wrapped } };
})();
