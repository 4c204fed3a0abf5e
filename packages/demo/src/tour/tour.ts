import { join } from 'node:path';
import { DemoApplication } from '../application/application.js';
import { TourOrganization, type OrganizationParts, type TourEvent } from './organization.js';
import { TourSshd } from './tour-sshd.js';
import { writeVisitorFiles, type VisitorCommands } from './visitor-files.js';
import { Workday, type WorkdayReport } from './workday.js';

/** The objects from which the tour is made. */
export interface TourParts extends Omit<OrganizationParts, 'provider'> {
  /**
   * The slug of the demo's identity provider; undefined if the environment names other providers.
   */
  readonly provider: string | undefined;
  readonly dataDir: string;
  /** The path of the `svc` command, a file that Node runs. */
  readonly command: string;
  readonly metricsToken: string | undefined;
  /**
   * The port that the demo application gets if it is free: that of the last run, or a default in
   * the first run.
   */
  readonly applicationPort: number;
}

/** The prepared tour, as its pages show it. */
export interface ReadyTour {
  readonly provider: string;
  readonly applicationUrl: string;
  readonly commands: VisitorCommands;
  /**
   * The programs of OpenSSH that this machine lacks. If the list is empty, the demo's sshd runs.
   */
  readonly missingPrograms: readonly string[];
  readonly workday: Workday;
  readonly organization: TourOrganization;
}

/** The data of the page on which a person leaves the company. */
export interface LiveReport {
  readonly workday: WorkdayReport;
  readonly events: readonly TourEvent[];
}

/** The largest number of events that a page shows. */
const MOST_EVENTS = 12;

const PREPARING = 'The tour is being prepared. Open this page again in a few seconds.';
const OTHER_PROVIDER =
  'The tour needs the identity provider of the demo, and SVC_IDPS names others. Start the demo without SVC_IDPS.';

/**
 * The tour of the demo. It prepares people, and starts an application and sshd, which stop with the
 * demo.
 */
export class Tour {
  #ready: ReadyTour | undefined;
  #problem = PREPARING;
  readonly #endings: (() => Promise<void>)[] = [];

  constructor(private readonly parts: TourParts) {}

  /** The prepared tour, or a text that says why it is not ready. */
  get state(): ReadyTour | string {
    return this.#ready ?? this.#problem;
  }

  /**
   * Prepares the people, the application, sshd and the files for the visitor's commands.
   *
   * @returns the reason why this failed; undefined if it succeeded, and if the environment names
   *   other providers, with which there is no tour
   */
  async prepare(): Promise<string | undefined> {
    const { provider } = this.parts;
    if (provider === undefined) {
      this.#problem = OTHER_PROVIDER;
      return undefined;
    }
    try {
      this.#ready = await this.#prepare(provider);
      return undefined;
    } catch (error) {
      await this.close();
      this.#problem = `The tour could not be prepared: ${error instanceof Error ? error.message : String(error)}.`;
      return this.#problem;
    }
  }

  /**
   * Reports the access of the person who leaves the company, and the newest events of the audit
   * log.
   */
  async live({ workday, organization }: ReadyTour): Promise<LiveReport> {
    const [report, events] = await Promise.all([
      workday.report(),
      organization.newestEvents(MOST_EVENTS),
    ]);
    return { workday: report, events };
  }

  /** Stops everything that the tour started. */
  async close(): Promise<void> {
    this.#ready = undefined;
    for (const end of this.#endings.splice(0).toReversed()) await end();
  }

  async #prepare(provider: string): Promise<ReadyTour> {
    const { baseUrl, dataDir, command, metricsToken } = this.parts;
    const organization = new TourOrganization({ ...this.parts, provider });
    await organization.prepare();
    const application = await this.#startApplication(organization);
    const started = await TourSshd.start(join(dataDir, 'sshd'), baseUrl);
    const sshd = 'missing' in started ? undefined : started;
    if (sshd) this.#endings.push(() => sshd.stop());
    const commands = await writeVisitorFiles(join(dataDir, 'tour'), {
      baseUrl,
      command,
      metricsToken,
      sshd: sshd && { port: sshd.port, user: sshd.user, hostKey: await sshd.hostKey() },
    });
    const applicationUrl = application.url;
    const workday = new Workday({ baseUrl, organization, applicationUrl, sshd });
    await workday.begin();
    const missingPrograms = 'missing' in started ? started.missing : [];
    return { provider, applicationUrl, commands, missingPrograms, workday, organization };
  }

  async #startApplication(organization: TourOrganization): Promise<DemoApplication> {
    const { baseUrl, applicationPort } = this.parts;
    const application = await DemoApplication.start(applicationPort).catch(() =>
      DemoApplication.start(0),
    );
    this.#endings.push(() => application.close());
    const port = Number(new URL(application.url).port);
    const { registration } = application;
    const { clientId, clientSecret } = await organization.application(port, registration);
    await application.connect({ issuer: baseUrl, clientId, clientSecret });
    return application;
  }
}
