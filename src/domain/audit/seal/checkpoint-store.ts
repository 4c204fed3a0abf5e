import type { Config } from '#platform/config/config.js';
import type { S3Server } from '#platform/object-store/s3-client.js';
import { openLockedFolder, type LockedFolder } from '#platform/object-store/s3-object.js';
import type { Checkpoint } from './checkpoints.repository.js';

const FOLDER = 'audit-checkpoints';
const DAY = 86_400_000;

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
   * is larger than `last`. Otherwise returns undefined.
   */
  async after(last: Omit<Checkpoint, 'note'>): Promise<string | undefined> {
    const prefix = `${last.tree}/${last.epoch}/`;
    let [newest, names] = [nameOf(last), await this.folder.namesAfter(prefix, nameOf(last))];
    while (names.length > 0) {
      newest = names.at(-1) ?? newest;
      names = await this.folder.namesAfter(prefix, newest);
    }
    return newest === nameOf(last) ? undefined : (await this.folder.read(newest)).toString();
  }

  /**
   * Returns the signed text of the checkpoint with the most leaves in the last epoch of a tree.
   * Returns undefined if the store has none of the tree.
   */
  async newest(tree: string): Promise<string | undefined> {
    const prefix = `${tree}/`;
    let epoch: bigint | undefined;
    for (let after = prefix; ;) {
      const [name] = await this.folder.namesAfter(prefix, after);
      const [, found] = /^[^/]+\/(\d{1,18})\/\d{15}$/.exec(name ?? '') ?? [];
      if (name === undefined) break;
      if (found !== undefined && BigInt(found) > (epoch ?? -1n)) epoch = BigInt(found);
      // Only one name of each epoch is read. The next read begins at a tilde, which sorts after
      // every size of this epoch.
      const next = `${prefix}${found ?? ''}/~`;
      after = found !== undefined && next > after ? next : name;
    }
    return epoch === undefined ? undefined : this.after({ tree, epoch: epoch.toString(), size: 0 });
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
