import { localTime, printable, tableLines } from '../terminal/table.js';
import { usageFailure } from '../program/failure.js';
import type { ParsedArguments } from '../program/arguments.js';
import type { PlainAnswer } from '../server/transport.js';
import type { Act, Topic } from './acts/act.js';
import {
  ifMatch,
  path,
  tellOfMore,
  WITH_DOCUMENT,
  withQuery,
  type AdminClient,
} from './acts/admin-client.js';
import { endedLine, type Ended } from './acts/ended.js';
import { givenData } from './acts/given-data.js';
import { wholeNumber } from './acts/given-number.js';
import { allOf, idOf, unlessUnknown } from './acts/named.js';

const APPLICATIONS = '/api/v1/applications';

/** The fields of an application that this file reads in the answers of the API. */
interface Application {
  readonly client_id: string;
  readonly name: string;
  readonly type: string;
  readonly redirect_uris?: readonly string[];
  readonly approved_at?: string | null;
  readonly resource?: string;
}

/** A secret of an application, without its value. */
interface Secret {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

const list: Act = {
  form: '[--after AFTER]',
  names: { values: ['after'] },
  async run(admin, options) {
    const page = await admin.json<{ applications: readonly Application[]; next: string | null }>(
      'GET',
      withQuery(APPLICATIONS, { after: options.value('after') }),
    );
    const rows = page.applications.map((each) => [
      each.name,
      each.type,
      each.type === 'kubernetes' ? '' : each.approved_at ? 'approved' : 'not approved',
      each.client_id,
    ]);
    admin.terminal.result(page, tableLines([['NAME', 'TYPE', '', 'ID'], ...rows]));
    tellOfMore(admin, page.next);
  },
};

const show: Act = {
  takes: ['APPLICATION'],
  async run(admin, options) {
    const { application } = await find(admin, options);
    const facts = Object.entries(application).flatMap(([name, value]) =>
      value === null ? [] : [[name, typeof value === 'string' ? value : JSON.stringify(value)]],
    );
    admin.terminal.result(application, tableLines(facts));
  },
};

const register: Act = {
  form: '--data JSON|@FILE|@-',
  names: { values: ['data'] },
  async run(admin, options) {
    const usage = 'svc admin applications register --data @FILE';
    const data = options.value('data');
    if (data === undefined) throw usageFailure('The registration is missing.', usage);
    const json = givenData(data, usage);
    const made = await admin.json<Application & { readonly client_secret?: string }>(
      'POST',
      APPLICATIONS,
      { json },
    );
    const line = `The application ${made.name} is registered as ${made.client_id}.`;
    if (made.client_secret === undefined) admin.terminal.result(made, [line]);
    else admin.secret(made, made.client_secret, [line, 'Its secret is shown only now:']);
  },
};

const approve: Act = {
  takes: ['APPLICATION'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { application, answer } = await find(admin, options);
    const effects = [
      `${printable(application.name)}: members sign in without a question, and are sent to:`,
      ...(application.redirect_uris ?? []).map((address) => `  ${printable(address)}`),
    ];
    await admin.agree(options, effects, 'Approve this application?');
    const approved = await admin.json<Application>(
      'POST',
      path`/api/v1/applications/${application.client_id}/approve`,
      { headers: ifMatch(answer) },
    );
    admin.terminal.result(approved, [`${approved.name} is approved.`]);
  },
};

const endTokens: Act = {
  takes: ['APPLICATION'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { application } = await find(admin, options);
    const effects = [`Every sign-in and token of ${printable(application.name)} ends at once.`];
    await admin.agree(options, effects, 'End all tokens?');
    const to = path`/api/v1/applications/${application.client_id}/revoke-tokens`;
    const document = await admin.json<{ readonly revoked: number }>('POST', to);
    admin.terminal.result(document, [`Ended: ${document.revoked}.`]);
  },
};

const remove: Act = {
  takes: ['APPLICATION'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { application } = await find(admin, options);
    const effects = [
      `${printable(application.name)} is removed with its secrets and tokens: no one signs in to it.`,
    ];
    await admin.agree(options, effects, 'Remove this application?');
    const document = await admin.json<{ readonly ended: Ended }>(
      'DELETE',
      path`/api/v1/applications/${application.client_id}`,
      { headers: WITH_DOCUMENT },
    );
    const lines = [`${application.name} is removed.`, endedLine(document.ended, 'Ended')];
    admin.terminal.result(document, lines);
  },
};

const secrets: Act = {
  takes: ['APPLICATION'],
  async run(admin, options) {
    const { application } = await find(admin, options);
    const to = path`/api/v1/applications/${application.client_id}/secrets`;
    const document = await admin.json<{ readonly secrets: readonly Secret[] }>('GET', to);
    const rows = document.secrets.map((secret) => [
      secret.id,
      localTime(new Date(secret.created_at)),
      secret.expires_at === null ? 'never' : localTime(new Date(secret.expires_at)),
    ]);
    admin.terminal.result(document, tableLines([['ID', 'CREATED', 'EXPIRES'], ...rows]));
  },
};

const addSecret: Act = {
  takes: ['APPLICATION'],
  form: '[--days N] [--overlap SECONDS]',
  names: { values: ['days', 'overlap'] },
  async run(admin, options) {
    const days = wholeNumber(options, 'days');
    const overlap = wholeNumber(options, 'overlap');
    const { application } = await find(admin, options);
    const made = await admin.json<{ readonly id: string; readonly client_secret: string }>(
      'POST',
      path`/api/v1/applications/${application.client_id}/secrets`,
      {
        json: {
          ...(days === undefined ? {} : { expires_in_days: days }),
          ...(overlap === undefined ? {} : { expires_previous_in_seconds: overlap }),
        },
      },
    );
    const line = `The new secret ${made.id} of ${application.name} is shown only now:`;
    admin.secret(made, made.client_secret, [line]);
  },
};

const endSecret: Act = {
  takes: ['APPLICATION', 'SECRET'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    const { application } = await find(admin, options);
    const [, id = ''] = options.positionals;
    const effects = [
      `The secret ${printable(id)} of ${printable(application.name)} ends at once. Without another`,
      'secret the application signs in no one. Sessions and tokens stay.',
    ];
    await admin.agree(options, effects, 'End this secret?');
    await admin.request(
      'DELETE',
      path`/api/v1/applications/${application.client_id}/secrets/${id}`,
    );
    admin.terminal.result({ id }, [`The secret ${id} has ended.`]);
  },
};

/** Finds an application by its id or its whole name. */
async function find(
  admin: AdminClient,
  { positionals: [text = ''] }: ParsedArguments,
): Promise<{ readonly application: Application; readonly answer: PlainAnswer }> {
  const read = (id: string) => admin.request('GET', path`/api/v1/applications/${id}`);
  const direct = await unlessUnknown(() => read(text));
  const answer = 'unknown' in direct ? await read(await idOfName(admin, text)) : direct;
  return { application: JSON.parse(answer.text) as Application, answer };
}

async function idOfName(admin: AdminClient, text: string): Promise<string> {
  const all = await allOf<Application>(admin, APPLICATIONS, 'applications');
  const candidates = all.map(({ client_id: id, name }) => ({ id, names: [name] }));
  const isName = candidates.some(({ names: [name = ''] }) =>
    name.toLowerCase().includes(text.toLowerCase()),
  );
  return isName ? idOf('application', text, candidates) : text; // then the server answers 404
}

/**
 * `svc admin applications`: manages the applications and the Kubernetes clusters of the
 * organization.
 */
export const APPLICATIONS_TOPIC: Topic = new Map([
  ['list', list],
  ['show', show],
  ['register', register],
  ['approve', approve],
  ['revoke-tokens', endTokens],
  ['remove', remove],
  ['secrets', secrets],
  ['add-secret', addSecret],
  ['revoke-secret', endSecret],
]);
