import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { newAddress, type Answer, type Client } from '../client.js';
import { CALLBACK } from '../oauth-flow.js';
import { ReplicatedPostgres, type ClusterOptions } from '../replicated-postgres.js';
import { CertificateProof } from './certificate-proof.js';
import { FailoverService, type ServiceOptions } from './failover-service.js';
import { IssuanceLoad } from './issuance-load.js';
import { Ledger } from './ledger.js';
import { decided, Person, succeeded, type SignInApplication } from './person.js';

const DOMAIN = 'failover.example';
const ADMIN = `admin@${DOMAIN}`;

/** The largest number of people. `sshd` gets the principals of so many people when it starts. */
const MOST_PEOPLE = 500;

const addressOf = (number: number) => `person-${number}@${DOMAIN}`;

/** The options of a {@link FailoverWorld}. */
export interface WorldOptions extends ClusterOptions, ServiceOptions {
  /** The number of people who request certificates all the time. */
  readonly people?: number;
  /** The pause in milliseconds between two requests of one person. */
  readonly gap?: number;
  /**
   * True if the replicas know the addresses of all databases. Otherwise they know only the address
   * of the proxy.
   */
  readonly isMultiHost?: boolean;
}

/** A PostgreSQL server whose rows the checks of a failover test read. */
export interface QueriedServer {
  query<Row extends object>(text: string, parameters?: unknown[]): Promise<Row[]>;
}

/** The functions of a replicated PostgreSQL that every round of a failover test uses. */
export interface WorldCluster {
  /** The server that accepts writes. During a failover, it is the last server that did. */
  readonly primary: QueriedServer;
  /** The running servers that replicate from the primary. */
  readonly standbys: readonly QueriedServer[];
  /** Holds back what the primary sends to its standbys from now on. */
  holdReplication(): void;
  /** Waits until the standbys have everything that the primary has written. */
  caughtUp(): Promise<void>;
}

/**
 * All parts of a failover test. They are a replicated PostgreSQL, replicas of the service, an
 * organization with SCIM, an application, people who request SSH certificates, and a real `sshd`.
 */
export class FailoverWorld<Cluster extends WorldCluster = WorldCluster> {
  readonly ledger = new Ledger();
  readonly #parts = new AsyncDisposableStack();
  #people = 0;
  #load: IssuanceLoad | undefined;
  #admin: { readonly browser: Client; readonly key: SoftwareKey } | undefined;
  #scimToken = '';
  #application: SignInApplication = { clientId: '', clientSecret: '' };

  private constructor(
    readonly cluster: Cluster,
    readonly service: FailoverService,
    readonly proof: CertificateProof,
  ) {}

  /**
   * Starts all parts, and lets people request certificates. The caller must close the returned
   * object.
   */
  static async start(options: WorldOptions = {}): Promise<FailoverWorld<ReplicatedPostgres>> {
    const cluster = await ReplicatedPostgres.start(options);
    const url = options.isMultiHost ? cluster.hosts : cluster.url;
    return FailoverWorld.on(cluster, () => url, options);
  }

  /**
   * Starts all parts on a running cluster. The returned object closes the cluster at its end. The
   * cluster is also closed if another part fails to start.
   *
   * @param urlOf returns the SVC_DATABASE_URL of a replica by its number, from 1 on
   */
  static async on<C extends WorldCluster & AsyncDisposable>(
    running: C,
    urlOf: (replica: number) => string,
    options: WorldOptions = {},
  ): Promise<FailoverWorld<C>> {
    await using parts = new AsyncDisposableStack();
    const cluster = parts.use(running);
    const service = parts.use(await FailoverService.start(urlOf, options));
    const principals = Array.from({ length: MOST_PEOPLE }, (_, number) => addressOf(number));
    const proof = parts.use(await CertificateProof.start(service, principals));
    const world = new FailoverWorld(cluster, service, proof);
    await world.#found();
    await world.#startLoad(options);
    world.#parts.use(parts.move());
    return world;
  }

  /** The load of the people who request certificates all the time. */
  get load(): IssuanceLoad {
    if (!this.#load) throw new Error('the load was not started');
    return this.#load;
  }

  /** Creates a user by SCIM, signs the user in, and enrolls a key. */
  async newPerson(): Promise<Person> {
    const email = addressOf(this.#people);
    this.#people += 1;
    if (this.#people > MOST_PEOPLE) throw new Error('there are no more addresses');
    const made = await this.scim('POST', '/Users', { userName: email });
    const { service, proof, ledger } = this;
    const around = { service, proof, ledger, application: this.#application };
    const person = await Person.enrolled(email, around);
    person.scimId = succeeded(made, 'the new user').json.id as string;
    return person;
  }

  /** Sends a request to `/scim/v2` as the organization's identity provider. */
  scim(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.service.client().send(method, `/scim/v2${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: { authorization: `Bearer ${this.#scimToken}`, origin: '' },
    });
  }

  /**
   * Sends a request as the admin. If the session or the touch is missing, the admin first logs in.
   */
  async asAdmin(method: string, path: string, body?: unknown): Promise<Answer> {
    const { browser, key } = this.#admin ?? (await this.#newAdmin());
    const send = () =>
      browser.send(method, path, {
        ...(body === undefined ? {} : { body }),
        address: newAddress(),
      });
    const answer = await decided(send);
    if (answer.status !== 401 && answer.status !== 403) return answer;
    await browser.signIn(ADMIN);
    succeeded(await browser.logIn(key, { address: newAddress() }), 'the login of the admin');
    return send();
  }

  async close(): Promise<void> {
    await this.#load?.pause();
    await this.#parts.disposeAsync();
  }

  /**
   * Creates the organization, its application, and its first SCIM token. From this token on, only
   * SCIM adds members to the organization.
   */
  async #found(): Promise<void> {
    const application = {
      name: 'Orders',
      type: 'web',
      redirect_uris: [CALLBACK],
    };
    const registered = await this.asAdmin('POST', '/api/v1/applications', application);
    const { client_id: clientId, client_secret: clientSecret } = succeeded(
      registered,
      'the application',
    ).json as { client_id: string; client_secret: string };
    this.#application = { clientId, clientSecret };
    const token = await this.asAdmin('POST', '/api/v1/org/scim-tokens', { description: 'a test' });
    this.#scimToken = succeeded(token, 'the SCIM token').json.token as string;
  }

  async #newAdmin() {
    const admin = { browser: this.service.client(), key: this.service.newKey() };
    await admin.browser.signIn(ADMIN);
    succeeded(await admin.browser.enroll(admin.key), 'the enrollment of the admin');
    this.#admin = admin;
    return admin;
  }

  async #startLoad({ people = 2, gap = 0 }: WorldOptions): Promise<void> {
    const all: Person[] = [];
    for (let count = 0; count < people; count += 1) all.push(await this.newPerson());
    this.#load = new IssuanceLoad(all, gap);
    this.#load.resume();
  }
}
