import { constants } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { ListenOptions } from 'node:net';
import type { TlsOptions } from 'node:tls';
import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { stopBackgroundWork } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { edgeServer, type EdgeServerOptions } from '#platform/http/server/edge-server.js';
import type { EdgeTimeouts } from '#platform/http/edge/edge-timeouts.js';
import { CannotListen, listen, requireFree, SHARED_PORT } from '#platform/http/server/listen.js';
import { isLoopbackHost } from '#platform/text/loopback.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { stopServers } from '#platform/http/server/stop-servers.js';
import { readTlsMaterial, type TlsMaterial, type TlsSource } from '#platform/tls/tls-material.js';
import type { ParseErrorResponder } from '#platform/http/server/parse-error-responder.js';
import { startUpLine, type StartUpFacts } from './start-up-line.js';

/**
 * The ports, hosts and limits of the listeners that production, the demo or a test sets in its
 * code, in addition to the configuration.
 */
export interface ListenerPlan {
  /** The ports if TLS is configured. In production they are 443 and 80. */
  readonly ports: { readonly https: number; readonly http: number };
  /**
   * The hosts to listen on if TLS is not configured, instead of the host of SVC_LISTEN_ADDR. If
   * this machine lacks the IP address of a host, the start goes on without that host, unless it is
   * the first in the list. In production the list is empty.
   */
  readonly hosts: readonly string[];
  /** The time-outs of clients. In production they are EDGE_TIMEOUTS. */
  readonly timeouts: EdgeTimeouts;
  /** The facts by which this worker shares the ports with others; undefined without workers. */
  readonly shared?: SharedPorts | undefined;
}

/** The facts by which a worker shares its ports with the other workers. */
interface SharedPorts {
  /**
   * True if no other worker of this service has opened the ports yet. The worker then first checks
   * that no other service listens on them.
   */
  readonly isFirst: boolean;
}

/** The injection token of the {@link ListenerPlan}. */
export const LISTENER_PLAN = Symbol('ListenerPlan');

/**
 * The handlers of the listeners. A handler is called an edge, because it gets each request first.
 * If TLS is used, the plain port has an edge of its own, which redirects to https.
 */
export interface Edges {
  readonly application: RequestListener;
  readonly redirect: RequestListener;
  /** Answers bytes that Node cannot parse as a request, on all listeners. */
  readonly parseErrorResponder: ParseErrorResponder;
}

/**
 * The TLS versions that RFC 9325 §3.1.1 recommends. For TLS 1.2, only the cipher suites of RFC 9325
 * §4.2 are offered, as the FAPI 2.0 Security Profile demands (§5.2.2).
 */
const TLS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
  ].join(':'),
} as const;

/**
 * Milliseconds after the signal to stop. At `CUT_OFF_MS` the requests in flight are cut off, and at
 * `EXIT_MS` the process ends. Between the two, the background work ends and the pool of the
 * database closes.
 */
const CUT_OFF_MS = 24_000;
const EXIT_MS = 29_000;

/**
 * The milliseconds after the signal for which the stop waits for the background work, such as a
 * request to GitHub, which takes 10 seconds at most. If the requests in flight took longer, the
 * stop still waits for the shorter time.
 */
const BACKGROUND_MS = 14_000;
const SHORT_BACKGROUND_MS = 2_000;

/**
 * The HTTP servers of this process. The servers open when the application is ready, and close
 * before the services that handle their requests are stopped.
 */
@Injectable()
export class Listeners implements BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #servers: Server[] = [];
  readonly #tlsServers: { readonly server: TlsServer; readonly options: TlsOptions }[] = [];
  readonly #logger = new Logger('listeners');
  /**
   * True once all ports are bound. A SIGHUP before that is only noted, and is handled afterwards.
   */
  #isOpen = false;
  #wasHungUp = false;
  /** The certificate and key that are in use; undefined without TLS. */
  #tls: TlsSource | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'relyingParty'> & StartUpFacts,
    @Inject(LISTENER_PLAN) private readonly plan: ListenerPlan,
    private readonly inFlight: RequestsInFlight,
    private readonly modules: ModulesContainer,
    private readonly clock: Clock,
  ) {
    this.#tls = config.http.tls;
  }

  /**
   * Opens the listeners, which pass requests to the edges.
   * @throws Error with one line if a required port cannot be bound
   */
  async open(edges: Edges): Promise<void> {
    process.on('SIGHUP', this.#reload);
    try {
      if (this.#tls) await this.#openWithTls(edges, this.#tls);
      else await this.#openPlain(edges);
    } catch (error) {
      process.off('SIGHUP', this.#reload);
      for (const server of this.#servers) server.close();
      throw error;
    }
    this.#isOpen = true;
    if (this.#wasHungUp) this.#reload();
  }

  /**
   * Serves new connections with another certificate and key; open connections keep theirs.
   *
   * @throws Error with one line if the new certificate and key cannot be used; the listeners then
   *   keep the old ones
   */
  replaceCertificate(source: TlsSource): void {
    const material = readTlsMaterial(source);
    for (const { server, options } of this.#tlsServers) {
      server.setSecureContext(withMaterial(options, material));
    }
    this.#tls = source;
    this.#tellCertificate(material);
  }

  /**
   * Stops the listeners, and then the background work. Nest calls this hook of the application's
   * own module before those of the other modules.
   */
  async beforeApplicationShutdown(signal?: string): Promise<void> {
    const begun = this.clock.monotonic();
    if (signal !== undefined) setTimeout(() => this.#giveUp(), EXIT_MS).unref();
    const drain = signal === 'SIGTERM'; // after SIGINT a user at a terminal waits for the end
    const lost = await stopServers(this.#servers, this.inFlight, { drain, limit: CUT_OFF_MS });
    if (lost > 0) this.#logger.warn(`${lost} requests took too long to end, and were cut off`);
    const left = begun + BACKGROUND_MS - this.clock.monotonic();
    const limit = Math.max(left, SHORT_BACKGROUND_MS);
    await stopBackgroundWork(this.modules, limit, this.#logger);
  }

  onApplicationShutdown(): void {
    process.off('SIGHUP', this.#reload);
  }

  async #openPlain(edges: Edges): Promise<void> {
    const { host: configured, port } = this.config.http.listen;
    const [host = configured, ...others] = this.plan.hosts;
    const options = this.#serverOptions(edges);
    const server = () => edgeServer(edges.application, options);
    await this.#listen(server(), { host, port }, 'SVC_LISTEN_ADDR:');
    for (const other of others) {
      try {
        await this.#listen(server(), { host: other, port }, 'SVC_LISTEN_ADDR:');
      } catch (error) {
        if (!isMissingHere(error)) throw error;
      }
    }
    this.#tellServed(port);
  }

  async #openWithTls(edges: Edges, source: TlsSource): Promise<void> {
    const { mtls } = this.config.http;
    const { https, http } = this.plan.ports;
    const material = readTlsMaterial(source);
    const shared = this.#serverOptions(edges);
    const open = async (options: TlsOptions, port: number, what: string) => {
      const server = edgeServer(edges.application, shared, withMaterial(options, material));
      this.#tlsServers.push({ server, options });
      await this.#listen(server, { port }, what);
    };
    await open(TLS, https, `SVC_TLS_CERT: port ${https}, which TLS needs,`);
    await open(MUTUAL_TLS, mtls.port, 'SVC_MTLS_PORT:');
    try {
      await this.#listen(edgeServer(edges.redirect, shared), { port: http }, `port ${http}`);
    } catch (error) {
      this.#logger.warn(`${reasonOf(error)}: nobody is redirected from http to https`);
    }
    this.#tellCertificate(material);
    if (isLoopbackHost(this.config.relyingParty.id)) {
      new Logger('security').warn('SVC_RP_ID: is a loopback host although TLS is configured');
    }
    this.#logger.log(`client certificates are asked for on port ${mtls.port}`);
    this.#tellServed(https);
  }

  #serverOptions({ parseErrorResponder }: Edges): EdgeServerOptions {
    return { timeouts: this.plan.timeouts, parseErrorResponder };
  }

  async #listen(server: Server, where: ListenOptions, what: string): Promise<void> {
    const { shared } = this.plan;
    if (shared?.isFirst === true) await requireFree(where, what);
    await listen(server, shared ? { ...where, ...SHARED_PORT } : where, what);
    server.on('error', (error) => this.#logger.error({ err: error }, 'a connection was lost'));
    this.#servers.push(server);
  }

  /**
   * Reads certificate and key again on SIGHUP, for new connections. Open connections keep theirs.
   */
  readonly #reload = (): void => {
    if (!this.#isOpen) {
      this.#wasHungUp = true;
      return;
    }
    if (!this.#tls) {
      this.#logger.log('SIGHUP: without TLS there is nothing to read again');
      return;
    }
    try {
      this.replaceCertificate(this.#tls);
    } catch (error) {
      this.#logger.error(`SIGHUP: the certificate stays the one it was: ${reasonOf(error)}`);
    }
  };

  #tellServed(port: number): void {
    this.#logger.log(startUpLine(this.config, port));
  }

  #tellCertificate({ leaf }: TlsMaterial): void {
    const until = leaf.validToDate;
    const line = `the certificate is ${leaf.fingerprint256}, valid until ${until.toISOString()}`;
    if (until.getTime() > this.clock.milliseconds()) this.#logger.log(line);
    else this.#logger.warn(`${line}: it has expired`);
  }

  #giveUp(): void {
    this.#logger.error('the stop took too long, and is cut short');
    process.exit(1);
  }
}

/**
 * Makes a listener request a client certificate. It accepts any certificate or none, because the
 * route decides about the certificate. With the empty list of authorities, the request contains no
 * names of authorities; without a list Node would trust the public authorities. No TLS session is
 * resumed, because a resumed session has only the client's own certificate, without its
 * intermediates.
 */
const MUTUAL_TLS: TlsOptions = {
  ...TLS,
  requestCert: true,
  rejectUnauthorized: false,
  ca: [],
  secureOptions: constants.SSL_OP_NO_TICKET,
};

function withMaterial(options: TlsOptions, { cert, key }: TlsMaterial): TlsOptions {
  return { ...options, cert, key };
}

/**
 * Returns true if a listener failed because this machine does not have the IP address to listen on,
 * such as ::1 without IPv6.
 */
function isMissingHere(error: unknown): boolean {
  return error instanceof CannotListen && ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(error.code);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
