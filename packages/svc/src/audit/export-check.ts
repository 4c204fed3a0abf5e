import { entryOf, entryOfNote, entryOfRow, factsOf } from './leaf-entry.js';
import {
  isSigned,
  parseCheckpoint,
  type SignedCheckpoint,
  type VerifierKey,
} from './signed-note.js';
import { GrowingTree, hashLeaf } from './tree-hash.js';

/** The kinds of faults that the check of an exported audit log can find. */
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

/**
 * A fault in an exported audit log, mostly a row that is wrong. `epoch` is the number of its tree:
 * a new tree begins when a restore or failover of the database may have lost events.
 */
export interface ExportFinding {
  readonly fault: Fault;
  readonly epoch: string;
  /** The id of the event; undefined if it is not known. */
  readonly id: string | undefined;
  /** The number of the leaf in its tree, from 0; undefined for a row that was not sealed. */
  readonly index: number | undefined;
  /** Further facts, as an English text. */
  readonly detail: string;
}

/**
 * The largest number of findings that are kept, because a log that was rewritten has a fault in
 * each row.
 */
const MOST_FINDINGS = 1_000;

/** The largest number of ids that a finding lists, if any of several rows may be the wrong one. */
const MOST_NAMED = 20;

/** The number of leaves after a checkpoint that are kept, so that a finding can name their ids. */
const MOST_NAMED_OF = 10_000;

const DAY = 86_400_000;

/**
 * The milliseconds before the end of its retention in which an event may be gone. An export states
 * the time at which it began. The clean-up goes on while it is read, by the clock of the database.
 */
const CLEAN_UP_MEANWHILE = 3_600_000;

/**
 * The leaf with which an export begins, if it does not begin with the first leaf of all. `epoch` is
 * that of the tree, and `index` the number of the leaf in the tree.
 */
export interface Beginning {
  readonly epoch: string;
  readonly index: number;
}

/**
 * A leaf of the tree with a row that does not fit the entry of the leaf, the 57 bytes that the tree
 * hashes. The row or the entry may have been changed.
 */
interface Suspect {
  readonly index: number;
  readonly id: string;
  readonly detail: string;
}

/** The state of the Merkle tree that the check is reading. */
interface TreeState {
  readonly tree: string;
  readonly epoch: string;
  readonly at: number;
  readonly retention: Readonly<Record<string, number>>;
  /**
   * The tree of the stored entries. It is undefined after a missing line, because its root cannot
   * be computed any more.
   */
  entries: GrowingTree | undefined;
  /**
   * The tree of the entries that the rows should have; the same object as `entries` until a row
   * differs from its entry.
   */
  rows: GrowingTree | undefined;
  next: number;
  suspects: Suspect[];
  /** The size of the last checkpoint that the lines confirmed, and its time. */
  proven: number;
  provenAt: string;
  /** The first entries after the last confirmed checkpoint. */
  after: Buffer[];
  readonly missing: Set<number>;
}

/** Checks a sealed export line by line against checkpoints. */
export class ExportCheck {
  readonly findings: ExportFinding[] = [];
  /**
   * The numbers of rows, of rows that retention removed, of leaves that no checkpoint confirms, and
   * of faults.
   */
  readonly counts = { rows: 0, expired: 0, unproven: 0, faults: 0 };
  /**
   * The time of the newest checkpoint that the lines confirmed; empty if none was confirmed yet.
   */
  provenAt = '';
  /** The leaf with which the export begins; undefined before its first line. */
  begins: Beginning | undefined;
  readonly #checkpoints = new Map<string, Map<number, SignedCheckpoint>>();
  /** For each tree, the epochs of which the export has lines. */
  readonly #read = new Map<string, Set<string>>();
  /** The checkpoints that the first leaves of trees name: each shows that its epoch had a tree. */
  readonly #named: SignedCheckpoint[] = [];
  #state: TreeState | undefined;
  /**
   * The trees at the end of their lines, by `TREE/EPOCH`; undefined for one whose root cannot be
   * computed.
   */
  readonly #ended = new Map<string, GrowingTree | undefined>();
  readonly #moved = new Set<string>();

  /**
   * @param keys the keys that must have signed each checkpoint; without any, signatures are not
   *   checked
   * @param retentionDays the days after which a row may be gone; by default those of the export
   * @param from the leaf with which the export was asked to begin; by default the first leaf of the
   *   log
   */
  constructor(
    checkpoints: readonly SignedCheckpoint[],
    private readonly keys: readonly VerifierKey[],
    private readonly now: number,
    private readonly retentionDays: number | undefined,
    private readonly from?: Beginning,
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

  /** Checks one line of the export. Throws a RangeError if the line cannot be one of an export. */
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
    for (const named of this.#named) this.#checkEnd(named);
    this.#reportEpochs();
  }

  /**
   * Reports each epoch of a tree of the export that a checkpoint proves, and of which the export
   * has no line. Without this report, an export could leave out an epoch whose tree was hidden in
   * the database, and nothing would show it.
   */
  #reportEpochs(): void {
    const sizes = new Map<string, SignedCheckpoint>();
    for (const checkpoint of [...this.#allCheckpoints(), ...this.#named]) {
      const { tree, epoch, size } = checkpoint;
      const read = this.#read.get(tree);
      if (read === undefined || read.has(epoch) || this.#isBefore(epoch, size)) continue;
      if (size > (sizes.get(`${tree}/${epoch}`)?.size ?? -1)) {
        sizes.set(`${tree}/${epoch}`, checkpoint);
      }
    }
    for (const { epoch, size } of sizes.values()) {
      const detail = `the export has no line of this epoch, which had ${size} leaves`;
      this.#report('missing', { epoch, detail });
    }
  }

  /** Lists the checkpoints that the caller gave, over all trees and epochs. */
  #allCheckpoints(): SignedCheckpoint[] {
    return [...this.#checkpoints.values()].flatMap((bySize) => [...bySize.values()]);
  }

  /**
   * Returns true if the export was asked to begin after an epoch, or after the first `size` leaves
   * of the epoch.
   */
  #isBefore(epoch: string, size = Number.POSITIVE_INFINITY): boolean {
    if (this.from === undefined) return false;
    const [own, first] = [BigInt(epoch), BigInt(this.from.epoch)];
    return own < first || (own === first && size <= this.from.index);
  }

  #begin({ tree, epoch, from, range, retention, at }: Partial<Record<string, unknown>>): void {
    const [id, start] = [String(tree), Number(from)];
    const entries = treeBefore(start, range);
    // Without a tree to which the leaves are appended, no root could be compared.
    if (!/^\d{1,18}$/.test(String(epoch)) || !Number.isSafeInteger(from) || !entries) {
      throw new RangeError('not a line of a sealed export');
    }
    if (this.#state?.tree === id && this.#state.epoch === epoch && this.#state.next === start)
      return;
    this.#close();
    this.#checkStart(id, { epoch: String(epoch), index: start });
    this.begins ??= { epoch: String(epoch), index: start };
    this.#read.set(id, (this.#read.get(id) ?? new Set()).add(String(epoch)));
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

  /**
   * Reports the leaves that the export lacks at the beginning of an epoch. Only the first epoch of
   * an export may begin later, because the export can be a part of the log. Lines of an epoch that
   * begin again are reported too: the tree of the later ones would hide what the earlier ones say.
   */
  #checkStart(tree: string, { epoch, index }: Beginning): void {
    if (this.#read.get(tree)?.has(epoch) === true) {
      const detail = 'the lines of this epoch end, and begin again in another place';
      this.#report('moved', { epoch, index, detail });
      return;
    }
    if (this.#isBefore(epoch)) return;
    const isAsked = this.from !== undefined && BigInt(epoch) === BigInt(this.from.epoch);
    const isPart = this.from === undefined && this.begins === undefined;
    const first = isAsked ? this.from.index : isPart ? index : 0;
    if (index <= first) return;
    const detail = `the export has no line for leaves ${first} to ${index - 1} of this epoch`;
    this.#report('missing', { epoch, index: first, detail });
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
    if (index === 0) this.#checkChain(state, entry, line);
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

  /**
   * Checks that the tree of a later epoch begins with a checkpoint of an earlier one. Without that
   * checkpoint, the tree may contain another history than the earlier checkpoints prove.
   */
  #checkChain({ tree, epoch }: TreeState, entry: Buffer, line: Buffer): void {
    const earlier = this.#allCheckpoints().find(
      (one) => one.tree === tree && BigInt(one.epoch) < BigInt(epoch) && !this.#isBefore(one.epoch),
    );
    const { checkpoint: note } = entry[0] === 0 ? parsed(line) : {};
    const named = typeof note === 'string' ? parseCheckpoint(note) : undefined;
    if (earlier === undefined || named?.tree === tree) return;
    const detail = `the tree does not begin with a checkpoint of an earlier epoch, such as ${earlier.epoch}`;
    this.#report('contradiction', { epoch, index: 0, detail });
  }

  #append(state: TreeState, entry: Buffer, own: Buffer): void {
    if (!state.entries || !state.rows) return;
    if (state.rows === state.entries && !own.equals(entry)) state.rows = state.entries.copy();
    const leaf = hashLeaf(entry);
    state.entries.append(leaf);
    if (state.rows !== state.entries) state.rows.append(own.equals(entry) ? leaf : hashLeaf(own));
  }

  /**
   * Handles a leaf with another number than the expected one. Returns true for a smaller number, so
   * that the check skips the leaf.
   */
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

  /**
   * Returns the entry that a leaf should have by the checkpoint in its line. The first leaf of a
   * tree names the last checkpoint of the previous tree, with which {@link end} compares that tree.
   */
  #checkpointLeaf(state: TreeState, entry: Buffer, line: Buffer, index: number): Buffer {
    const { checkpoint: note } = parsed(line);
    const named = typeof note === 'string' ? parseCheckpoint(note) : undefined;
    const { id } = factsOf(entry);
    if (!named) {
      state.suspects.push({ index, id, detail: 'the checkpoint of this leaf is gone' });
      return Buffer.alloc(0);
    }
    if (index === 0 && named.tree === state.tree) this.#named.push(named);
    const own = entryOfNote(named.tree, named.size, named.note);
    if (!own.equals(entry))
      state.suspects.push({ index, id, detail: 'the checkpoint of this leaf differs' });
    return own;
  }

  /**
   * Compares the end of a tree with its last checkpoint, which the next tree names. The lines of
   * the tree may be anywhere in the export, and may be the only ones that no other checkpoint
   * proves.
   */
  #checkEnd({ tree, epoch, size, root }: SignedCheckpoint): void {
    const ended = this.#ended.get(`${tree}/${epoch}`);
    if (!ended) return;
    if (size > ended.size) {
      const detail = `${size - ended.size} sealed events of this epoch were lost with a database`;
      this.#report('lost', { epoch, index: ended.size, detail });
    } else if (size < ended.size) {
      const detail = `${ended.size - size} leaves are after the last checkpoint of this epoch, which the next tree names`;
      this.#report('inserted', { epoch, index: size, detail });
    } else if (!root.equals(ended.root())) {
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
    const isOver = !isKept && known.at <= state.at + CLEAN_UP_MEANWHILE - days * DAY;
    if (isOver) this.counts.expired += 1;
    else {
      const detail = `${known.class ?? 'unknown'} event of ${new Date(known.at).toISOString()}`;
      this.#report('removed', { epoch: state.epoch, id: known.id, index, detail });
    }
  }

  /**
   * Compares the roots of two trees with the checkpoint of the same size, if there is one. If the
   * tree of the stored entries has its root, the rows that differ from their entries were changed.
   * If only the tree of the rows has it, the entries were changed.
   */
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
   * hashes fit its root, the hashes show in which subtrees the wrong leaves are.
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

  /**
   * Reports the leaves that contradict a checkpoint.
   *
   * @param right the hashes of the export that give the root of the checkpoint: the check continues
   *   from them. Without them it forgets the leaves that it has read so far.
   */
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

  /**
   * Ends the check of a tree. It reports missing lines, and the suspects that no later checkpoint
   * has confirmed or refuted.
   */
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
    this.#ended.set(`${state.tree}/${state.epoch}`, state.entries);
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

  /**
   * Withdraws the report of an inserted row that has only moved within the log, so that it is
   * reported once.
   */
  #forgetInserted(id: string): void {
    if (this.#moved.size < MOST_FINDINGS) this.#moved.add(id);
    const found = this.findings.findIndex((one) => one.fault === 'inserted' && one.id === id);
    if (found < 0) return;
    this.findings.splice(found, 1);
    this.counts.faults -= 1;
  }
}

/** The parts of a line of the export that is about one leaf. `line` has all bytes of the line. */
interface LeafLine {
  readonly index: number | undefined;
  readonly entry: Buffer | undefined;
  readonly row: Buffer | undefined;
  readonly line: Buffer;
}

/**
 * Matches the beginning of a line about a leaf (a sealed event): its index, its entry if the line
 * has one, and the name of the next field, or the end of the line if no field follows.
 */
const LEAF =
  /^\{"index":(\d{1,15}|null)(?:,"entry":"([A-Za-z0-9+/=]{76})")?(,"row":|,"checkpoint":|,"moved":|\}$)/;

function parsed(bytes: Buffer): Partial<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(bytes.toString());
    if (typeof document === 'object' && document !== null) return document;
  } catch {
    // A text that is no JSON gets the same error as JSON of another form.
  }
  throw new RangeError('not a line of a sealed export');
}

/**
 * Returns the tree of the leaves before an export, from the hashes of its complete subtrees.
 * Returns undefined if the hashes do not fit the number of leaves.
 */
function treeBefore(leaves: number, range: unknown): GrowingTree | undefined {
  const texts: readonly unknown[] = Array.isArray(range) ? range : [];
  const hashes = texts.map((text) => Buffer.from(String(text), 'base64'));
  return hashes.every(({ length }) => length === 32) ? GrowingTree.of(leaves, hashes) : undefined;
}

function spanOf(from: string, to: string): string {
  return from === '' ? `sealed by ${to}` : `sealed between ${from} and ${to}`;
}

/**
 * Returns the leaves after the last confirmed checkpoint that may be wrong. If the right hashes are
 * known, these are the leaves from the first to the last subtree with another hash.
 */
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
