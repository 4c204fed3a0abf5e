import { entryOf, entryOfNote, entryOfRow, factsOf } from './leaf-entry.js';
import {
  isSigned,
  parseCheckpoint,
  type SignedCheckpoint,
  type VerifierKey,
} from './signed-note.js';
import { GrowingTree, hashLeaf } from './tree-hash.js';

/** The ways in which a row can be wrong. */
export type Fault =
  | 'changed'
  | 'removed'
  | 'inserted'
  | 'moved'
  | 'missing'
  | 'seal changed'
  | 'changed with its seal'
  | 'lost'
  | 'contradiction'
  | 'not signed';

/** A row that is wrong, or another fault. */
export interface ExportFinding {
  readonly fault: Fault;
  readonly epoch: string;
  /** The id of the event; undefined if it is not known. */
  readonly id: string | undefined;
  /** The number of the leaf in its tree, from 0; undefined for a row that was not sealed. */
  readonly index: number | undefined;
  /** Further facts for people. */
  readonly detail: string;
}

/** The most findings that are kept. A log that was rewritten has as many as rows. */
const MOST_FINDINGS = 1_000;

/** The most ids that are named if the wrong row is one of several. */
const MOST_NAMED = 20;

/** The leaves after a checkpoint of which one can be named. */
const MOST_NAMED_OF = 10_000;

const DAY = 86_400_000;

/** A leaf whose row does not fit the stored entry. */
interface Suspect {
  readonly index: number;
  readonly id: string;
  readonly detail: string;
}

/** The tree that is read now. */
interface TreeState {
  readonly tree: string;
  readonly epoch: string;
  readonly at: number;
  readonly retention: Readonly<Record<string, number>>;
  /** The tree of the stored entries; undefined after lines that are missing. */
  entries: GrowingTree | undefined;
  /** The tree of the rows; the same as the stored one until a row differs. */
  rows: GrowingTree | undefined;
  next: number;
  suspects: Suspect[];
  /** The size of the last checkpoint that was right, and its time. */
  proven: number;
  provenAt: string;
  /** The first entries after it. */
  after: Buffer[];
  readonly missing: Set<number>;
}

/** Checks a sealed export line by line against checkpoints. */
export class ExportCheck {
  readonly findings: ExportFinding[] = [];
  /** The number of rows, of those that retention removed, and of those after the checkpoints. */
  readonly counts = { rows: 0, expired: 0, unproven: 0, faults: 0 };
  /** The time of the newest checkpoint that was right. */
  provenAt = '';
  readonly #checkpoints = new Map<string, Map<number, SignedCheckpoint>>();
  #state: TreeState | undefined;
  #ended: { readonly epoch: string; readonly tree: GrowingTree | undefined } | undefined;
  readonly #moved = new Set<string>();

  /**
   * @param keys the keys that must have signed each checkpoint; without any, signatures are not
   *   checked
   * @param retentionDays the days after which a row may be gone; by default those of the export
   */
  constructor(
    checkpoints: readonly SignedCheckpoint[],
    private readonly keys: readonly VerifierKey[],
    private readonly now: number,
    private readonly retentionDays: number | undefined,
  ) {
    for (const checkpoint of checkpoints) this.#know(checkpoint);
  }

  #know(checkpoint: SignedCheckpoint): void {
    const { tree, epoch, size, root } = checkpoint;
    const key = `${tree}/${epoch}`;
    if (this.keys.length > 0 && !isSigned(checkpoint, this.keys)) {
      this.#report('not signed', {
        epoch,
        detail: `the checkpoint of size ${size} has no signature of the key`,
      });
      return;
    }
    const known = this.#checkpoints.get(key) ?? new Map<number, SignedCheckpoint>();
    this.#checkpoints.set(key, known);
    const other = known.get(size);
    if (other && !other.root.equals(root)) {
      this.#report('contradiction', {
        epoch,
        detail: `two checkpoints of size ${size} have different roots`,
      });
    }
    known.set(size, checkpoint);
  }

  /** Checks one line. Throws a RangeError for a line of another format. */
  line(bytes: Buffer): void {
    const head = LEAF.exec(bytes.toString('latin1', 0, 140));
    if (head) {
      const [begin, index = '', base64, row] = head;
      this.#leaf({
        index: index === 'null' ? undefined : Number(index),
        entry: base64 === undefined ? undefined : entryOf(base64),
        row: row === ',"row":' ? bytes.subarray(begin.length, -1) : undefined,
        line: bytes,
      });
      return;
    }
    const document = parsed(bytes);
    if (typeof document['tree'] === 'string') this.#begin(document);
    else if (typeof document['size'] === 'number' && Array.isArray(document['range'])) {
      this.#range(document['size'], document['range'].map(String));
    } else throw new RangeError('not a line of a sealed export');
  }

  /** Ends the check after the last line. */
  end(): void {
    this.#close();
    this.#state = undefined;
  }

  #begin({ tree, epoch, from, range, retention, at }: Partial<Record<string, unknown>>): void {
    const [id, start] = [String(tree), Number(from)];
    if (this.#state?.tree === id && this.#state.epoch === epoch && this.#state.next === start)
      return;
    this.#close();
    const hashes = Array.isArray(range)
      ? range.map((text) => Buffer.from(String(text), 'base64'))
      : [];
    const entries = GrowingTree.of(start, hashes);
    const time = typeof at === 'string' ? Date.parse(at) : Number.NaN;
    this.#state = {
      tree: id,
      epoch: String(epoch),
      at: Number.isNaN(time) ? this.now : Math.min(this.now, time),
      retention: { ...(retention as Record<string, number> | undefined) },
      entries,
      rows: entries,
      next: start,
      suspects: [],
      proven: start,
      provenAt: '',
      after: [],
      missing: new Set(),
    };
  }

  #leaf({ index, entry, row, line }: LeafLine): void {
    const state = this.#state;
    if (!state) throw new RangeError('the first line does not name a tree');
    if (index === undefined) {
      const { id } = parsed(row ?? line);
      this.#report('inserted', {
        epoch: state.epoch,
        id: String(id),
        detail: 'is in the log and was not sealed',
      });
      return;
    }
    if (!entry) throw new RangeError('a leaf has no entry');
    if (index !== state.next && this.#isOutOfPlace(state, index, entry)) return;
    state.next = index + 1;
    if (state.after.length < MOST_NAMED_OF) state.after.push(entry);
    let own = entry;
    if (entry[0] === 0) own = this.#checkpointLeaf(state, entry, line, index);
    else if (row) {
      this.counts.rows += 1;
      own = entryOfRow(row) ?? Buffer.alloc(0);
      if (!own.equals(entry)) {
        state.suspects.push({
          index,
          id: factsOf(entry).id,
          detail: 'differs from what was sealed',
        });
      }
    } else this.#gone(state, entry, line, index);
    this.#append(state, entry, own);
    this.#compare(state);
  }

  #append(state: TreeState, entry: Buffer, own: Buffer): void {
    if (!state.entries || !state.rows) return;
    if (state.rows === state.entries && !own.equals(entry)) state.rows = state.entries.copy();
    const leaf = hashLeaf(entry);
    state.entries.append(leaf);
    if (state.rows !== state.entries) state.rows.append(own.equals(entry) ? leaf : hashLeaf(own));
  }

  /** Handles a leaf that is not the next one. Returns true if the check leaves it out. */
  #isOutOfPlace(state: TreeState, index: number, entry: Buffer): boolean {
    const { id } = factsOf(entry);
    if (index < state.next) {
      const isLate = state.missing.delete(index);
      const detail = isLate ? 'is in another place of the export' : 'is in the export twice';
      this.#report('moved', { epoch: state.epoch, id, index, detail });
      return true;
    }
    for (let gone = state.next; gone < index && state.missing.size < MOST_FINDINGS; gone += 1) {
      state.missing.add(gone);
    }
    state.entries = undefined;
    state.rows = undefined;
    return false;
  }

  /** Returns the entry of a checkpoint leaf, and checks the one that ends the tree before. */
  #checkpointLeaf(state: TreeState, entry: Buffer, line: Buffer, index: number): Buffer {
    const { checkpoint: note } = parsed(line);
    const named = typeof note === 'string' ? parseCheckpoint(note) : undefined;
    const { id } = factsOf(entry);
    if (!named) {
      state.suspects.push({ index, id, detail: 'the checkpoint of this leaf is gone' });
      return Buffer.alloc(0);
    }
    if (index === 0 && named.tree === state.tree) this.#checkEnd(named);
    const own = entryOfNote(named.tree, named.size, named.note);
    if (!own.equals(entry))
      state.suspects.push({ index, id, detail: 'the checkpoint of this leaf differs' });
    return own;
  }

  /** Compares the end of the tree before with the checkpoint that the next tree names. */
  #checkEnd({ epoch, size, root }: SignedCheckpoint): void {
    const before = this.#ended;
    if (before?.epoch !== epoch || !before.tree) return;
    if (size > before.tree.size) {
      const detail = `${size - before.tree.size} sealed events of this epoch were lost with a database`;
      this.#report('lost', { epoch, index: before.tree.size, detail });
    } else if (size === before.tree.size && !root.equals(before.tree.root())) {
      this.#report('contradiction', {
        epoch,
        detail: 'the tree does not have the root that the next one names',
      });
    }
  }

  #gone(state: TreeState, entry: Buffer, line: Buffer, index: number): void {
    const known = factsOf(entry);
    if (line.includes('"moved":true')) {
      const detail = 'is in another place of the log, or in another organization';
      this.#report('moved', { epoch: state.epoch, id: known.id, index, detail });
      return;
    }
    const days = this.retentionDays ?? state.retention[known.class ?? ''];
    const isKept = known.class === 'admin' || days === undefined;
    if (!isKept && known.at <= state.at - days * DAY) this.counts.expired += 1;
    else {
      const detail = `${known.class ?? 'unknown'} event of ${new Date(known.at).toISOString()}`;
      this.#report('removed', { epoch: state.epoch, id: known.id, index, detail });
    }
  }

  /** Compares the trees with a checkpoint of their size. */
  #compare(state: TreeState): void {
    const checkpoint = this.#checkpoints.get(`${state.tree}/${state.epoch}`)?.get(state.next);
    if (!checkpoint || !state.entries || !state.rows) return;
    const span = spanOf(state.provenAt, checkpoint.time);
    if (state.entries.root().equals(checkpoint.root)) {
      for (const suspect of state.suspects) {
        this.#report('changed', {
          ...suspect,
          epoch: state.epoch,
          detail: `${suspect.detail}, ${span}`,
        });
      }
      this.#proven(state, state.entries, checkpoint.time);
    } else if (state.rows.root().equals(checkpoint.root)) {
      for (const suspect of state.suspects) {
        const detail = 'the row is as it was sealed, and its stored hash was altered';
        this.#report('seal changed', { ...suspect, epoch: state.epoch, detail });
      }
      this.#proven(state, state.rows, checkpoint.time);
    }
  }

  #proven(state: TreeState, tree: GrowingTree, time: string): void {
    state.entries = tree;
    state.rows = tree;
    state.proven = tree.size;
    state.provenAt = time;
    if (time > this.provenAt) this.provenAt = time;
    state.suspects = [];
    state.after = [];
  }

  /**
   * Reads the hashes of subtrees at a checkpoint. If the leaves contradict the checkpoint, and the
   * hashes have its root, they show in which subtrees the wrong leaves are.
   */
  #range(size: number, range: readonly string[]): void {
    const state = this.#state;
    if (!state || state.next !== size || state.proven === size) return;
    const checkpoint = this.#checkpoints.get(`${state.tree}/${state.epoch}`)?.get(size);
    if (!checkpoint) return;
    const claimed = GrowingTree.of(
      size,
      range.map((text) => Buffer.from(text, 'base64')),
    );
    const isRight = claimed?.root().equals(checkpoint.root) === true;
    this.#contradicted(state, checkpoint, isRight ? claimed : undefined);
  }

  /** Reports the leaves that contradict a checkpoint, and goes on from the right hashes. */
  #contradicted(state: TreeState, { size, time }: SignedCheckpoint, right?: GrowingTree): void {
    const wrong = wrongLeaves(state, right, size);
    const span = spanOf(state.provenAt, time);
    for (const { index, id } of state.suspects) {
      const detail = `the row and its stored hash differ, and one of them from what was sealed, ${span}`;
      this.#report('changed', { index, id, epoch: state.epoch, detail });
    }
    if (state.missing.size > 0) this.#reportMissing(state);
    else if (state.entries && state.suspects.length === 0 && wrong.count > 0) {
      const [only] = wrong.ids;
      const others = wrong.ids.slice(0, MOST_NAMED).join(', ');
      const detail =
        wrong.count === 1
          ? `contradicts the checkpoint of size ${size}, ${span}`
          : `one or more of ${wrong.count} leaves contradict the checkpoint of size ${size}, ${span}: ${others}`;
      const id = wrong.count === 1 ? only : undefined;
      this.#report('changed with its seal', { epoch: state.epoch, id, index: wrong.from, detail });
    }
    if (right) this.#proven(state, right, time);
    else {
      state.entries = undefined;
      state.rows = undefined;
      state.suspects = [];
    }
  }

  #reportMissing(state: TreeState): void {
    for (const index of state.missing) {
      this.#report('missing', {
        epoch: state.epoch,
        index,
        detail: 'the export has no line for it',
      });
    }
    state.missing.clear();
  }

  /** Ends a tree: reports what no checkpoint after it could decide. */
  #close(): void {
    const state = this.#state;
    if (!state) return;
    this.#reportMissing(state);
    const known = [...(this.#checkpoints.get(`${state.tree}/${state.epoch}`)?.values() ?? [])];
    const largest = known.toSorted((a, b) => b.size - a.size)[0];
    if (largest && largest.size > state.next) {
      const detail = `the export ends before the checkpoint of size ${largest.size}`;
      this.#report('missing', { epoch: state.epoch, index: state.next, detail });
    } else if (largest && largest.size > state.proven && state.entries) {
      this.#contradicted(state, largest);
    }
    for (const { index, id, detail } of state.suspects) {
      this.#report('changed', { epoch: state.epoch, index, id, detail });
    }
    this.counts.unproven += Math.max(0, state.next - Math.max(state.proven, 0));
    this.#ended = { epoch: state.epoch, tree: state.entries };
  }

  #report(
    fault: Fault,
    {
      epoch,
      id,
      index,
      detail,
    }: Partial<ExportFinding> & { readonly epoch: string; readonly detail: string },
  ): void {
    if (fault === 'moved' && id !== undefined) this.#forgetInserted(id);
    if (fault === 'inserted' && id !== undefined && this.#moved.has(id)) return;
    this.counts.faults += 1;
    if (this.findings.length < MOST_FINDINGS)
      this.findings.push({ fault, epoch, id, index, detail });
  }

  /** A row that has moved within the log is no inserted row as well. */
  #forgetInserted(id: string): void {
    if (this.#moved.size < MOST_FINDINGS) this.#moved.add(id);
    const found = this.findings.findIndex((one) => one.fault === 'inserted' && one.id === id);
    if (found < 0) return;
    this.findings.splice(found, 1);
    this.counts.faults -= 1;
  }
}

/** The parts of the line of a leaf. */
interface LeafLine {
  readonly index: number | undefined;
  readonly entry: Buffer | undefined;
  readonly row: Buffer | undefined;
  readonly line: Buffer;
}

/** The beginning of the line of a leaf, up to the text of its row. */
const LEAF =
  /^\{"index":(\d{1,15}|null)(?:,"entry":"([A-Za-z0-9+/=]{76})")?(,"row":|,"checkpoint":|,"moved":|\}$)/;

function parsed(bytes: Buffer): Partial<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(bytes.toString());
    if (typeof document === 'object' && document !== null) return document;
  } catch {
    // reported below
  }
  throw new RangeError('not a line of a sealed export');
}

function spanOf(from: string, to: string): string {
  return from === '' ? `sealed by ${to}` : `sealed between ${from} and ${to}`;
}

/** Returns the leaves after the last right checkpoint that may be wrong. */
function wrongLeaves(
  { entries, proven, after }: TreeState,
  right: GrowingTree | undefined,
  size: number,
): { readonly from: number; readonly count: number; readonly ids: readonly string[] } {
  const own = entries?.parts ?? [];
  const differing = right?.parts.filter((part, n) => own[n]?.hash.equals(part.hash) !== true) ?? [];
  const [first, last] = [differing[0], differing.at(-1)];
  const from = Math.max(proven, first?.from ?? proven);
  const to = last ? last.from + last.width : size;
  const ids = after.slice(from - proven, to - proven).map((entry) => factsOf(entry).id);
  return { from, count: to - from, ids };
}
