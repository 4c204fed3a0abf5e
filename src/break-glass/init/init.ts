import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemRandom } from '#platform/clock/random.js';
import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, loadConfig } from '#platform/config/load-config.js';
import { providerVariable, slugsOf } from '#platform/config/provider-settings.js';
import type { ValidConfig } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { Findings } from '../operator/findings.js';
import type { OperatorTerminal } from '../operator/terminal.js';
import {
  checkAddress,
  checkDatabase,
  checkFolder,
  checkPeople,
  checkProvider,
  type AnswerCheck,
} from './checks.js';
import * as questions from './questions.js';
import { lineOf, readVariables, writeVariables } from './variables-file.js';

/** The command `init`, which makes the file of variables of a new service. */
export interface InitCommand {
  readonly name: 'init';
  /** The file that is written. */
  readonly file: string;
  /**
   * The file with the answers, or `-` for standard input; undefined if the command asks the
   * operator on the terminal.
   */
  readonly answers: string | undefined;
  /** True if the command line has `--yes`: an existing file is replaced without a question. */
  readonly yes: boolean;
}

/** The length in bytes of a root secret that the command makes. */
const ROOT_SECRET_BYTES = 48;

/** The groups of questions in their order. Each group is checked before the next is asked. */
const STEPS: readonly {
  readonly ask: (answers: Environment) => readonly questions.Question[];
  readonly check: AnswerCheck;
}[] = [
  { ask: questions.addressQuestions, check: checkAddress },
  { ask: questions.providerQuestions, check: checkProvider },
  { ask: questions.databaseQuestions, check: checkDatabase },
  { ask: questions.folderQuestions, check: checkFolder },
  { ask: questions.peopleQuestions, check: checkPeople },
];

/**
 * Makes the file of environment variables of a new service, from the answers of the operator or of
 * a file. It checks each group of answers at once, and writes nothing if a check fails. At the end
 * it prints what to enter at the identity provider, and how the first admin begins.
 *
 * @returns 0 if the file was written, 1 if not
 * @throws Error for a file that cannot be read or written
 */
export async function init(command: InitCommand, terminal: OperatorTerminal): Promise<0 | 1> {
  const path = resolve(command.file);
  if (!existsSync(dirname(path)))
    throw new Error(`${dirname(path)} does not exist. Make it with the mode 0700 first.`);
  const previous = readVariables(path);
  if (previous && !(await mayReplace(command, path, terminal))) return 1;

  const given = command.answers === undefined ? undefined : readVariables(command.answers);
  if (command.answers !== undefined && !given)
    throw new Error(`${command.answers} does not exist. It must have a line NAME=value an answer.`);
  const answers = await answersOf(given, terminal);
  if (!answers) return 1;
  const variables = { ...answers, SVC_JWT_SECRET: rootSecretOf(answers, previous) };
  const config = validated(variables, terminal);
  if (!config) return 1;
  const lines = Object.entries(variables).map(([name, value]) => lineOf(name, value));
  writeVariables(path, lines, { mayReplace: previous !== undefined });
  for (const line of nextSteps(path, config)) terminal.print(line);
  return 0;
}

async function mayReplace(
  { yes, answers }: InitCommand,
  path: string,
  terminal: OperatorTerminal,
): Promise<boolean> {
  if (yes) return true;
  if (answers === undefined) {
    const answer = await terminal.ask(
      `${path} exists. Its root secret stays, everything else is replaced. Type yes to go on: `,
    );
    if (answer?.trim() === 'yes') return true;
  }
  terminal.say(`${path} exists and was not changed. --yes replaces it; its root secret stays.`);
  return false;
}

/**
 * Returns the root secret: that of the answers, or else that of the file to be replaced, or else a
 * new one. The old secret is kept because a new one could not decrypt the data of the service.
 */
function rootSecretOf(answers: Environment, previous: Environment | undefined): string {
  const known = answers['SVC_JWT_SECRET'] ?? previous?.['SVC_JWT_SECRET'];
  return known ?? systemRandom.token(ROOT_SECRET_BYTES);
}

/**
 * Answers every question, and runs the check of each group. On a terminal a group with a failed
 * check is asked again.
 *
 * @param given the answers of a file; undefined to ask the operator
 * @returns undefined if an answer is missing or a check has failed
 */
async function answersOf(
  given: Environment | undefined,
  terminal: OperatorTerminal,
): Promise<Environment | undefined> {
  let answers: Environment = { ...questions.DEFAULTS, ...given };
  answers = { ...typesOf(answers), ...answers };
  let isHealthy = true;
  for (const { ask, check } of STEPS) {
    for (;;) {
      const answered = given
        ? fromFile(ask(answers), answers, terminal)
        : await fromTerminal(ask(answers), terminal);
      if (!answered && !given) {
        terminal.say('The input ended, and nothing was written.');
        return undefined;
      }
      answers = { ...answers, ...answered };
      const findings = new Findings();
      if (answered) await check(answers, findings);
      for (const line of findings.lines()) terminal.say(line);
      const passed = answered !== undefined && findings.healthy;
      if (!passed && !given) continue;
      isHealthy &&= passed;
      break;
    }
  }
  if (!isHealthy) terminal.say('Nothing was written. Correct what is named above.');
  return isHealthy ? answers : undefined;
}

/**
 * Returns variables that set the type of each provider to OpenID Connect. They are defaults: an
 * answer that names another type replaces them.
 */
function typesOf(answers: Environment): Environment {
  return Object.fromEntries(
    slugsOf(answers).map((slug) => [providerVariable(slug, 'TYPE'), 'oidc']),
  );
}

function fromFile(
  asked: readonly questions.Question[],
  answers: Environment,
  terminal: OperatorTerminal,
): Environment | undefined {
  const answered = asked.map(({ variable, fallback }) => ({
    variable,
    value: answers[variable] ?? fallback,
  }));
  const missing = answered.filter(({ value }) => value === undefined || value === '');
  for (const { variable } of missing) terminal.say(`${variable}: the file of answers lacks it`);
  if (missing.length > 0) return undefined;
  return Object.fromEntries(answered.map(({ variable, value }) => [variable, value]));
}

async function fromTerminal(
  asked: readonly questions.Question[],
  terminal: OperatorTerminal,
): Promise<Environment | undefined> {
  const answered: Record<string, string> = {};
  for (const { variable, text, fallback, isSecret = false } of asked) {
    const shown = fallback === undefined ? `${text}: ` : `${text} [${fallback}]: `;
    let answer: string | undefined;
    do {
      answer = await (isSecret ? terminal.askSecretly(shown) : terminal.ask(shown));
      if (answer === undefined) return undefined;
      answer = answer.trim() || fallback;
    } while (answer === undefined);
    answered[variable] = answer;
  }
  return answered;
}

/** Validates all variables together, as a start of the service does. */
function validated(variables: Environment, terminal: OperatorTerminal): ValidConfig | undefined {
  try {
    const { config, warnings } = loadConfig(variables);
    for (const warning of warnings) terminal.say(warning);
    return config;
  } catch (error) {
    const lines = error instanceof ConfigProblems ? error.problems : [reasonOf(error)];
    for (const line of lines) terminal.say(line);
    terminal.say('Nothing was written. Correct what is named above.');
    return undefined;
  }
}

/** Returns the lines that say what to do after the file was written. */
function nextSteps(path: string, { http, enrollment, upstream }: ValidConfig): string[] {
  const { baseUrl } = http;
  const isSaml = upstream.providers.some(({ type }) => type === 'saml');
  return [
    `Wrote ${path}, readable for its owner alone. Back it up: without its root secret, users must`,
    'begin again.',
    '',
    'At the identity provider:',
    `  Redirect URI         ${baseUrl}/oauth/callback`,
    '  Scopes               openid email profile',
    ...(isSaml ? [`  SAML metadata        ${baseUrl}/saml/metadata`] : []),
    `  SCIM base URL        ${baseUrl}/scim/v2`,
    `  SCIM token           an admin makes it at ${baseUrl}/admin/scim-tokens`,
    '',
    'Next:',
    '  systemctl enable --now svc-server',
    `  The first admin (${[...(enrollment.bootstrapAdmins ?? [])].join(', ')}) opens ${baseUrl}/login,`,
    '  signs in, and enrolls a key.',
  ];
}
