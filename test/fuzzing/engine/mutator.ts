import type { SeededRandom } from './random.js';
import { copyOf, mutateParts } from './structure.js';
import { DER } from './structures.js';
import type { FuzzTarget } from './target.js';

/** Bytes that often matter to parsers: limits of types and of lengths, and sign bits. */
const INTERESTING = [0, 1, 0x10, 0x1f, 0x20, 0x30, 0x40, 0x5f, 0x7f, 0x80, 0x81, 0x82, 0xfe, 0xff];

/**
 * Words that matter to every parser in JavaScript. They are names that every object has, numbers at
 * the limits of types, and text that breaks lines, encodings and comparisons.
 */
const COMMON = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'length',
  '-1',
  '0',
  '1e999',
  '9007199254740993',
  '18446744073709551616',
  'NaN',
  'null',
  'undefined',
  '\0',
  '\r\n',
  '\n',
  '\t',
  '"',
  '\\',
  "'",
  '%00',
  '\u{FEFF}',
  '\u{2028}',
  '\u{130}',
  '\u{212A}',
  '\u{1F511}',
].map((word) => Buffer.from(word));

/** The bytes of which {@link replaceText} takes words to consist. */
const TEXT: ReadonlySet<number> = new Set(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/@-'),
);

type Change = (bytes: Buffer, random: SeededRandom, words: readonly Buffer[]) => Buffer;

const CHANGES: readonly Change[] = [
  flipBit,
  setByte,
  changeNumber,
  changeNumber,
  removeRange,
  copyRange,
  repeatRange,
  insertWord,
  insertWord,
  overwriteWord,
  replaceText,
  truncate,
];

/** Makes mutants (changed copies) of the inputs of one target. */
export class Mutator {
  readonly #words: readonly Buffer[];

  constructor(
    private readonly target: FuzzTarget,
    private readonly random: SeededRandom,
  ) {
    this.#words = [...COMMON, ...target.dictionary.map((word) => Buffer.from(word))];
  }

  /** Returns a copy of `input` with one to eight changes. Some changes insert parts of `other`. */
  mutant(input: Buffer, other: Buffer): Buffer {
    const { random, target } = this;
    let bytes = input;
    for (let rounds = 1 + random.below(random.pick([1, 2, 4, 8])); rounds > 0; rounds -= 1) {
      // Limits the length after each change, because several changes that copy parts would multiply
      // it.
      bytes = this.#changed(bytes, other).subarray(0, target.longest);
    }
    return bytes;
  }

  #changed(bytes: Buffer, other: Buffer): Buffer {
    const { random } = this;
    const { structure } = this.target;
    if (structure && !random.oneIn(5)) {
      const parts = structure.read(bytes).map(copyOf);
      const change = (content: Buffer) => this.#changedContent(content);
      mutateParts(parts, structure.read(other), random, change);
      return structure.write(parts);
    }
    return random.oneIn(8) ? splice(bytes, other, random) : this.#changedBytes(bytes);
  }

  /**
   * Changes the content of a part. For bytes that look like DER, as in a certificate, it mostly
   * changes a value inside of them and computes all lengths again.
   */
  #changedContent(bytes: Buffer): Buffer {
    const mayBeDer = bytes.length > 16 && bytes[0] === 0x30;
    if (!mayBeDer || this.random.oneIn(4)) return this.#changedBytes(bytes);
    const parts = DER.read(bytes).map(copyOf);
    mutateParts(parts, parts.map(copyOf), this.random, (part) => this.#changedBytes(part));
    return DER.write(parts);
  }

  #changedBytes(bytes: Buffer): Buffer {
    return this.random.pick(CHANGES)(bytes, this.random, this.#words);
  }
}

function flipBit(bytes: Buffer, random: SeededRandom): Buffer {
  const changed = Buffer.from(bytes);
  const at = random.below(bytes.length);
  changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
  return changed;
}

function setByte(bytes: Buffer, random: SeededRandom): Buffer {
  const changed = Buffer.from(bytes);
  const value = random.oneIn(2) ? random.pick(INTERESTING) : random.below(256);
  changed[random.below(bytes.length)] = value;
  return changed;
}

/** Adds a small amount to a big-endian number of 1, 2 or 4 bytes, as lengths are. */
function changeNumber(bytes: Buffer, random: SeededRandom): Buffer {
  const width = random.pick([1, 2, 4]);
  if (bytes.length < width) return bytes;
  const changed = Buffer.from(bytes);
  const at = random.below(bytes.length - width + 1);
  const amount = random.oneIn(4) ? random.below(2 ** 31) : random.below(35) - 17;
  const value = (changed.readUIntBE(at, width) + amount) % 2 ** (8 * width);
  changed.writeUIntBE(value < 0 ? value + 2 ** (8 * width) : value, at, width);
  return changed;
}

function removeRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = range(bytes, random);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
}

function copyRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = range(bytes, random);
  return inserted(bytes, random.below(bytes.length + 1), bytes.subarray(start, end));
}

function repeatRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = range(bytes, random);
  const part = bytes.subarray(start, Math.min(end, start + 16));
  const many = Array.from({ length: 1 + random.below(64) }, () => part);
  return inserted(bytes, start, Buffer.concat(many));
}

function insertWord(bytes: Buffer, random: SeededRandom, words: readonly Buffer[]): Buffer {
  return inserted(bytes, random.below(bytes.length + 1), random.pick(words));
}

function overwriteWord(bytes: Buffer, random: SeededRandom, words: readonly Buffer[]): Buffer {
  const word = random.pick(words);
  if (random.oneIn(4)) return word;
  const at = random.below(bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, at), word, bytes.subarray(at + word.length)]);
}

/** Replaces a run of bytes in {@link TEXT} by a word of the dictionary. */
function replaceText(bytes: Buffer, random: SeededRandom, words: readonly Buffer[]): Buffer {
  const isText = (at: number) => TEXT.has(bytes[at] ?? 0);
  let start = random.below(bytes.length);
  let end = start;
  while (start > 0 && isText(start - 1)) start -= 1;
  while (end < bytes.length && isText(end)) end += 1;
  return Buffer.concat([bytes.subarray(0, start), random.pick(words), bytes.subarray(end)]);
}

function truncate(bytes: Buffer, random: SeededRandom): Buffer {
  return bytes.subarray(0, random.below(bytes.length + 1));
}

/** Joins the beginning of one input with the end of another. */
function splice(bytes: Buffer, other: Buffer, random: SeededRandom): Buffer {
  const end = other.subarray(random.below(other.length + 1));
  return Buffer.concat([bytes.subarray(0, random.below(bytes.length + 1)), end]);
}

function range(bytes: Buffer, random: SeededRandom): [start: number, end: number] {
  const start = random.below(bytes.length + 1);
  const most = random.oneIn(4) ? bytes.length - start : Math.min(8, bytes.length - start);
  return [start, start + random.below(most + 1)];
}

function inserted(bytes: Buffer, at: number, part: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at)]);
}
