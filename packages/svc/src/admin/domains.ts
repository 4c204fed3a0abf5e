import { localTime, tableLines } from '../terminal/table.js';
import type { Act, Topic } from './acts/act.js';
import { path, WITH_DOCUMENT } from './acts/admin-client.js';
import { endedLine, type Ended } from './acts/ended.js';

const DOMAINS = '/api/v1/org/domains';

/** A domain in the answers of the API. */
interface Domain {
  readonly domain: string;
  readonly primary: boolean;
  readonly state: string;
  readonly record: { readonly name: string; readonly type: string; readonly value: string } | null;
  readonly last_checked_at: string | null;
}

const list: Act = {
  async run(admin) {
    const document = await admin.json<{ readonly domains: readonly Domain[] }>('GET', DOMAINS);
    const rows = document.domains.map(({ domain, state, primary, last_checked_at: checked }) => [
      domain,
      state,
      primary ? 'primary' : '',
      checked === null ? 'never' : localTime(new Date(checked)),
    ]);
    const head = ['DOMAIN', 'STATE', '', 'LAST CHECKED'];
    admin.terminal.result(document, tableLines([head, ...rows]));
  },
};

const add: Act = {
  takes: ['DOMAIN'],
  async run(admin, options) {
    const [domain] = options.positionals;
    const added = await admin.json<Domain>('POST', DOMAINS, { json: { domain } });
    admin.terminal.result(added, [...recordLines(added), verifyLine(added)]);
  },
};

const verify: Act = {
  takes: ['DOMAIN'],
  async run(admin, options) {
    const [domain = ''] = options.positionals;
    const found = await admin.json<Domain>('POST', path`/api/v1/org/domains/${domain}/verify`);
    admin.terminal.result(found, [`${found.domain} is ${found.state}.`]);
  },
};

const remove: Act = {
  takes: ['DOMAIN'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const [domain = ''] = options.positionals;
    const effects = [
      `The accounts stay, but a member with an address in ${domain} gets nothing any more, and`,
      'what they hold ends at once, until the domain is proven again.',
    ];
    await admin.agree(options, effects, `Remove ${domain}?`);
    const document = await admin.json<{ readonly ended: Ended }>(
      'DELETE',
      path`/api/v1/org/domains/${domain}`,
      { headers: WITH_DOCUMENT },
    );
    const lines = [`${domain} is removed.`, endedLine(document.ended, 'Ended')];
    admin.terminal.result(document, lines);
  },
};

function recordLines({ domain, record }: Domain): string[] {
  if (!record) return [`${domain} needs no record.`];
  return [
    `Publish this record in the DNS of ${domain}:`,
    ...tableLines([[`  ${record.name}`, record.type, record.value]]),
  ];
}

function verifyLine({ domain }: Domain): string {
  return `Then run: svc admin domains verify ${domain}`;
}

/** `svc admin domains`: manages the e-mail domains that belong to the organization. */
export const DOMAINS_TOPIC: Topic = new Map([
  ['list', list],
  ['add', add],
  ['verify', verify],
  ['remove', remove],
]);
