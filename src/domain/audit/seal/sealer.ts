import { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import {
  isLostRace,
  isOutage,
  reasonOf,
  sqlStateOf,
} from '#platform/database/statements/faults.js';
import { smallerAfter } from '#platform/database/statements/smaller-batch.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DEPLOYMENT, signCheckpoint, verifierOf, type SealKey } from './checkpoint.js';
import { CheckpointPublisher, isConflict } from './checkpoint-publisher.js';
import type { CheckpointStore } from './checkpoint-store.js';
import {
  endedTree,
  isAnyWithoutLeaf,
  keepRound,
  listGrown,
  recordCheckpoint,
  takeRound,
  takeWithoutLeaf,
  type GrownTree,
} from './checkpoints.repository.js';
import { checkpointEntry, ENTRY_BYTES } from './leaf-entry.js';
import { listVerifiers } from './seal-keys.repository.js';
import { listUnsealed, readEntries, type UnsealedPage } from './sealed-rows.repository.js';
import { append, checkSize, DamagedTree, holdEpoch, openTree } from './trees.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** Milliseconds between two rounds of sealing. */
const INTERVAL = 60_000;

/**
 * The seconds after the beginning of a round in which no other process begins one. It is shorter
 * than {@link INTERVAL}, so that the next round is not refused.
 */
const ROUND = 50;

/**
 * `batch`: the most events that one transaction seals. `round`: the most events of one round.
 * `signatures`: the most signatures at the same time.
 */
const LIMITS = { batch: 2_048, round: 500_000, signatures: 20 } as const;

/**
 * `organizations`: the most organizations that one statement looks through for events to seal. With
 * the partitions of three months it takes about 0.2 ms for each, and with those of three years 2
 * ms. A test lowers the number.
 */
export const SEAL_PAGES = { organizations: 1_000 };

/** The id that sorts before that of every organization. */
const NO_ORGANIZATION = DEPLOYMENT;

/**
 * Seals the audit log once a minute, so that a later change of an event can be proven. It appends
 * the new events of each organization to its Merkle tree, and signs a checkpoint of each tree that
 * has grown. A leaf of the tree of the deployment is an event without an organization, or a
 * checkpoint of an organization.
 *
 * If the process is killed during a round, nothing is lost. Each step is a transaction, and the
 * next round goes on after the last committed step. Two rounds at the same time make no second
 * tree, because each transaction locks its tree. A tree whose rows are damaged does not stop the
 * others. If it is the tree of the deployment, that tree lacks the checkpoints which organizations
 * get meanwhile, until it is corrected and a later round adds the last ones. If a transaction lost
 * every race with others, the next round seals its tree. While the object store cannot be read, a
 * tree that exists grows, and a new one waits.
 */
export class AuditSealer {
  readonly #log = new Logger('audit');
  readonly #security = new Logger('security');
  readonly #worker: QueueWorker;
  readonly #publisher: CheckpointPublisher;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
    private readonly key: SealKey,
    private readonly store?: CheckpointStore,
  ) {
    const drain = () => this.run();
    const log = this.#log;
    const name = 'The seal of the audit log';
    this.#worker = new QueueWorker(clock, { drain, poll: INTERVAL, log, name });
    const isStopping = () => this.#worker.isStopping;
    this.#publisher = new CheckpointPublisher(dataSource, clock, store, isStopping);
  }

  start(): void {
    this.#worker.start();
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  /** Seals the new events, unless another process does so in this minute. */
  async run(): Promise<void> {
    if (await takeRound(this.dataSource.manager, ROUND)) await this.seal();
  }

  /**
   * Seals the new events, signs the trees that have grown, and publishes the checkpoints.
   *
   * @throws Error with the first damaged tree, or else with the fault of the object store, or else
   *   with the first tree that lost a race, after all other trees were sealed
   */
  async seal(): Promise<void> {
    const round: Round = { damaged: new Map(), late: new Map(), hasLeaves: true };
    let left: number = LIMITS.round;
    for (const tree of [...(await this.#unsealed()), DEPLOYMENT]) {
      left -= (await unlessFaulty(round, tree, () => this.#sealRows(tree, left, round))) ?? 0;
    }
    // Otherwise the first checkpoint of an organization would begin the tree of the deployment, and
    // the store would not be asked which checkpoint of it the database lost.
    if (this.store && (await endedTree(this.dataSource.manager, DEPLOYMENT))) {
      round.hasLeaves = false;
    }
    await this.#sign('organizations', round);
    await this.#addMissing(round);
    await this.#sign('deployment', round);
    const [published] = await Promise.allSettled([this.#publisher.publish()]);
    const conflicts = published.status === 'fulfilled' ? published.value : [];
    for (const [tree, error] of conflicts) round.damaged.set(tree, error);
    for (const [tree, error] of round.damaged) {
      const fault = isConflict(error) ? 'has an unpublished checkpoint: the store' : 'is damaged:';
      throw new Error(`tree ${tree} ${fault} ${reasonOf(error)}`, { cause: error });
    }
    if (published.status === 'rejected') throw published.reason;
    for (const [tree, error] of round.late) {
      throw new Error(`tree ${tree} is sealed later: ${reasonOf(error)}`, { cause: error });
    }
  }

  /**
   * Lists the organizations with events that are not sealed yet. If a statement exceeds its time
   * limit, the pages become smaller.
   */
  async #unsealed(): Promise<string[]> {
    const { manager } = this.dataSource;
    const found: string[] = [];
    let most = SEAL_PAGES.organizations;
    for (let after: string = NO_ORGANIZATION; !this.#worker.isStopping;) {
      try {
        const page: UnsealedPage = await listUnsealed(manager, after, most);
        found.push(...page.orgs);
        if (page.next === undefined) break;
        after = page.next;
      } catch (error) {
        most = smallerAfter(error, most);
      }
      await keepRound(manager);
    }
    return found;
  }

  /**
   * Seals new events of a tree, in batches, until `most` are sealed or none is left. Returns their
   * number.
   */
  async #sealRows(tree: string, most: number, round: Round): Promise<number> {
    let sealed = 0;
    while (sealed < most && !this.#worker.isStopping) {
      const lost = await this.#lostCheckpoint(tree, round);
      const n = await withTransactionRetry(this.dataSource, (tx) => sealBatch(tx, tree, lost));
      sealed += n;
      if (n < LIMITS.batch) break;
      await keepRound(this.dataSource.manager);
    }
    return sealed;
  }

  /**
   * Returns the last published checkpoint of a tree before a new tree begins, if the database has
   * lost it. The first leaf of the new tree then names this checkpoint, so that the loss can be
   * proven. The database may have lost the end of the last tree, or every tree with this id.
   *
   * @throws StoreAway if the store cannot be read now
   */
  async #lostCheckpoint(tree: string, round: Round): Promise<string | undefined> {
    const { store } = this;
    const last = store && (await endedTree(this.dataSource.manager, tree));
    if (!last) return undefined;
    const { epoch, size } = last;
    const verifiers = [verifierOf(this.key), ...(await listVerifiers(this.dataSource.manager))];
    const published = await unlessStoreAway(round, () =>
      epoch === undefined
        ? store.newest(tree, verifiers)
        : store.after({ tree, epoch, size }, verifiers),
    );
    if (published === undefined) return undefined;
    const lines = published.split('\n');
    const about = { tree, epoch: epoch ?? null, kept: size, published: lines };
    this.#security.warn(about, 'the database lost sealed events of the audit log');
    return published;
  }

  async #sign(which: 'organizations' | 'deployment', round: Round): Promise<void> {
    const grown = await listGrown(this.dataSource.manager, which);
    for (let from = 0; from < grown.length; from += LIMITS.signatures) {
      const some = grown.slice(from, from + LIMITS.signatures);
      const made = await Promise.all(
        some.map((one) => unlessFaulty(round, one.tree, () => this.#checkpoint(one))),
      );
      const signed = made.filter((one) => one !== undefined);
      await this.#record(signed, round);
    }
  }

  /**
   * Stores checkpoints in one transaction. If one of them cannot be stored, it stores each of them
   * alone, so that the fault does not stop the others.
   */
  async #record(signed: readonly SignedTree[], round: Round): Promise<void> {
    try {
      await this.#store(signed, round.hasLeaves);
    } catch (error) {
      if (!isOfTree(error)) throw error;
      for (const one of signed) await this.#recordAlone(one, round);
    }
  }

  /**
   * Stores one checkpoint. If the tree of the deployment cannot take it as a leaf, the checkpoint
   * of an organization is stored without this leaf. So damage to that one tree does not stop the
   * seal of every organization.
   */
  async #recordAlone(signed: SignedTree, round: Round): Promise<void> {
    const { tree } = signed.grown;
    const leafFault = await faultOf(() => this.#store([signed], round.hasLeaves));
    if (leafFault === undefined) return;
    const isFinal = tree === DEPLOYMENT || isLostRace(leafFault);
    const fault = isFinal ? leafFault : await faultOf(() => this.#store([signed], false));
    noteFault(round, fault === undefined ? DEPLOYMENT : tree, fault ?? leafFault);
    if (fault === undefined) round.hasLeaves = false;
  }

  #store(signed: readonly SignedTree[], hasLeaves: boolean): Promise<void> {
    return withTransactionRetry(this.dataSource, (tx) => recordAll(tx, signed, hasLeaves));
  }

  /**
   * Appends to the tree of the deployment the checkpoints that it lacks, because it was damaged
   * when they were stored.
   */
  async #addMissing(round: Round): Promise<void> {
    const { dataSource } = this;
    if (!round.hasLeaves || !(await isAnyWithoutLeaf(dataSource.manager))) return;
    await unlessFaulty(round, DEPLOYMENT, () => withTransactionRetry(dataSource, addMissingLeaves));
  }

  async #checkpoint(grown: GrownTree): Promise<SignedTree> {
    const { tree, epoch, range, signedAt } = grown;
    checkSize(range);
    const at = new Date(Math.max(this.clock.milliseconds(), signedAt?.getTime() ?? 0));
    const head = { tree, epoch, size: range.size, root: range.root(), at };
    return { grown, at, note: await signCheckpoint(this.key, head) };
  }
}

/** A tree that has grown, with its signed checkpoint. */
interface SignedTree {
  readonly grown: GrownTree;
  readonly at: Date;
  readonly note: string;
}

/** The state of one round of sealing. */
interface Round {
  /**
   * The faults of the trees that are damaged, or have a checkpoint that the object store does not
   * take, by the ids of the trees.
   */
  readonly damaged: Map<string, unknown>;
  /**
   * The faults of the trees whose transactions lost a race, or that wait for the object store, by
   * the ids of the trees. A later round seals these trees.
   */
  readonly late: Map<string, unknown>;
  /** False after the tree of the deployment did not take a checkpoint as a leaf. */
  hasLeaves: boolean;
  /** The fault of the object store, after which no further tree of the round reads it. */
  storeAway?: StoreAway;
}

/**
 * The error for a tree that cannot begin, because the object store does not say which checkpoint
 * the database may have lost.
 */
class StoreAway extends Error {}

/**
 * Reads the object store for a tree that begins.
 *
 * @throws StoreAway if the store cannot be read
 */
async function unlessStoreAway<Result>(round: Round, read: () => Promise<Result>): Promise<Result> {
  try {
    if (!round.storeAway) return await read();
  } catch (error) {
    round.storeAway = new StoreAway(reasonOf(error), { cause: error });
  }
  throw round.storeAway;
}

/**
 * Returns true if a fault concerns one tree: its rows are damaged, a transaction on it lost a race,
 * or it waits for the object store. Returns false if the database cannot be used, because that
 * concerns every tree.
 */
function isOfTree(error: unknown): boolean {
  if (error instanceof DamagedTree || isLate(error)) return true;
  return sqlStateOf(error) !== undefined && !isOutage(error);
}

/** Returns true if a fault passes, so that a later round seals the tree. */
function isLate(error: unknown): boolean {
  return error instanceof StoreAway || isLostRace(error);
}

/** Does some work. Returns the fault if it concerns one tree; undefined if the work was done. */
async function faultOf(work: () => Promise<void>): Promise<unknown> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!isOfTree(error)) throw error;
    return error;
  }
}

function noteFault({ damaged, late }: Round, tree: string, error: unknown): void {
  (isLate(error) ? late : damaged).set(tree, error);
}

/**
 * Does the work of one tree. A fault that concerns this tree is noted in the round and not thrown.
 */
async function unlessFaulty<Result>(
  round: Round,
  tree: string,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isOfTree(error)) throw error;
    noteFault(round, tree, error);
    return undefined;
  }
}

/** Seals the next events of a tree, at most `LIMITS.batch`, and returns their number. */
async function sealBatch(tx: EntityManager, tree: string, lost?: string): Promise<number> {
  const epoch = await holdEpoch(tx);
  if (epoch === undefined) return 0;
  const open = await openTree(tx, tree, epoch, lost);
  const rows = await readEntries(tx, tree, open.last, LIMITS.batch);
  if (!rows) return 0;
  await append(tx, open, rows.entries, rows.last);
  return rows.entries.length / ENTRY_BYTES;
}

/**
 * Stores checkpoints, and appends those of organizations to the tree of the deployment.
 *
 * @param hasLeaves false if the tree of the deployment is left out, because it is damaged
 */
async function recordAll(
  tx: EntityManager,
  signed: readonly SignedTree[],
  hasLeaves: boolean,
): Promise<void> {
  const epoch = await holdEpoch(tx);
  const present = signed.filter(({ grown }) => grown.epoch === epoch);
  if (epoch === undefined || present.length === 0) return;
  // The lock of the tree of the deployment makes two processes store their checkpoints one after
  // the other.
  const deployment = hasLeaves ? await openTree(tx, DEPLOYMENT, epoch) : undefined;
  const entries: Buffer[] = [];
  for (const { grown, note, at } of present) {
    const isOfOrganization = grown.tree !== DEPLOYMENT;
    const lacksLeaf = isOfOrganization && !deployment;
    const isNew = await recordCheckpoint(tx, grown, { note, at, lacksLeaf });
    const isLeaf = isNew && isOfOrganization;
    if (isLeaf) entries.push(checkpointEntry(grown.tree, grown.range.size, note));
  }
  if (deployment && entries.length > 0) await append(tx, deployment, Buffer.concat(entries));
}

/**
 * Appends to the tree of the deployment the last checkpoint of each organization that it lacks, in
 * the present epoch and at most `LIMITS.batch`. As in {@link recordAll}, its row is locked first.
 */
async function addMissingLeaves(tx: EntityManager): Promise<void> {
  const epoch = await holdEpoch(tx);
  if (epoch === undefined) return;
  const deployment = await openTree(tx, DEPLOYMENT, epoch);
  const missing = await takeWithoutLeaf(tx, epoch, LIMITS.batch);
  const entries = missing.map(({ tree, size, note }) => checkpointEntry(tree, size, note));
  if (entries.length > 0) await append(tx, deployment, Buffer.concat(entries));
}
