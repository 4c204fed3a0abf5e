import type { Command } from '../command/command.js';
import { usageFailure } from '../program/failure.js';
import { ACCESS } from './access/access.js';
import { runTopic, usageOf, type Topic } from './acts/act.js';
import { AdminClient } from './acts/admin-client.js';
import { API_TOKENS } from './api-tokens.js';
import { APPLICATIONS_TOPIC } from './applications.js';
import { AUDIT } from './audit/audit.js';
import { DOMAINS_TOPIC } from './domains.js';
import { KEYS_TOPIC } from './keys.js';
import { MEMBERS } from './members/members.js';
import { SCIM_TOKENS } from './scim-tokens.js';

/** The words after `svc admin`, such as `members`, each with the acts on that kind of things. */
export const TOPICS: ReadonlyMap<string, Topic> = new Map([
  ['members', MEMBERS],
  ['keys', KEYS_TOPIC],
  ['access', ACCESS],
  ['applications', APPLICATIONS_TOPIC],
  ['scim-tokens', SCIM_TOKENS],
  ['api-tokens', API_TOKENS],
  ['domains', DOMAINS_TOPIC],
  ['audit', AUDIT],
]);

const USAGE = [...TOPICS]
  .flatMap(([name, topic]) => [...topic].map(([word, act]) => usageOf(name, word, act)))
  .join('\n');

/** `svc admin`: the acts of an admin of the organization, by the API of the server. */
export const command: Command = {
  usage: USAGE,
  help: [
    'Run svc login --admin first. If the server demands a touch of the security key in the middle,',
    'the command asks for it in the browser, and goes on.',
    'MEMBER is an id, an address or a whole name; TARGET is KIND/ID or a whole name; other things',
    'are named by id or whole name. A change shows what it ends, and asks; --yes answers.',
    '--format makes a file of everyone who matches, without pages. It is on standard output, or in',
    'FILE, which is there only if it is whole. After a cut the command goes on by itself.',
    'SINCE and UNTIL are times, or durations such as 15m, 2h and 7d.',
    '--json prints the answer of the API; audit --follow --json prints one event on each line.',
  ],
  async run(args, context) {
    const [name, ...rest] = args;
    const topic = name === undefined ? undefined : TOPICS.get(name);
    if (name !== undefined && topic) return runTopic(name, topic, rest, new AdminClient(context));
    const usage = `svc admin ${[...TOPICS.keys()].join('|')}`;
    const message = name === undefined ? 'The kind of things is missing.' : undefined;
    throw usageFailure(message ?? `svc admin does not know "${name}".`, usage);
  },
};
