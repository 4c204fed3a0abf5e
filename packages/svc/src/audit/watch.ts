import { appendFileSync, existsSync, rmSync, statSync, truncateSync } from 'node:fs';
import type { CommandContext } from '../command/command-context.js';
import { fileFailure } from '../files/private-folder.js';
import { parseArguments } from '../program/arguments.js';
import { STATUS, usageFailure } from '../program/failure.js';
import type { ServerClient } from '../server/server-client.js';
import { entryOfNote } from './leaf-entry.js';
import {
  isSigned,
  parseCheckpoint,
  readCheckpoints,
  readVerifiers,
  type SignedCheckpoint,
  type VerifierKey,
} from './signed-note.js';
import { hashLeaf, isExtension } from './tree-hash.js';

const ROUTE = '/api/v1/org/audit-checkpoints';

/** The fault of a server that sends a checkpoint which is none. */
const ANOTHER_TEXT = 'the server sends another text';

/** The largest number of checkpoints in one answer of the server. */
const PAGE = 1_000;

/**
 * The number of checkpoints of a page that are proven and added, spread over the page. Each costs a
 * request, and the server answers about one a second. To prove all checkpoints of a day, of which
 * there may be one a minute, would take longer than an admin token is valid.
 */
const PROVEN = 50;

/**
 * A page of checkpoints of the server. `next` is the position of the next page; null on the last
 * page.
 */
interface Page {
  readonly checkpoints: readonly { readonly note: string }[];
  readonly next: string | null;
}

/**
 * A consistency proof of the server: hashes that show that a tree extends a smaller one. `previous`
 * is the checkpoint that the first leaf of the tree names; null if there is none.
 */
interface Proof {
  readonly hashes: readonly string[];
  readonly previous: string | null;
}

/**
 * `svc audit watch`: adds new checkpoints to a file, about {@link PROVEN} of each page, each after
 * a proof that it extends the one before. The first checkpoint of a new file needs no proof. It
 * stops at the first checkpoint that does not extend the one before, and does not add it.
 */
export async function watch(
  args: readonly string[],
  context: CommandContext,
  usage: string,
): Promise<number> {
  const options = parseArguments(args, { values: ['key'], positionals: 1 }, usage);
  const [file] = options.positionals;
  if (file === undefined) throw usageFailure('The file is missing.', usage);
  const key = options.value('key');
  const keys = key === undefined ? undefined : readVerifiers(key);
  const client = await context.client('admin-token');
  const known = existsSync(file) ? readCheckpoints(file) : [];
  const watcher = new CheckpointWatch(client, keys, known.at(-1));
  let added = 0;
  let fault: string | undefined;
  for await (const next of watcher.news()) {
    if ('fault' in next) {
      ({ fault } = next);
      break;
    }
    const separator = added + known.length === 0 ? '' : '\n';
    append(file, `${separator}${next.note}`);
    added += 1;
  }
  const last = watcher.last;
  const document = { extends: fault === undefined, added, fault: fault ?? null, size: last?.size };
  const state = last ? `The newest one has ${last.size} leaves.` : 'The server has none yet.';
  context.terminal.result(document, [
    ...(fault === undefined ? [] : [`The log does not extend its checkpoints: ${fault}.`]),
    `${added} checkpoints added to ${file}. ${state}`,
  ]);
  return fault === undefined ? 0 : STATUS.failed;
}

/**
 * Appends a text to a file. If only a part can be written, that part is removed again. Otherwise no
 * later command could read the file.
 *
 * @throws CliFailure that names the file
 */
function append(file: string, text: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  try {
    appendFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    if (size === undefined) rmSync(file, { force: true });
    else truncateSync(file, size);
    throw fileFailure(file, error);
  }
}

/** Follows the checkpoints of a server from a known one on. */
class CheckpointWatch {
  constructor(
    private readonly client: ServerClient,
    private readonly keys: readonly VerifierKey[] | undefined,
    /** The last checkpoint that was proven. */
    public last: SignedCheckpoint | undefined,
  ) {}

  /** Yields each new checkpoint that extends the one before, or the fault that ends the watch. */
  async *news(): AsyncGenerator<SignedCheckpoint | { readonly fault: string }> {
    const newest = await this.#page('newest');
    const [end] = newest.checkpoints.map(({ note }) => parseCheckpoint(note));
    if (!end && newest.checkpoints.length > 0) {
      yield { fault: ANOTHER_TEXT };
      return;
    }
    if (this.last && (!end || isBefore(end, this.last))) {
      yield {
        fault: `the server has no checkpoint of size ${this.last.size} of epoch ${this.last.epoch}, which this file has`,
      };
      return;
    }
    if (this.last && end && isSamePlace(end, this.last) && !end.root.equals(this.last.root)) {
      yield { fault: `the server has another root for the size ${end.size}` };
      return;
    }
    let page = this.last ? await this.#page(`${this.last.epoch}.${this.last.size}`) : newest;
    while (page.checkpoints.length > 0) {
      for (const checkpoint of chosenOf(page, this.keys)) {
        const fault = checkpoint ? await this.#faultOf(checkpoint) : ANOTHER_TEXT;
        if (checkpoint === undefined || fault !== undefined) {
          yield { fault: fault ?? ANOTHER_TEXT };
          return;
        }
        this.last = checkpoint;
        yield checkpoint;
      }
      if (page.next === null) return;
      page = await this.#page(page.next);
    }
  }

  #page(after: string): Promise<Page> {
    return this.client.get<Page>(`${ROUTE}?after=${after}&limit=${PAGE}`);
  }

  /** Returns the reason why a checkpoint does not extend `last`; undefined if it does. */
  async #faultOf(next: SignedCheckpoint): Promise<string | undefined> {
    if (this.keys && !isSigned(next, this.keys)) {
      return `the checkpoint of size ${next.size} has no signature of the key`;
    }
    const { last } = this;
    if (!last) return undefined;
    if (last.tree !== next.tree) return 'the checkpoints are of another organization';
    if (last.epoch === next.epoch) return this.#notExtended(last, next);
    return this.#notContinued(last, next);
  }

  async #notExtended(
    first: SignedCheckpoint,
    second: SignedCheckpoint,
  ): Promise<string | undefined> {
    const { hashes } = await this.#prove(first.epoch, first.size, second.size);
    return isExtension(first, second, hashes)
      ? undefined
      : `the checkpoint of size ${second.size} does not extend that of size ${first.size}`;
  }

  /**
   * Checks that the tree of a later epoch names, in its first leaf, a checkpoint that extends
   * `last`. Returns the reason if it does not, and undefined if it does.
   */
  async #notContinued(last: SignedCheckpoint, next: SignedCheckpoint): Promise<string | undefined> {
    const { hashes, previous } = await this.#prove(next.epoch, 1, next.size);
    const named = previous === null ? undefined : parseCheckpoint(previous);
    if (!named) return `the tree of epoch ${next.epoch} names no checkpoint before it`;
    const leaf = { size: 1, root: hashLeaf(entryOfNote(named.tree, named.size, named.note)) };
    if (!isExtension(leaf, next, hashes)) {
      return `the tree of epoch ${next.epoch} does not begin with the checkpoint that it names`;
    }
    if (named.epoch === last.epoch && named.size >= last.size) {
      return named.size === last.size && named.root.equals(last.root)
        ? undefined
        : this.#notExtended(last, named);
    }
    return named.epoch === last.epoch
      ? `${last.size - named.size} sealed events of epoch ${last.epoch} were lost: a new tree begins after ${named.size}`
      : `the tree of epoch ${next.epoch} continues epoch ${named.epoch}, and not ${last.epoch}`;
  }

  async #prove(epoch: string, from: number, to: number) {
    const path = `${ROUTE}/proof?epoch=${epoch}&from=${from}&to=${to}`;
    const { hashes, previous } = await this.client.get<Proof>(path);
    return { previous, hashes: hashes.map((text) => Buffer.from(text, 'base64')) };
  }
}

function isBefore(one: SignedCheckpoint, other: SignedCheckpoint): boolean {
  const [a, b] = [BigInt(one.epoch), BigInt(other.epoch)];
  return a < b || (a === b && one.size < other.size);
}

function isSamePlace(one: SignedCheckpoint, other: SignedCheckpoint): boolean {
  return one.epoch === other.epoch && one.size === other.size;
}

/**
 * Returns the checkpoints of a page that are to be proven: about {@link PROVEN}, with the last one
 * of each epoch, and each one that no key has signed, which needs no request to be refused. A text
 * that is no checkpoint is undefined.
 */
function chosenOf(
  { checkpoints }: Page,
  keys: readonly VerifierKey[] | undefined,
): (SignedCheckpoint | undefined)[] {
  const all = checkpoints.map(({ note }) => parseCheckpoint(note));
  const step = Math.ceil(all.length / PROVEN);
  return all.filter(
    (one, n) =>
      one === undefined ||
      (all.length - 1 - n) % step === 0 ||
      one.epoch !== all[n + 1]?.epoch ||
      (keys !== undefined && !isSigned(one, keys)),
  );
}
