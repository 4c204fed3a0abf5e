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
import { startReplicaFront, type FrontTarget, type ReplicaFront } from '../replica-front.js';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import type { FailoverReplica } from './replica-process.js';

interface Replica extends FrontTarget {
  readonly process: ChildScript<object>;
  readonly logFile: string;
}

/**
 * Replicas of the built service, each in a process of its own, behind one address, with an identity
 * provider.
 */
export class FailoverService {
  readonly #vendor = new SoftwareKey();
  readonly #running: Replica[] = [];
  /** True while the oldest replica alone serves. */
  #isAlone = false;
  #started = 0;

  private constructor(
    readonly baseUrl: string,
    private readonly environment: Readonly<Record<string, string>>,
    private readonly folder: string,
    private readonly idp: DemoIdentityProvider,
    private readonly front: ReplicaFront,
  ) {}

  /**
   * Starts two replicas, one after the other.
   *
   * @param databaseUrl the SVC_DATABASE_URL of each replica
   * @param environment variables that are added to the usual ones of each replica, or replace them
   */
  static async start(
    databaseUrl: string,
    environment: Readonly<Record<string, string>> = {},
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
      SVC_DATABASE_URL: databaseUrl,
      SVC_DB_MAX_CONNECTIONS: '10',
      SVC_SSH_CA_KEY: writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca'),
      SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
      SVC_LOG_FORMAT: 'json',
      RUST_LOG: 'info',
      ...environment,
    };
    const front: ReplicaFront = await startReplicaFront(port, () => service.#serving());
    const service = new FailoverService(baseUrl, shared, folder, idp, front);
    await service.startReplica();
    await service.startReplica();
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

  /** Starts one more replica, and returns when it listens. */
  async startReplica(): Promise<void> {
    this.#started += 1;
    const port = await freePort();
    const logFile = join(this.folder, `replica-${this.#started}.log`);
    const environment = {
      ...this.environment,
      SVC_LISTEN_ADDR: `[::]:${port}`,
      SVC_DATA_DIR: join(this.folder, `data-${this.#started}`),
    };
    const attestationRoot = this.#vendor.rootPem;
    const argument: FailoverReplica = { environment, attestationRoot, logFile };
    const process = runScript<object>('failover/replica-process.ts', argument);
    await process.answer;
    this.#running.push({ port, process, logFile, inFlight: 0 });
  }

  /** Sends each request to the oldest replica only, or to all replicas one after the other. */
  serveByOldest(isAlone: boolean): void {
    this.#isAlone = isAlone;
  }

  /** Kills the oldest replica with SIGKILL, and returns its port. */
  async killReplica(): Promise<number> {
    const replica = this.#running.shift();
    if (!replica) throw new Error('no replica is running');
    await replica.process.kill();
    return replica.port;
  }

  /** Returns true if every replica is ready. */
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

  /** Returns the log of the running replicas, one JSON object a line. */
  log(): string[] {
    return this.#running.flatMap(({ logFile }) => readFileSync(logFile, 'utf8').split('\n'));
  }

  #serving(): readonly Replica[] {
    return this.#isAlone ? this.#running.slice(0, 1) : this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.front.close();
    await Promise.all(this.#running.map(({ process }) => process.finish()));
    await this.idp.close();
    await removeDirectory(this.folder);
  }
}
