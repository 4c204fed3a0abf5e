import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { shiftedClock, type ShiftedClock } from '../failover/clock-shift.js';
import { FailoverWorld } from '../failover/failover-world.js';
import { succeeded } from '../failover/person.js';
import { TcpRelay } from '../failover/tcp-relay.js';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import { brokenSince, type Broken, type Checked } from './acknowledged-checks.js';
import { MixedLoad } from './mixed-load.js';
import { PatroniCluster } from './patroni-cluster.js';

/** The number of people who request certificates during the faults. */
const PEOPLE = 2;

/** The size of each node's own file system in megabytes. */
const DISK = 500;

/** The options of the scene. */
export interface SceneOptions {
  /** True if each node has a small file system of its own, which needs the right to mount. */
  readonly hasSmallDisks?: boolean;
}

/**
 * All parts of a fault test: a Patroni cluster in synchronous mode, two replicas of the service,
 * and the load. Each replica connects to HAProxy through a relay of its own.
 */
export class FaultScene {
  private constructor(
    readonly cluster: PatroniCluster,
    readonly world: FailoverWorld<PatroniCluster>,
    readonly load: MixedLoad,
    /**
     * The clocks of the nodes by their names, and as `replica` the clock of replicas with an odd
     * number.
     */
    readonly clocks: ReadonlyMap<string, ShiftedClock>,
    readonly hasSmallDisks: boolean,
    private readonly relays: readonly TcpRelay[],
    private readonly application: Checked['application'],
    private readonly parts: AsyncDisposableStack,
  ) {}

  /** Starts all parts and the load. The caller must close the returned object. */
  static async start({ hasSmallDisks = false }: SceneOptions = {}): Promise<FaultScene> {
    await using parts = new AsyncDisposableStack();
    const folder = await makeTemporaryDirectory();
    chmodSync(folder, 0o755);
    parts.defer(() => removeDirectory(folder));
    const clocks = new Map(
      ['a', 'b', 'c', 'replica'].map((name) => [name, shiftedClock(folder, 0, name)] as const),
    );
    const disks = new SmallDisks();
    const cluster = await PatroniCluster.start({
      isSynchronous: true,
      environment: (name) => clocks.get(name)?.variables ?? {},
      ...(hasSmallDisks
        ? { prepare: (path) => disks.mount(path), release: () => disks.unmount() }
        : {}),
    });
    const relays = [await TcpRelay.start(), await TcpRelay.start()];
    for (const relay of relays) relay.point(cluster.haproxy.port);
    const world = await FailoverWorld.on(
      cluster,
      (replica) => cluster.url(relayOf(relays, replica).port),
      {
        people: 0,
        isChecked: true,
        environment: { SVC_DATABASE_FAILOVER: 'synchronous' },
        // Replicas with an odd number get the clock that a test can shift. At most one of them runs
        // at a time.
        variablesOf: (replica) =>
          replica % 2 === 1 ? (clocks.get('replica')?.variables ?? {}) : {},
      },
    );
    parts.defer(async () => {
      await world.close();
      for (const relay of relays) await relay.close();
    });
    const { load, application } = await startLoad(world);
    parts.defer(() => load.stop());
    return new FaultScene(
      cluster,
      world,
      load,
      clocks,
      hasSmallDisks,
      relays,
      application,
      parts.move(),
    );
  }

  /** The relay between the oldest replica and HAProxy. */
  get relayOfOldest(): TcpRelay {
    return relayOf(this.relays, this.world.service.oldest);
  }

  /**
   * Compares the requests that were acknowledged since a time of `performance.now()` with the
   * database.
   */
  async brokenSince(since: number): Promise<Broken> {
    const leader = await this.cluster.leader();
    const { load, application } = this;
    return brokenSince({ load, application, leader, service: this.world.service }, since);
  }

  async close(): Promise<void> {
    await this.parts.disposeAsync();
  }
}

function relayOf(relays: readonly TcpRelay[], replica: number): TcpRelay {
  const relay = relays[(replica - 1) % relays.length];
  if (!relay) throw new Error('there is no relay');
  return relay;
}

/** Starts a {@link MixedLoad} with new people, a new application and a new SCIM token. */
export async function startLoad(world: FailoverWorld, people = PEOPLE) {
  const sessions: string[] = [];
  for (let count = 0; count < people; count += 1)
    sessions.push((await world.newPerson()).browser.cookie('svc_session') ?? '');
  const made = await world.asAdmin('POST', '/api/v1/applications', {
    name: 'Load',
    type: 'service',
    scopes: ['read'],
  });
  const { client_id: id, client_secret: secret } = succeeded(made, 'the application').json as {
    client_id: string;
    client_secret: string;
  };
  const token = await world.asAdmin('POST', '/api/v1/org/scim-tokens', { description: 'load' });
  const application = { id, secret };
  const load = new MixedLoad({
    baseUrl: world.service.baseUrl,
    sessions,
    publicKey: world.proof.publicKey,
    application,
    scimToken: succeeded(token, 'the SCIM token').json.token as string,
  });
  load.start();
  return { load, application };
}

/** Mounts small file systems in memory (tmpfs), so that a test can fill the disk of a node. */
class SmallDisks {
  readonly #mounted: string[] = [];

  constructor() {
    process.once('exit', () => this.unmount());
  }

  mount(folder: string): void {
    mkdirSync(folder);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}m,mode=755`, 'tmpfs', folder]);
    this.#mounted.push(folder);
  }

  unmount(): void {
    for (const folder of this.#mounted.splice(0)) execFileSync('umount', ['--lazy', folder]);
  }
}
