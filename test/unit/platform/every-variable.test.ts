import { describe, expect, it } from 'vitest';
import { ConfigProblems, loadConfig } from '#platform/config/load-config.js';
import { PROVIDER_VARIABLES } from '#platform/config/table/providers.js';
import { VARIABLES } from '#platform/config/table/settings.js';

const SECRET = 'hunter2hunter2';

/** A secret, written in each form that the value of a variable can have. */
const FORMS = [
  SECRET,
  `${SECRET}*`,
  `\n${SECRET}\u0000`,
  `${SECRET},${SECRET}`,
  SECRET.repeat(100),
  `https://${SECRET}@host.example/?${SECRET}#${SECRET}`,
  `http://${SECRET}.example`,
  `postgres://user:${SECRET}@a,,b/${SECRET}?target_session_attrs=${SECRET}`,
  `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----\n`,
  Buffer.from(`-----BEGIN CERTIFICATE-----\n${SECRET}`).toString('base64'),
  `/no/such/folder/${SECRET}.pem`,
  `arn:aws:kms:${SECRET}`,
  `${SECRET}=${SECRET},info`,
];

const OF_TYPE = {
  oidc: { ISSUER: 'https://idp.example', CLIENT_ID: 'svc', CLIENT_SECRET: 'secret' },
  saml: { METADATA_URL: 'https://idp.example/metadata' },
};

function working(type: keyof typeof OF_TYPE): Record<string, string> {
  const own = Object.entries({ TYPE: type, ...OF_TYPE[type] });
  return {
    SVC_JWT_SECRET: 'a root secret only this test knows',
    SVC_IDPS: 'corp',
    ...Object.fromEntries(own.map(([name, value]) => [`SVC_IDP_CORP_${name}`, value])),
  };
}

function linesOf(environment: Record<string, string>): readonly string[] {
  try {
    return loadConfig(environment).warnings;
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
}

const NAMES = [
  ...VARIABLES.keys(),
  ...[...PROVIDER_VARIABLES.keys()].map((n) => `SVC_IDP_CORP_${n}`),
];

describe('every variable', () => {
  it.each(['oidc', 'saml'] as const)(
    'of a service with an %s provider has problems that begin with a name and repeat no value',
    (type) => {
      const lines = NAMES.flatMap((name) =>
        FORMS.flatMap((value) => linesOf({ ...working(type), [name]: value })),
      );
      expect(lines.length).toBeGreaterThan(NAMES.length);
      const ofValue = (line: string) => FORMS.some((value) => line.includes(value));
      expect(lines.filter((line) => line.includes(SECRET) || ofValue(line))).toEqual([]);
      expect(lines.filter((line) => !/^[A-Z][A-Z0-9_]+: \S/.test(line))).toEqual([]);
    },
  );

  it.each(['oidc', 'saml'] as const)(
    'of a service with an %s provider says in plain words what is wrong with a blank list',
    (type) => {
      const blanks = [' ', ',', ' , ', '\n', '\u0000', ' a, b'];
      const lines = NAMES.flatMap((name) =>
        blanks.flatMap((value) => linesOf({ ...working(type), [name]: value })),
      );
      expect(lines.length).toBeGreaterThan(NAMES.length);
      expect(lines.filter((line) => /\b(expected|invalid|too (small|big))\b/i.test(line))).toEqual(
        [],
      );
    },
  );

  it('counts as unset if it is empty', () => {
    for (const type of ['oidc', 'saml'] as const) {
      const missing = NAMES.filter((name) => {
        const { [name]: _removed, ...rest } = working(type);
        expect(linesOf({ ...working(type), [name]: '' }), name).toEqual(linesOf(rest));
        return linesOf(rest).length > 0;
      });
      expect(missing).toEqual(
        Object.keys(working(type)).toSorted((a, b) => NAMES.indexOf(a) - NAMES.indexOf(b)),
      );
    }
  });
});
