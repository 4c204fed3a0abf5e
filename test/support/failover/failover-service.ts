import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateKey } from '@svc/openssh';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { runScript, type ChildScript } from '../child-script.js';
import { Client } from '../client.js';
import { freePort } from '../free-port.js';
import { providerEnvironment, TEST_CLIENT } from '../provider-environment.js';
import { idle, startReplicaFront, type FrontTarget, type ReplicaFront } from '../replica-front.js';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import { HealthCheck } from './health-check.js';
import type { FailoverReplica } from './replica-process.js';

interface Replica extends FrontTarget {
  readonly number: number;
  readonly process: ChildScript<object>;
  readonly logFile: string;
  /** The health checks of this replica; undefined if the proxy does none. */
  readonly health: HealthCheck | undefined;
  readonly down?: AbortSignal | undefined;
}

/** The options of the replicas. */
export interface ServiceOptions {
  /** Variables that are added to the usual ones of each replica, or replace them. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The number of replicas: 2 by default. */
  readonly replicas?: number;
  /**
   * True if the proxy asks each replica for its health, as a load balancer does, and sends requests
   * to a healthy one if there is any.
   */
  readonly isChecked?: boolean;
  /**
   * Returns environment variables for the process of a replica, by its number, such as
   * `LD_PRELOAD`.
   */
  readonly variablesOf?: (replica: number) => Readonly<Record<string, string>>;
}

/**
 * Replicas of the service, each in a process of its own, behind a proxy with one URL. They use the
 * same identity provider.
 */
export class FailoverService {
  readonly #vendor = new SoftwareKey();
  readonly #running: Replica[] = [];
  /** True while the proxy sends all requests to the oldest replica. */
  #isAlone = false;
  #started = 0;
  /** The texts for {@link troubles} about replicas that no longer run. */
  readonly #past: string[] = [];

  private constructor(
    readonly baseUrl: string,
    private readonly urlOf: (replica: number) => string,
    private readonly options: ServiceOptions,
    private readonly environment: Readonly<Record<string, string>>,
    private readonly folder: string,
    private readonly idp: DemoIdentityProvider,
    private readonly front: ReplicaFront,
  ) {}

  /**
   * Starts replicas, one after the other.
   *
   * @param urlOf returns the SVC_DATABASE_URL of a replica by its number, from 1 on
   */
  static async start(
    urlOf: (replica: number) => string,
    options: ServiceOptions = {},
  ): Promise<FailoverService> {
    const folder = await makeTemporaryDirectory();
    const port = await freePort();
    const baseUrl = `http://localhost:${port}`;
    const idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${baseUrl}/oauth/callback`,
    });
    const shared = {
      ...providerEnvironment(idp.issuer),
      SVC_BASE_URL: baseUrl,
      SVC_DB_MAX_CONNECTIONS: '10',
      SVC_SSH_CA_KEY: writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca'),
      SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
      SVC_LOG_FORMAT: 'json',
      RUST_LOG: 'info',
      ...options.environment,
    };
    const front: ReplicaFront = await startReplicaFront(port, () => service.#serving());
    const service = new FailoverService(baseUrl, urlOf, options, shared, folder, idp, front);
    const { replicas = 2 } = options;
    for (let count = 0; count < replicas; count += 1) await service.startReplica();
    return service;
  }

  /** The ports of the running replicas, the oldest first. */
  get ports(): readonly number[] {
    return this.#running.map(({ port }) => port);
  }

  client(): Client {
    return new Client(this.baseUrl);
  }

  /** Creates a security key whose attestation the replicas trust. */
  newKey(): SoftwareKey {
    return new SoftwareKey({ vendor: this.#vendor });
  }

  /**
   * Starts one more replica, and returns when it listens.
   *
   * @param number the number of a replica that has ended and that this one replaces; by default the
   *   next number
   */
  async startReplica(number = this.#started + 1): Promise<void> {
    this.#started = Math.max(number, this.#started);
    const port = await freePort();
    const logFile = join(this.folder, `replica-${number}.log`);
    const environment = {
      ...this.environment,
      SVC_DATABASE_URL: this.urlOf(number),
      SVC_LISTEN_ADDR: `[::]:${port}`,
      SVC_DATA_DIR: join(this.folder, `data-${number}`),
    };
    const attestationRoot = this.#vendor.rootPem;
    const argument: FailoverReplica = { environment, attestationRoot, logFile };
    const process = runScript<object>('failover/replica-process.ts', argument, {
      variables: this.options.variablesOf?.(number) ?? {},
    });
    await process.answer;
    const health = this.options.isChecked === true ? new HealthCheck(port) : undefined;
    this.#running.push({
      number,
      port,
      process,
      logFile,
      inFlight: 0,
      health,
      get down() {
        return health?.down;
      },
    });
  }

  /**
   * Makes the proxy send each request to the oldest replica (true), or to all replicas in turn
   * (false).
   */
  serveByOldest(isAlone: boolean): void {
    this.#isAlone = isAlone;
  }

  /**
   * Replaces the oldest replica as a rolling update does. First a new replica starts. Then the old
   * one gets no more requests, finishes the open ones, and stops.
   */
  async replaceReplica(): Promise<void> {
    await this.startReplica();
    const replica = this.#retire();
    await idle(replica);
    await replica.process.finish();
  }

  /** Kills the oldest replica with SIGKILL, and returns its number. */
  async killReplica(): Promise<number> {
    const replica = this.#retire();
    await replica.process.kill();
    return replica.number;
  }

  /**
   * Stops the process of the oldest replica (SIGSTOP), or continues it (SIGCONT). The process
   * cannot notice a stop.
   */
  freezeReplica(isFrozen: boolean): void {
    const [replica] = this.#running;
    if (!replica) throw new Error('no replica is running');
    process.kill(replica.process.pid, isFrozen ? 'SIGSTOP' : 'SIGCONT');
  }

  /** The number of the oldest replica, or 0 if none runs. */
  get oldest(): number {
    return this.#running[0]?.number ?? 0;
  }

  /** Returns true if every running replica answers that it is ready. */
  async isReady(): Promise<boolean> {
    const ready = await Promise.all(
      this.#running.map(({ port }) =>
        fetch(`http://localhost:${port}/health/ready`, { signal: AbortSignal.timeout(2000) }).then(
          ({ ok }) => ok,
          () => false,
        ),
      ),
    );
    return ready.every(Boolean);
  }

  /**
   * Returns texts that explain requests without a response. They say when the proxy took a replica
   * for dead. They also have the last log lines of each replica that has ended by itself.
   */
  troubles(): readonly string[] {
    return this.#past.concat(this.#running.flatMap(troublesOf));
  }

  /** Removes the oldest replica from those that get requests, and returns it. */
  #retire(): Replica {
    const replica = this.#running.shift();
    if (!replica) throw new Error('no replica is running');
    replica.health?.stop();
    this.#past.push(...troublesOf(replica));
    return replica;
  }

  /** Returns the lines of the logs of all running replicas. Each line is a JSON object. */
  log(): string[] {
    return this.#running.flatMap(({ logFile }) => readFileSync(logFile, 'utf8').split('\n'));
  }

  /** Returns the replicas that are ready, or else those that are alive, or else all. */
  #serving(): readonly Replica[] {
    const running = this.#isAlone ? this.#running.slice(0, 1) : this.#running;
    const ready = running.filter(({ health }) => health?.isHealthy !== false);
    if (ready.length > 0) return ready;
    const alive = running.filter(({ down }) => down?.aborted !== true);
    return alive.length > 0 ? alive : running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.front.close();
    for (const { health } of this.#running) health?.stop();
    await Promise.all(this.#running.map(({ process }) => process.finish()));
    await this.idp.close();
    await removeDirectory(this.folder);
  }
}

/**
 * The number of log lines that {@link troublesOf} returns of a replica that has ended by itself.
 */
const LAST_LINES = 10;

function troublesOf({ number, process, logFile, health }: Replica): string[] {
  const deaths = (health?.deaths ?? []).map((text) => `replica ${number}: ${text}`);
  const end = process.end();
  if (end === undefined) return deaths;
  const lines = readFileSync(logFile, 'utf8').trim().split('\n').slice(-LAST_LINES);
  return [...deaths, `replica ${number} has ended by itself (${end})\n${lines.join('\n')}`];
}
