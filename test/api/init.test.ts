import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { breakGlass } from '../../src/break-glass/break-glass.js';
import { lineOf } from '../../src/break-glass/init/variables-file.js';
import { loadConfig } from '../../src/platform/config/load-config.js';
import { createLogger } from '../../src/platform/telemetry/pino-options.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/free-port.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** Nothing listens on this port, because `init` runs before the first start of the service. */
const port = await freePort();
const BASE_URL = `http://localhost:${port}`;
const CLIENT = { clientId: 'svc', clientSecret: 'a $ecret of #1 "client"' };

let database: TestDatabase;
let provider: DemoIdentityProvider;
beforeAll(async () => {
  database = await createTestDatabase();
  provider = await startDemoIdentityProvider({
    ...CLIENT,
    redirectUri: `${BASE_URL}/oauth/callback`,
  });
});
afterAll(async () => {
  await provider.close();
  await database.drop();
});

let folder: string;
beforeEach(async () => {
  folder = await makeTemporaryDirectory();
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
});
afterEach(() => removeDirectory(folder));

const file = () => join(folder, 'svc-server.env');

/**
 * Returns valid answers to the questions of the command, by variable, in the order of the
 * questions.
 */
const rightAnswers = (): Record<string, string> => ({
  SVC_BASE_URL: BASE_URL,
  SVC_IDP_CORP_ISSUER: provider.issuer,
  SVC_IDP_CORP_CLIENT_ID: CLIENT.clientId,
  SVC_IDP_CORP_CLIENT_SECRET: CLIENT.clientSecret,
  SVC_DATABASE_URL: database.url,
  SVC_DATA_DIR: join(folder, 'data'),
  SVC_ALLOWED_DOMAINS: 'example.com',
  SVC_BOOTSTRAP_ADMINS: 'ada@example.com',
});

/**
 * Runs the command with the lines that an operator types. The command reads undefined, the end of
 * the input, after the last one.
 */
async function init(typed: readonly string[], ...options: string[]) {
  const lines = [...typed];
  const seen: string[] = [];
  const hidden: string[] = [];
  const ask = async (question: string) => {
    seen.push(question);
    return lines.shift();
  };
  const status = await breakGlass(['init', '--file', file(), ...options], {
    readEnvironment: () => ({}),
    openLog: (settings) => createLogger(settings, { write: () => undefined }),
    terminal: {
      print: (line) => void seen.push(line),
      say: (line) => void seen.push(line),
      ask,
      askSecretly: (question) => {
        hidden.push(question);
        return ask(question);
      },
    },
  });
  return { status, output: seen.join('\n'), hidden, left: lines };
}

/** Runs the command with a file of answers: the valid ones, with changes. */
function initBy(different: Record<string, string>, ...options: string[]) {
  const lines = Object.entries({ ...rightAnswers(), ...different });
  const answers = join(folder, 'answers');
  writeFileSync(answers, lines.map(([name, value]) => `${lineOf(name, value)}\n`).join(''));
  return init([], '--answers', answers, ...options);
}

describe('admin.js init', () => {
  it('writes variables that the service starts with, for the owner alone, and prints no secret', async () => {
    const { status, output } = await initBy({});
    expect(status, output).toBe(0);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const variables = parseEnv(readFileSync(file(), 'utf8'));
    expect(variables).toMatchObject(rightAnswers());
    expect(() => loadConfig(variables)).not.toThrow();
    expect(Buffer.from(variables['SVC_JWT_SECRET'] ?? '', 'base64url')).toHaveLength(48);
    for (const secret of ['SVC_JWT_SECRET', 'SVC_IDP_CORP_CLIENT_SECRET', 'SVC_DATABASE_URL'])
      expect(output).not.toContain(variables[secret]);
    expect(output).toContain(`${BASE_URL}/oauth/callback is registered`);
    expect(output).toMatch(/^ok {6} +version +PostgreSQL 1\d/m);
    expect(output).toMatch(/^ok {6} +clock of corp/m);
    expect(output).toContain(`SCIM base URL        ${BASE_URL}/scim/v2`);
    expect(output).toContain(`The first admin (ada@example.com) opens ${BASE_URL}/login`);
  });

  it('names every problem in a line, and writes nothing', async () => {
    const { status, output } = await initBy({
      SVC_IDP_CORP_ISSUER: `${provider.issuer}/other`,
      SVC_DATABASE_URL: `postgres://svc:hidden-word@127.0.0.1:${port}/svc`,
      SVC_DATA_DIR: join(folder, 'nowhere'),
      SVC_BOOTSTRAP_ADMINS: 'ada@elsewhere.example',
    });
    expect(status).toBe(1);
    expect(output).toMatch(/^FAILED +provider corp +SVC_IDP_CORP_ISSUER: /m);
    expect(output).toMatch(/^FAILED +connection +/m);
    expect(output).toMatch(/^FAILED +folder +.*ENOENT.* Make it/m);
    expect(output).toMatch(/^FAILED +first admin +.*add elsewhere.example to SVC_ALLOWED_DOMAINS/m);
    expect(output).not.toContain('hidden-word');
    expect(existsSync(file())).toBe(false);
  });

  it('fails if the provider does not know the redirect URI or the client', async () => {
    for (const different of [
      { SVC_BASE_URL: 'http://localhost:1' },
      { SVC_IDP_CORP_CLIENT_ID: 'unknown' },
    ]) {
      const { status, output } = await initBy(different);
      expect(status).toBe(1);
      expect(output).toMatch(/^FAILED +redirect URI at corp +it answers 4\d\d .*: register http:/m);
    }
    expect(existsSync(file())).toBe(false);
  });

  it('changes no existing file without a word, and keeps its root secret with it', async () => {
    writeFileSync(file(), 'SVC_JWT_SECRET=the root secret of the years before\n');
    const before = readFileSync(file(), 'utf8');
    expect((await initBy({})).status).toBe(1);
    expect((await init(['no'])).status).toBe(1);
    expect(readFileSync(file(), 'utf8')).toBe(before);
    expect((await initBy({}, '--yes')).status).toBe(0);
    expect(parseEnv(readFileSync(file(), 'utf8'))).toMatchObject({
      ...rightAnswers(),
      SVC_JWT_SECRET: 'the root secret of the years before',
    });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it('asks a group again until its check passes, and hides what is secret', async () => {
    const [address = '', issuer = '', id = '', ...others] = Object.values(rightAnswers());
    const wrong = [`${issuer}/other`, id, 'x'];
    const { status, output, hidden, left } = await init([address, ...wrong, issuer, id, ...others]);
    expect(status, output).toBe(0);
    expect(left).toEqual([]);
    expect(hidden.map((question) => question.split(/ \(|:/)[0])).toEqual([
      'The client secret',
      'The client secret',
      'The URL of the PostgreSQL database [postgres',
    ]);
    expect(parseEnv(readFileSync(file(), 'utf8'))).toMatchObject(rightAnswers());
  });

  it('writes nothing if the input ends', async () => {
    expect((await init([BASE_URL])).status).toBe(1);
    expect(existsSync(file())).toBe(false);
  });

  it('a value is read back as it was, or is refused without being shown', () => {
    for (const value of [
      'plain',
      'a b',
      'a#b',
      '$HOME',
      'back\\slash',
      '"quoted"',
      "it's",
      '`x`',
      '',
    ]) {
      expect(parseEnv(lineOf('NAME', value))).toEqual({ NAME: value });
    }
    for (const value of ['two\nlines', `both ' and "`]) {
      expect(() => lineOf('NAME', value)).toThrow(/^NAME: a value with these characters/);
    }
  });
});
