import type { Environment } from '#platform/config/environment.js';
import { providerVariable, slugsOf } from '#platform/config/provider-settings.js';

/** One question of the command `init`. Its answer is the value of a variable of the service. */
export interface Question {
  readonly variable: string;
  readonly text: string;
  /** The answer if the operator enters an empty line; undefined if an answer is necessary. */
  readonly fallback?: string;
  /** True if the terminal must not show the answer. */
  readonly isSecret?: boolean;
}

/** The variables that the command sets without a question. A file of answers can replace them. */
export const DEFAULTS: Environment = {
  SVC_LISTEN_ADDR: '127.0.0.1:3000',
  SVC_TRUSTED_PROXIES: '127.0.0.1',
  SVC_IDPS: 'corp',
};

/** Returns the question for the public URL of the service. */
export function addressQuestions(): readonly Question[] {
  return [
    {
      variable: 'SVC_BASE_URL',
      text: 'The public address of the service, such as https://login.example.com',
    },
  ];
}

/**
 * Returns the questions for the first identity provider of SVC_IDPS. For a SAML provider, the only
 * question is the URL of its metadata.
 */
export function providerQuestions(answers: Environment): readonly Question[] {
  const [slug = 'corp'] = slugsOf(answers);
  const named = (name: string) => providerVariable(slug, name);
  if (answers[named('TYPE')] === 'saml') {
    return [
      { variable: named('METADATA_URL'), text: 'The address of the metadata of the provider' },
    ];
  }
  return [
    {
      variable: named('ISSUER'),
      text: 'The issuer of the identity provider, such as https://idp.example.com',
    },
    { variable: named('CLIENT_ID'), text: 'The client id of the service at the provider' },
    { variable: named('CLIENT_SECRET'), text: 'The client secret (not shown)', isSecret: true },
  ];
}

/** Returns the question for the database. */
export function databaseQuestions(): readonly Question[] {
  return [
    {
      variable: 'SVC_DATABASE_URL',
      text: 'The URL of the PostgreSQL database',
      fallback: 'postgres://svc-server@/svc-server?host=/run/postgresql',
      // The URL may contain a password, so the terminal does not show it.
      isSecret: true,
    },
  ];
}

/** Returns the question for the folder of the service's own files. */
export function folderQuestions(): readonly Question[] {
  return [
    {
      variable: 'SVC_DATA_DIR',
      text: 'The folder for the key of the SSH authority',
      fallback: '/var/lib/svc-server',
    },
  ];
}

/**
 * Returns the questions about the people who may enroll a security key, and about the first admin.
 */
export function peopleQuestions(): readonly Question[] {
  return [
    { variable: 'SVC_ALLOWED_DOMAINS', text: 'The e-mail domains that may enroll' },
    { variable: 'SVC_BOOTSTRAP_ADMINS', text: 'The e-mail address of the first admin' },
  ];
}
