// Reads a WebAssembly module as far as tests ask: sections, imports, exports, data segments, and every instruction of its code.
// Throws at whatever it does not know, so that nothing is skipped unseen.

class Reader {
  constructor(bytes) { Object.assign(this, { bytes, at: 0 }); }
  get done() { return this.at === this.bytes.length; }
  byte() {
    if (this.done) throw new Error(`cut off at byte ${this.at}`);
    return this.bytes[this.at++];
  }
  unsigned() {
    let value = 0n, shift = 0n, byte;
    do {
      byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
    } while (byte & 0x80);
    return Number(value);
  }
  skipLeb() { while (this.byte() & 0x80); }
  skip(n) {
    this.at += n;
    if (this.at > this.bytes.length) throw new Error(`cut off at byte ${this.at}`);
  }
  part(n) {
    const part = this.bytes.subarray(this.at, this.at + n);
    this.skip(n);
    return new Reader(part);
  }
  name() { return new TextDecoder().decode(this.part(this.unsigned()).bytes); }
  list(read) { return Array.from({ length: this.unsigned() }, () => read()); }
  limits() {
    const flags = this.byte(), min = this.unsigned();
    return { shared: (flags & 2) !== 0, min, max: flags & 1 ? this.unsigned() : null };
  }
  memarg() {
    if (this.unsigned() >= 64) throw new Error("more than one memory");
    this.skipLeb();
  }
}

const within = (x, first, last) => x >= first && x <= last;
// Ranges of instructions without immediates: control, drop and select, arithmetic; and with one number.
const NO_IMMEDIATE = [[0x00, 0x01], [0x05, 0x05], [0x0b, 0x0b], [0x0f, 0x0f], [0x1a, 0x1b], [0x45, 0xc4]];
const ONE_NUMBER = [[0x02, 0x04], [0x0c, 0x0d], [0x10, 0x10], [0x20, 0x26], [0x3f, 0x42]];

// Skips the immediates of one instruction and returns its name: "40", "fc 10", "fd 275".
function instruction(r) {
  const op = r.byte(), prefixed = op >= 0xfc ? r.unsigned() : null;
  if (op === 0xfc) {
    if (within(prefixed, 0, 7)); // saturating conversions
    else if ([8, 10, 12, 14].includes(prefixed)) r.skipLeb(), r.skipLeb();
    else if ([9, 11, 13, 15, 16, 17].includes(prefixed)) r.skipLeb();
    else throw new Error(`instruction fc ${prefixed}`);
  } else if (op === 0xfd) {
    if (within(prefixed, 0, 11) || within(prefixed, 92, 93)) r.memarg();
    else if (within(prefixed, 12, 13)) r.skip(16);
    else if (within(prefixed, 21, 34)) r.skip(1);
    else if (within(prefixed, 84, 91)) r.memarg(), r.skip(1);
    else if (prefixed > 275) throw new Error(`instruction fd ${prefixed}`);
  } else if (op === 0xfe) {
    if (prefixed === 3) r.skip(1);
    else if (prefixed > 0x4e) throw new Error(`instruction fe ${prefixed}`);
    else r.memarg();
  } else if (within(op, 0x28, 0x3e)) r.memarg();
  else if (ONE_NUMBER.some(([first, last]) => within(op, first, last))) r.skipLeb();
  else if (op === 0x0e) r.list(() => r.skipLeb()), r.skipLeb();
  else if (op === 0x11) r.skipLeb(), r.skipLeb();
  else if (op === 0x1c) r.list(() => r.byte());
  else if (op === 0x43) r.skip(4);
  else if (op === 0x44) r.skip(8);
  else if (!NO_IMMEDIATE.some(([first, last]) => within(op, first, last)))
    throw new Error(`instruction ${op.toString(16)}`);
  return prefixed === null ? op.toString(16) : `${op.toString(16)} ${prefixed}`;
}

/** {sections, custom, imports, exports, start, segments, functions, opcodes: Map of name to count} */
export function inspect(bytes) {
  const r = new Reader(bytes);
  const out = { sections: [], custom: [], imports: [], exports: [], segments: [], functions: 0, opcodes: new Map() };
  if (r.part(8).bytes.join() !== "0,97,115,109,1,0,0,0") throw new Error("not a module");
  while (!r.done) {
    const id = r.byte(), s = r.part(r.unsigned());
    out.sections.push(id);
    if (id === 0) out.custom.push(s.name());
    else if (id === 2)
      out.imports = s.list(() => {
        const name = `${s.name()}.${s.name()}`, kind = s.byte();
        if (kind !== 2) return { name, kind, index: s.unsigned() };
        return { name, kind, ...s.limits() };
      });
    else if (id === 7) out.exports = s.list(() => ({ name: s.name(), kind: s.byte(), index: s.unsigned() }));
    else if (id === 8) out.start = s.unsigned();
    else if (id === 11)
      out.segments = s.list(() => {
        const passive = s.unsigned() === 1;
        return passive ? { passive, bytes: s.part(s.unsigned()).bytes.length } : s.skip(s.bytes.length - s.at);
      });
    else if (id === 10)
      s.list(() => {
        const body = s.part(s.unsigned());
        body.list(() => (body.skipLeb(), body.byte()));
        out.functions += 1;
        while (!body.done) {
          const name = instruction(body);
          out.opcodes.set(name, (out.opcodes.get(name) ?? 0) + 1);
        }
      });
  }
  return out;
}
