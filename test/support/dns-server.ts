import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { decode, encode, streamEncode, AUTHORITATIVE_ANSWER, TRUNCATED_RESPONSE } from 'dns-packet';
import type { Answer, DecodedPacket, Packet } from 'dns-packet';

/**
 * The response to a DNS question. It has the texts of TXT records (an array is one record of
 * several strings), an alias, an error code, or nothing.
 */
export interface DnsReply {
  readonly texts?: readonly (string | readonly string[])[];
  /** The canonical name, if the requested name is an alias of it (CNAME record). */
  readonly alias?: string;
  readonly rcode?: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED';
  /** True for a server that does not respond. */
  readonly silent?: boolean;
  /** A function that runs before the response is sent. */
  readonly before?: () => Promise<unknown>;
}

const RCODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const;

/** The longest response over UDP without EDNS (RFC 1035 §4.2.1). */
const MOST_OVER_UDP = 512;

/**
 * A DNS server on loopback. It answers over UDP, and responses that are too long for UDP over TCP.
 */
export class DnsServer {
  /**
   * The responses by name, in lower case; `*.example.com` is a wildcard. A name that is not in the
   * map does not exist (NXDOMAIN).
   */
  readonly replies = new Map<string, DnsReply>();
  /** The names that were asked for over UDP, in the order of arrival. */
  readonly questions: string[] = [];
  /** The number of questions over TCP. */
  overTcp = 0;
  /** The largest number of questions that waited for their response at the same time. */
  mostAtOnce = 0;
  #atOnce = 0;

  private constructor(
    private readonly udp: Socket,
    private readonly tcp: Server,
    readonly port: number,
  ) {
    udp.on('message', (bytes, { port: from, address }) => {
      const query = decode(bytes);
      this.questions.push(nameOf(query));
      void this.#overUdp(query, (message) => udp.send(message, from, address));
    });
    tcp.on('connection', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', (bytes) => {
        this.overTcp += 1;
        void this.#overTcp(decode(bytes.subarray(2)), (message) => socket.end(message));
      });
    });
  }

  async #overUdp(query: DecodedPacket, send: (message: Buffer) => void): Promise<void> {
    const reply = await this.#answer(query);
    if (!reply) return;
    const whole = encode(reply);
    const cut = { ...reply, answers: [], flags: (reply.flags ?? 0) | TRUNCATED_RESPONSE };
    send(whole.length > MOST_OVER_UDP ? encode(cut) : whole);
  }

  async #overTcp(query: DecodedPacket, send: (message: Buffer) => void): Promise<void> {
    const reply = await this.#answer(query);
    if (reply) send(streamEncode(reply));
  }

  static async start(): Promise<DnsServer> {
    const tcp = createServer();
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
    const address = tcp.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const udp = createSocket('udp4');
    await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve));
    return new DnsServer(udp, tcp, port);
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.udp.close(() => resolve()));
    await new Promise<void>((resolve) => this.tcp.close(() => resolve()));
  }

  async #answer(query: DecodedPacket): Promise<Packet | undefined> {
    this.#atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce);
    const name = nameOf(query);
    const reply = this.#replyTo(name);
    // Waits for one turn of the event loop, so that questions sent at the same time are counted
    // before this one is answered.
    await new Promise((resolve) => setImmediate(resolve));
    await reply.before?.();
    this.#atOnce -= 1;
    if (reply.silent) return undefined;
    return {
      type: 'response',
      id: query.id ?? 0,
      flags: AUTHORITATIVE_ANSWER | (reply.rcode ? RCODES[reply.rcode] : 0),
      questions: query.questions ?? [],
      answers: this.#records(name, reply),
    };
  }

  #records(name: string, { alias, texts = [] }: DnsReply): Answer[] {
    const records: Answer[] = texts.map((text) => ({
      type: 'TXT',
      name,
      ttl: 0,
      data: typeof text === 'string' ? text : [...text],
    }));
    if (alias === undefined) return records;
    return [
      { type: 'CNAME', name, ttl: 0, data: alias },
      ...this.#records(alias, this.#replyTo(alias)),
    ];
  }

  #replyTo(name: string): DnsReply {
    const wildcard = `*.${name.slice(name.indexOf('.') + 1)}`;
    return this.replies.get(name) ?? this.replies.get(wildcard) ?? { rcode: 'NXDOMAIN' };
  }
}

function nameOf({ questions }: DecodedPacket): string {
  return (questions?.[0]?.name ?? '').toLowerCase();
}
