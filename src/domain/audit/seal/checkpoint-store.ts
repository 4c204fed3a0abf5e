import type { Config } from '#platform/config/config.js';
import { ObjectStoreError } from '#platform/object-store/object-store-error.js';
import type { S3Server } from '#platform/object-store/s3-client.js';
import { openLockedFolder, type LockedFolder } from '#platform/object-store/s3-object.js';
import { isCheckpointOf } from './checkpoint.js';
import type { Checkpoint } from './checkpoints.repository.js';

const FOLDER = 'audit-checkpoints';
const DAY = 86_400_000;

/**
 * The most objects, and the most epochs, that are looked at to find a checkpoint. Another program
 * may have written objects with the names of larger checkpoints, which do not count.
 */
const MOST_READ = 100;

/**
 * Keeps copies of signed checkpoints in an object store. For `retentionDays` days the store lets no
 * program change or delete a copy, so a checkpoint that the database lost can be found again.
 */
export class CheckpointStore {
  constructor(
    private readonly folder: LockedFolder,
    private readonly retentionDays: number,
  ) {}

  /** Opens the bucket that the configuration names for checkpoints; undefined if it names none. */
  static async open({
    auditSeal: { bucket, retentionDays },
    objectStore,
    upstream: { extraCaCerts },
  }: Pick<Config, 'auditSeal' | 'objectStore' | 'upstream'>): Promise<CheckpointStore | undefined> {
    if (bucket === undefined) return undefined;
    const place = { bucket, folder: FOLDER, ...serverOf(objectStore, extraCaCerts) };
    return new CheckpointStore(await openLockedFolder(place), retentionDays);
  }

  /**
   * Writes a checkpoint, if it is not in the store already.
   *
   * @param now the present time, in milliseconds since 1970; the store keeps the copy for
   *   `retentionDays` from this time
   */
  async put(checkpoint: Checkpoint, now: number): Promise<void> {
    const until = new Date(now + this.retentionDays * DAY);
    await this.folder.write(nameOf(checkpoint), Buffer.from(checkpoint.note), until);
  }

  /**
   * Returns the signed text of the largest checkpoint of the same tree and epoch as `last`, if it
   * is larger than `last`. Otherwise returns undefined. Other objects than checkpoints, and those
   * that none of the keys has signed, do not count.
   *
   * @param verifiers the public keys of the seal
   */
  async after(
    last: Omit<Checkpoint, 'note'>,
    verifiers: readonly string[],
  ): Promise<string | undefined> {
    const { tree, epoch } = last;
    const prefix = `${tree}/${epoch}/`;
    let found: string[] = [];
    for (let after = nameOf(last); ;) {
      const names = await this.folder.namesAfter(prefix, after);
      if (names.length === 0) break;
      found = [...found, ...names].slice(-MOST_READ);
      after = names.at(-1) ?? after;
    }
    for (const name of found.toReversed()) {
      const note = await this.#read(name);
      const size = Number(name.slice(prefix.length));
      if (isCheckpointOf(note, { tree, epoch, size }, verifiers)) return note;
    }
    return undefined;
  }

  /**
   * Returns the signed text of the checkpoint with the most leaves in the last epoch of a tree of
   * which the store has any, by the rules of {@link after}. Returns undefined if it has none.
   */
  async newest(tree: string, verifiers: readonly string[]): Promise<string | undefined> {
    const epochs = (await this.#epochs(tree)).toSorted((a, b) => (a < b ? 1 : -1));
    for (const epoch of epochs.slice(0, MOST_READ)) {
      const found = await this.after({ tree, epoch: epoch.toString(), size: 0 }, verifiers);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Reads an object as text; an empty text for one that is larger than any checkpoint. */
  async #read(name: string): Promise<string> {
    try {
      return (await this.folder.read(name)).toString();
    } catch (error) {
      if (error instanceof ObjectStoreError && error.fault === 'too-large') return '';
      throw error;
    }
  }

  /** Lists the epochs of a tree that the names of objects have. */
  async #epochs(tree: string): Promise<bigint[]> {
    const prefix = `${tree}/`;
    const epochs: bigint[] = [];
    for (let after = prefix; ;) {
      const [name] = await this.folder.namesAfter(prefix, after);
      const [, found] = /^[^/]+\/(\d{1,18})\/\d{15}$/.exec(name ?? '') ?? [];
      if (name === undefined) break;
      if (found !== undefined) epochs.push(BigInt(found));
      // Only one name of each epoch is read. The next read begins at a tilde, which sorts after
      // every size of this epoch.
      const next = `${prefix}${found ?? ''}/~`;
      after = found !== undefined && next > after ? next : name;
    }
    return epochs;
  }
}

/**
 * Returns the region and the endpoint of the object store for checkpoints and archives. If the
 * configuration document of the service is in a bucket, they are those of that bucket; otherwise
 * the AWS SDK chooses them.
 */
export function serverOf(
  { bucket, region, endpoint }: Config['objectStore'],
  extraCaCerts: readonly string[],
): S3Server {
  if (bucket === undefined) return { region: undefined, endpoint: undefined, extraCaCerts };
  return { region: region === 'auto' ? undefined : region, endpoint, extraCaCerts };
}

/**
 * Returns the name of the object of a checkpoint. The size is padded with zeros, so that the names
 * of a tree sort by size.
 */
function nameOf({ tree, epoch, size }: Omit<Checkpoint, 'note'>): string {
  return `${tree}/${epoch}/${String(size).padStart(15, '0')}`;
}
