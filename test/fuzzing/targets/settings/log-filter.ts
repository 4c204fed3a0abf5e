import { parseLogFilter } from '#platform/telemetry/filter/log-filter.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';

const NUMBERS = [10, 20, 30, 40, 50];
const NAMES = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];
const PROBES = ['', 'database', 'svc_server', 'svc_server::scim', 'scim::query', '__proto__'];

export const target: FuzzTarget = {
  parser: 'parseLogFilter',
  seeds: [
    'info',
    'info,security=warn,svc_server::scim=debug',
    'off,http=trace',
    'database',
    'WARN , scim::query = off',
  ].map((text) => Buffer.from(text)),
  dictionary: [
    ...NAMES,
    'off',
    'svc_server::',
    'svc_server',
    '=',
    ',',
    '::',
    ' ',
    'scim',
    'database',
  ],
  structure: wordsBy(/\w+|::|[^]/g),
  longest: 1024,
  run(input) {
    const text = input.toString();
    const filter = attempt(
      () => parseLogFilter(text),
      (error) => error instanceof Error && error.message.startsWith('RUST_LOG: '),
    );
    if (!filter) return false;
    rule(NAMES.includes(filter.level), 'a level that pino does not know');
    const lowest = (NAMES.indexOf(filter.level) + 1) * 10;
    for (const probe of [...PROBES, ...text.split(/[=,]/).slice(0, 6)]) {
      const allowed = NUMBERS.map((level) => filter.allows(level, probe));
      rule(
        allowed.every((one, index) => !one || index === 4 || allowed[index + 1] === true),
        'a line is written, and a graver one of the same target is not',
      );
      rule(
        allowed.every((one, index) => !one || (NUMBERS[index] ?? 0) >= lowest),
        'a line is written below the lowest level',
      );
    }
    return true;
  },
};
