import type { ParsedArguments } from '../../program/arguments.js';
import { printable } from '../../terminal/table.js';
import { ifMatch, type AdminClient } from '../acts/admin-client.js';
import { endedLine, type Ended } from '../acts/ended.js';
import { readTarget, type WholeRule } from './targets.js';

/**
 * One side of the forecast: the people who gain access by a new rule, or those who lose it.
 * `people` is null if the server sends only their number.
 */
interface Side {
  readonly count: number;
  readonly people:
    readonly { readonly email: string | null; readonly name: string | null }[] | null;
}

/**
 * The forecast of the server for a new rule: who gains and loses access, and what ends at once.
 * `not_recalled` has what keeps working for some time.
 */
interface Preview {
  readonly gains: Side;
  readonly loses: Side;
  readonly ends: Ended | null;
  readonly not_recalled: readonly { readonly what: string; readonly seconds: number | null }[];
}

/** The largest number of people that a line of the forecast names. */
const MOST_NAMED = 10;

/** The words for credentials that keep working after a new rule, by their names in the API. */
const NOT_RECALLED: Readonly<Record<string, string>> = {
  jwt: 'A token that an application has',
  aws_token: 'A token for AWS',
  aws_session: 'A session at AWS',
  ssh_connection: 'An SSH connection that is open',
};

/**
 * Replaces the rule that decides who may reach a target. Without `--yes`, it first shows who gains
 * and who loses access, and asks the admin. The header `If-Match` makes the server refuse the new
 * rule if the old rule has changed meanwhile.
 */
export async function changeRule(
  admin: AdminClient,
  options: ParsedArguments,
  to: string,
  changed: (rule: WholeRule) => unknown,
): Promise<void> {
  const { target, answer } = await readTarget(admin, to);
  const { access, conditions, assignments } = target;
  const json = changed({ access, conditions, assignments });
  if (!options.has('yes')) {
    const preview = await admin.json<Preview>('POST', `${to}/preview`, { json });
    const effects = [`${printable(target.name)}: the new rule`, ...linesOf(preview)];
    await admin.agree(options, effects, 'Set this rule?');
  }
  const document = await admin.json<object>('PUT', to, { json, headers: ifMatch(answer) });
  admin.terminal.result(document, [`The rule of ${target.name} is set.`]);
}

function linesOf({ gains, loses, ends, not_recalled: left }: Preview): string[] {
  return [
    sideLine('Gain access', gains),
    sideLine('Lose access', loses),
    ends ? endedLine(ends, 'This ends') : 'This ends more than the server counts.',
    ...left.map(notRecalledLine),
  ];
}

function sideLine(what: string, { count, people }: Side): string {
  const names = (people ?? [])
    .slice(0, MOST_NAMED)
    .map(({ email, name }) => printable(email ?? name ?? 'a person without a name'));
  const more = names.length > 0 && count > names.length ? ', …' : '';
  return `${what}: ${count}${names.length > 0 ? ` (${names.join(', ')}${more})` : ''}`;
}

function notRecalledLine({ what, seconds }: Preview['not_recalled'][number]): string {
  const end = seconds === null ? 'until it ends by itself' : `for up to ${seconds} seconds`;
  return `${NOT_RECALLED[what] ?? what} works on ${end}.`;
}
