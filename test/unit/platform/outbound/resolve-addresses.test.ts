import { createSocket, type Socket } from 'node:dgram';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolveAddresses } from '../../../../src/platform/outbound/resolve-addresses.js';

const A = 1;
const AAAA = 28;
const REFUSED = 5;
const NO_SUCH_NAME = 3;

type Answer = readonly Buffer[] | number | 'silence';

/** The records that the name server of this file returns. */
const RECORDS: Readonly<Record<string, Readonly<Record<number, Answer>>>> = {
  'both.example': {
    [A]: [Buffer.of(203, 0, 114, 7), Buffer.of(10, 0, 0, 1)],
    [AAAA]: [Buffer.from('26064700000000000000000000001111', 'hex')],
  },
  'four.example': { [A]: [Buffer.of(203, 0, 114, 7)], [AAAA]: [] },
  'half.example': { [A]: [Buffer.of(203, 0, 114, 7)], [AAAA]: REFUSED },
  'nowhere.example': { [A]: NO_SUCH_NAME, [AAAA]: NO_SUCH_NAME },
  'silent.example': { [A]: 'silence', [AAAA]: 'silence' },
};

/** Returns the reply to one DNS query (RFC 1035 §4.1); undefined if the server does not reply. */
function replyTo(query: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = query.readUInt16BE(at + 1);
  const answer = RECORDS[labels.join('.')]?.[type] ?? REFUSED;
  if (answer === 'silence') return undefined;
  const addresses = typeof answer === 'number' ? [] : answer;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const record = Buffer.from('c00c000000010000003c0000', 'hex');
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(address.length, 10);
    return Buffer.concat([record, address]);
  });
  return Buffer.concat([header, query.subarray(12, at + 5), ...records]);
}

describe('the addresses of a name', () => {
  let server: Socket;
  let servers: string[];
  let queries = 0;
  beforeAll(async () => {
    server = createSocket('udp4', (query, { port, address }) => {
      queries += 1;
      const reply = replyTo(query);
      if (reply) server.send(reply, port, address);
    });
    await new Promise<void>((bound) => {
      server.bind(0, '127.0.0.1', bound);
    });
    servers = [`127.0.0.1:${server.address().port}`];
  });
  afterAll(() => {
    server.close();
  });

  const never = () => new AbortController().signal;

  it('are all of its A and AAAA records', async () => {
    expect(await resolveAddresses('both.example', never(), servers)).toEqual([
      '203.0.114.7',
      '10.0.0.1',
      '2606:4700::1111',
    ]);
  });

  it('are those of one type when the other type has no records', async () => {
    expect(await resolveAddresses('four.example', never(), servers)).toEqual(['203.0.114.7']);
  });

  it('are empty when the name does not exist', async () => {
    expect(await resolveAddresses('nowhere.example', never(), servers)).toEqual([]);
  });

  it('are an error when one type cannot be resolved', async () => {
    await expect(resolveAddresses('half.example', never(), servers)).rejects.toMatchObject({
      code: 'EREFUSED',
    });
  });

  it.each(['localhost', 'LOCALHOST.', 'x.localhost'])(
    'of %s are always loopback, and the name server is not used',
    async (name) => {
      const before = queries;
      expect(await resolveAddresses(name, never(), servers)).toEqual(['127.0.0.1', '::1']);
      expect(queries).toBe(before);
    },
  );

  it('are awaited no longer than the signal allows when the name server is silent', async () => {
    const over = new AbortController();
    const found = resolveAddresses('silent.example', over.signal, servers);
    setImmediate(() => over.abort());
    await expect(found).rejects.toMatchObject({ code: 'ECANCELLED' });
    await expect(resolveAddresses('both.example', over.signal, servers)).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});
