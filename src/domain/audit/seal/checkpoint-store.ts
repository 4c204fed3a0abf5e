import type { Config } from '#platform/config/config.js';
import type { S3Server } from '#platform/object-store/s3-client.js';
import { openLockedFolder, type LockedFolder } from '#platform/object-store/s3-object.js';
import type { Checkpoint } from './checkpoints.repository.js';

const FOLDER = 'audit-checkpoints';
const DAY = 86_400_000;

/** The copies of checkpoints in an object store, which stay unchanged for a time. */
export class CheckpointStore {
  constructor(
    private readonly folder: LockedFolder,
    private readonly retentionDays: number,
  ) {}

  /** Opens the bucket of the configuration; undefined if none is set. */
  static async open({
    auditSeal: { bucket, retentionDays },
    objectStore,
    upstream: { extraCaCerts },
  }: Pick<Config, 'auditSeal' | 'objectStore' | 'upstream'>): Promise<CheckpointStore | undefined> {
    if (bucket === undefined) return undefined;
    const place = { bucket, folder: FOLDER, ...serverOf(objectStore, extraCaCerts) };
    return new CheckpointStore(await openLockedFolder(place), retentionDays);
  }

  /** Writes a checkpoint, if it is not there already. */
  async put(checkpoint: Checkpoint, now: number): Promise<void> {
    const until = new Date(now + this.retentionDays * DAY);
    await this.folder.write(nameOf(checkpoint), Buffer.from(checkpoint.note), until);
  }

  /** Returns the largest checkpoint of the same tree after one; undefined if there is none. */
  async after(last: Omit<Checkpoint, 'note'>): Promise<string | undefined> {
    const prefix = `${last.tree}/${last.epoch}/`;
    let [newest, names] = [nameOf(last), await this.folder.namesAfter(prefix, nameOf(last))];
    while (names.length > 0) {
      newest = names.at(-1) ?? newest;
      names = await this.folder.namesAfter(prefix, newest);
    }
    return newest === nameOf(last) ? undefined : (await this.folder.read(newest)).toString();
  }
}

/**
 * Returns the server of the buckets for checkpoints and archives: that of the configuration
 * document, if there is one, or else the one that the AWS SDK finds.
 */
export function serverOf(
  { bucket, region, endpoint }: Config['objectStore'],
  extraCaCerts: readonly string[],
): S3Server {
  if (bucket === undefined) return { region: undefined, endpoint: undefined, extraCaCerts };
  return { region: region === 'auto' ? undefined : region, endpoint, extraCaCerts };
}

/** The names of the checkpoints of a tree have the order of their sizes. */
function nameOf({ tree, epoch, size }: Omit<Checkpoint, 'note'>): string {
  return `${tree}/${epoch}/${String(size).padStart(15, '0')}`;
}
