import { usageFailure } from '../../program/failure.js';
import type { Act, Topic } from '../acts/act.js';
import { tellOfMore, withQuery } from '../acts/admin-client.js';
import { eventLine, type EventPage } from './event-lines.js';
import { follow } from './follow.js';
import { timeOf } from './since.js';

/** The path of the API for the audit log of the organization. */
const EVENTS = '/api/v1/org/audit-events';

/**
 * The options that narrow a search. Each is sent as the parameter of the API with the same name.
 */
const SEARCH = ['person', 'client', 'target', 'key', 'ip', 'request'];

/** The options that may be given together with `--follow`. */
const FOLLOWED = ['since', 'type', 'after'];

const NAMES = ['since', 'until', 'type', ...SEARCH, 'after', 'limit'];

const audit: Act = {
  form: `[--follow] ${NAMES.map((name) => `[--${name} ${name.toUpperCase()}]`).join(' ')}`,
  names: { flags: ['follow'], values: NAMES },
  async run(admin, options) {
    const [from, to] = (['since', 'until'] as const).map((name) =>
      timeOf(options.value(name), name),
    );
    const [type, after] = [options.value('type'), options.value('after')];
    if (options.has('follow')) {
      const other = NAMES.find((name) => !FOLLOWED.includes(name) && options.value(name));
      if (other !== undefined) throw wrongWith(other);
      if (from !== undefined && after !== undefined) throw wrongWith('since', '--after');
      await follow(admin, EVENTS, { type, from, after });
      return;
    }
    const given = SEARCH.map((name) => [name, options.value(name)] as const);
    const query = { type, from, to, ...Object.fromEntries(given), after };
    const limit = options.value('limit');
    const page = await admin.json<EventPage>('GET', withQuery(EVENTS, { ...query, limit }));
    admin.terminal.result(page, page.events.toReversed().map(eventLine));
    tellOfMore(admin, page.next);
  },
};

function wrongWith(option: string, other = '--follow') {
  const usage = 'svc admin audit --follow [--since SINCE] [--type TYPE]';
  return usageFailure(`--${option} does not go with ${other}.`, usage);
}

/**
 * `svc admin audit`: prints the events of the audit log. The topic has no other act, so the admin
 * types no further word.
 */
export const AUDIT: Topic = new Map([['', audit]]);
