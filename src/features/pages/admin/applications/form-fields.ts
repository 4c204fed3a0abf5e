import {
  DEVICE_GRANT,
  FIDO2_GRANT,
  TOKEN_EXCHANGE_GRANT,
} from '#domain/oauth/applications/grant-types.js';
import {
  AUTH_METHODS,
  TYPES,
  type ApplicationType,
  type Registration,
} from '#domain/oauth/applications/registration.js';

/** A choice of a field: its value, its text, and whether it is selected (`chosen`). */
interface Choice {
  readonly value: string;
  readonly text: string;
  readonly chosen: boolean;
}

/** A field of the form by which an admin registers or changes an application. */
export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** The kind of control. A fact is a text that the user cannot change. */
  readonly control:
    'text' | 'lines' | 'json' | 'number' | 'select' | 'choices' | 'boolean' | 'fact';
  readonly value: string;
  readonly choices?: readonly Choice[];
  readonly required?: boolean;
  /**
   * True for a field that most applications do not need. The page shows it under further settings.
   */
  readonly isFurther?: boolean;
}

/** The title and the description of each kind of application. */
export const KINDS: Readonly<Record<ApplicationType | 'kubernetes', readonly [string, string]>> = {
  web: [
    'Web application',
    'It has a server that keeps a secret or a key: Grafana, GitLab, your own site.',
  ],
  spa: ['Single-page application', 'It runs in the browser alone and keeps no secret.'],
  native: ['Native application', 'A program on a computer or a telephone, or a command-line tool.'],
  service: ['Service', 'A program that acts for itself, without a person (client credentials).'],
  kubernetes: ['Kubernetes cluster', 'Members get tokens for its API server with the svc command.'],
};

const GRANT_WORDS: Readonly<Record<string, string>> = {
  authorization_code: 'A person signs in with the browser',
  client_credentials: 'The program acts for itself',
  [DEVICE_GRANT]: 'A person approves a code on another device',
  [FIDO2_GRANT]: 'A person touches the key in the program',
  [TOKEN_EXCHANGE_GRANT]: 'It exchanges a token for one of another service',
};

const METHOD_WORDS: Readonly<Record<(typeof AUTH_METHODS)[number], string>> = {
  client_secret_basic: 'A secret in the Authorization header',
  client_secret_post: 'A secret in the body',
  private_key_jwt: 'A signed assertion of its own key',
  tls_client_auth: 'A certificate of a configured authority',
  self_signed_tls_client_auth: 'A certificate of its own',
};

/**
 * Returns the words for a setting, followed in brackets by its name in the specifications. The name
 * is shown because other products use it in their settings and documents.
 */
function named(text: string | undefined, value: string): string {
  return text === undefined ? value : `${text} (${value})`;
}

/**
 * Returns the fields of the form of a cluster. The resource is a field only before the cluster is
 * registered, because it cannot change.
 */
export function clusterFields(name: string, isNew: boolean): FormField[] {
  const fields: FormField[] = [nameField(name)];
  if (!isNew) return fields;
  const hint =
    'The audience of the tokens, for example https://prod.k8s.example. It cannot change later.';
  return [
    ...fields,
    { name: 'resource', label: 'Resource', hint, control: 'text', value: '', required: true },
  ];
}

/**
 * Returns the fields of the form of an application. Their values are those of the registration
 * `current`; for a new application, which has none, they are the defaults.
 */
export function fieldsOf(type: ApplicationType, current: Registration | undefined): FormField[] {
  const { isPublic, grantTypes } = TYPES[type];
  return [
    nameField(current?.name ?? ''),
    ...(type === 'service' ? [] : addressFields(current)),
    isPublic ? PUBLIC_METHOD : methodField(current),
    ...(grantTypes.length > 1 ? [grantsField(type, current)] : []),
    lines(
      'scopes',
      'Scopes of your own services',
      current?.scopes,
      'One for each line, beside those of OpenID Connect.',
      true,
    ),
    bindingField(current),
    ...(isPublic ? [] : keyFields(current)),
    ...(type === 'service' ? [] : [...signInFields(type, current), ...logoutFields(current)]),
  ];
}

function nameField(value: string): FormField {
  const hint = 'Members see it when they sign in to the application.';
  return { name: 'name', label: 'Name', hint, control: 'text', value, required: true };
}

function addressFields(current: Registration | undefined): FormField[] {
  return [
    {
      ...lines(
        'redirect_uris',
        'Redirect URIs',
        current?.redirect_uris,
        'One for each line, exactly as the application sends it.',
      ),
      required: true,
    },
    {
      name: 'initiate_login_uri',
      label: 'Start address',
      hint: 'Members find it on their start page. It has the host of a redirect URI.',
      control: 'text',
      value: current?.initiate_login_uri ?? '',
      isFurther: true,
    },
    lines(
      'post_logout_redirect_uris',
      'Redirect URIs after logout',
      current?.post_logout_redirect_uris,
      'One for each line.',
      true,
    ),
  ];
}

/**
 * The text of the choice that leaves the authentication method to the server. The function
 * `completed` fills in this default at the registration.
 */
const DEFAULT_METHOD = 'The default: client_secret_basic, with FAPI 2.0 private_key_jwt';

const PUBLIC_METHOD: FormField = {
  name: 'auth_method',
  label: 'The application proves itself by',
  control: 'fact',
  value: named('Nothing, since it keeps no secret; PKCE protects its codes', 'none'),
};

function methodField(current: Registration | undefined): FormField {
  const chosen = current?.auth_method ?? '';
  const choices = AUTH_METHODS.map((value) => ({
    value,
    text: named(METHOD_WORDS[value], value),
    chosen: value === chosen,
  }));
  const usual = { value: '', text: DEFAULT_METHOD, chosen: chosen === '' };
  return {
    name: 'auth_method',
    label: 'The application proves itself by',
    hint: current
      ? 'Its secrets end if it changes from a secret to a key or a certificate.'
      : 'A secret is shown once, after this form.',
    control: 'select',
    value: chosen,
    choices: current ? choices : [usual, ...choices],
  };
}

function grantsField(type: ApplicationType, current: Registration | undefined): FormField {
  const grants: readonly string[] = TYPES[type].grantTypes;
  const chosen = current?.grant_types ?? grants.slice(0, 1);
  return {
    name: 'grant_types',
    label: 'Ways to get a token',
    control: 'choices',
    value: '',
    choices: grants.map((value) => ({
      value,
      text: named(GRANT_WORDS[value], value),
      chosen: chosen.includes(value),
    })),
    isFurther: true,
  };
}

function bindingField(current: Registration | undefined): FormField {
  const chosen = current?.sender_constraint ?? '';
  const choices = [
    { value: '', text: 'Not bound, or as the profile demands' },
    { value: 'dpop', text: 'Bound to a key of the application (DPoP)' },
    { value: 'mtls', text: 'Bound to its certificate (mutual TLS)' },
  ];
  return {
    name: 'sender_constraint',
    label: 'Access tokens are',
    control: 'select',
    value: chosen,
    choices: choices.map((choice) => ({ ...choice, chosen: choice.value === chosen })),
    isFurther: true,
  };
}

function keyFields(current: Registration | undefined): FormField[] {
  const jwks = current?.jwks ? JSON.stringify(current.jwks) : '';
  return [
    {
      name: 'jwks_uri',
      label: 'Address of its public keys',
      hint: 'A JWK Set.',
      control: 'text',
      value: current?.jwks_uri ?? '',
      isFurther: true,
    },
    {
      name: 'jwks',
      label: 'Its public keys',
      hint: 'A JWK Set as JSON, instead of an address.',
      control: 'json',
      value: jwks,
      isFurther: true,
    },
    {
      name: 'tls_client_auth_subject_dn',
      label: 'Subject of its certificate',
      hint: 'For a certificate of a configured authority, for example CN=app,O=Example.',
      control: 'text',
      value: current?.tls_client_auth_subject_dn ?? '',
      isFurther: true,
    },
  ];
}

function signInFields(type: ApplicationType, current: Registration | undefined): FormField[] {
  const profile = current?.profile ?? '';
  const seconds = current ? String(current.id_token_lifetime_seconds) : '';
  return [
    {
      name: 'profile',
      label: 'Profile',
      control: 'select',
      value: profile,
      choices: [
        { value: '', text: 'OpenID Connect', chosen: profile === '' },
        { value: 'fapi2', text: 'FAPI 2.0', chosen: profile === 'fapi2' },
      ],
      isFurther: true,
    },
    ...(type === 'web'
      ? [flag('require_pkce', 'PKCE is required', current?.require_pkce ?? false)]
      : []),
    {
      name: 'id_token_lifetime_seconds',
      label: 'Seconds an ID token lives',
      hint: '60 to 3600; 300 by default.',
      control: 'number',
      value: seconds,
      isFurther: true,
    },
  ];
}

function logoutFields(current: Registration | undefined): FormField[] {
  return [
    {
      name: 'backchannel_logout_uri',
      label: 'Address of logout tokens',
      hint: 'The application ends its own session when a token says that the access ended.',
      control: 'text',
      value: current?.backchannel_logout_uri ?? '',
      isFurther: true,
    },
    flag(
      'backchannel_logout_session_required',
      'Every logout token must name a session',
      current?.backchannel_logout_session_required ?? false,
    ),
    flag(
      'backchannel_logout_at_session_end',
      'Also tell it when a session ends by its own time',
      current?.backchannel_logout_at_session_end ?? false,
    ),
  ];
}

function flag(name: string, label: string, value: boolean): FormField {
  return { name, label, control: 'boolean', value: String(value), isFurther: true };
}

function lines(
  name: string,
  label: string,
  values: readonly string[] | undefined,
  hint: string,
  isFurther = false,
): FormField {
  return { name, label, hint, control: 'lines', value: (values ?? []).join('\n'), isFurther };
}
