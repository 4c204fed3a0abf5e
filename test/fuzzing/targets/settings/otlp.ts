import { httpUrl, otlpProtocol } from '#platform/config/table/shapes.js';
import { wordsBy } from '../../engine/structures.js';
import { rule, type FuzzTarget } from '../../engine/target.js';

export const target: FuzzTarget = {
  parser: 'httpUrl and otlpProtocol, the settings of OTLP',
  seeds: ['http://collector:4318', 'https://[::1]:4318/base/', 'http/protobuf', 'grpc'].map(
    (text) => Buffer.from(text),
  ),
  dictionary: [
    'http://',
    'https://',
    '://',
    '@',
    ':',
    '/',
    '?',
    '#',
    '[::1]',
    '%00',
    'http/protobuf',
  ],
  structure: wordsBy(/\w+|[^]/g),
  longest: 512,
  run(input) {
    const text = input.toString();
    const protocol = otlpProtocol.safeParse(text);
    rule(!protocol.success || text === 'http/protobuf', 'another protocol is accepted');
    const endpoint = httpUrl.safeParse(text);
    if (!endpoint.success) return protocol.success;
    // `open-telemetry.ts` appends the path of the traces to the endpoint in the same way.
    const address = `${endpoint.data.replace(/\/+$/, '')}/v1/traces`;
    rule(URL.canParse(address), 'an endpoint to which no path can be appended');
    const { pathname } = new URL(address);
    rule(pathname.endsWith('/v1/traces'), 'an appended path that is not the end of the path');
    rule(/^https?:$/.test(new URL(address).protocol), 'an endpoint of another scheme');
    return true;
  },
};
