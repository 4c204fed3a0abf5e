import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { makeSigningCertificate } from './certificate.js';
import { ALG, BINDING, NAME_ID } from './saml-names.js';
import { samlify, type SamlifyProvider, type SamlifyServiceProvider } from './samlify.js';

/**
 * The values that the provider states about a user. Without `nameId`, the NameID is the e-mail
 * address.
 */
export interface StatedUser {
  readonly email: string;
  readonly nameId?: string;
}

/** A running SAML identity provider that uses the library samlify, at `http://127.0.0.1:{port}`. */
export interface NodeSamlProvider {
  readonly origin: string;
  readonly entityId: string;
  readonly metadataUrl: string;
  /** The user that the provider signs in; a test changes it between sign-ins. */
  user: StatedUser;
  /** The queries of the requests so far, the oldest first. */
  readonly requests: URLSearchParams[];
  /** Registers the service, which is a SAML service provider, by its metadata. */
  trust(serviceProviderMetadata: string): void;
  /** Makes a new signing key. The metadata then have only this key. */
  rotateKey(): void;
  close(): Promise<void>;
}

/** Options of the provider. */
export interface NodeProviderOptions {
  /**
   * True if the metadata contain `WantAuthnRequestsSigned`, and a request without a valid signature
   * is refused.
   */
  readonly wantsSignedRequests?: boolean;
  readonly nameIdFormat?: string;
}

/**
 * Starts a SAML provider. At a request it signs its `user` in at once, without a page that asks.
 */
export async function startNodeSamlProvider(
  options: NodeProviderOptions = {},
): Promise<NodeSamlProvider> {
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.writeHead(400, { 'content-type': 'text/plain' }).end(String(error));
    });
  });
  const port = await listenOnLoopback(server);
  const origin = `http://127.0.0.1:${port}`;
  let entity = newEntity(origin, options);
  let trusted: SamlifyServiceProvider | undefined;

  const provider: NodeSamlProvider = {
    origin,
    entityId: `${origin}/entity`,
    metadataUrl: `${origin}/metadata`,
    user: { email: 'ada@node.example' },
    requests: [],
    trust: (metadata) => {
      trusted = samlify.ServiceProvider({ metadata, wantMessageSigned: false });
    },
    rotateKey: () => {
      entity = newEntity(origin, options);
    },
    close: () => stopServer(server),
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', origin);
    if (url.pathname === '/metadata') {
      response.writeHead(200, { 'content-type': 'application/samlmetadata+xml' });
      response.end(entity.getMetadata());
      return;
    }
    if (url.pathname === '/favicon.ico') {
      // Browsers request this icon, and would report a 404 as an error of the page.
      response.writeHead(204).end();
      return;
    }
    if (url.pathname !== '/sso' || !trusted) {
      response.writeHead(404).end();
      return;
    }
    provider.requests.push(url.searchParams);
    const relayState = url.searchParams.get('RelayState') ?? '';
    const asked = await entity.parseLoginRequest(trusted, 'redirect', {
      query: Object.fromEntries(url.searchParams),
      // The signature covers the octets as they were sent (SAML Bindings §3.4.4.1).
      octetString: url.search.slice(1).replace(/&Signature=.*$/, ''),
    });
    const values = responseValues(provider, trusted, asked.extract.request.id, options);
    const { context, entityEndpoint } = await entity.createLoginResponse(
      trusted,
      asked,
      'post',
      { email: values.NameID },
      {
        relayState,
        customTagReplacement: (template) => ({
          id: values.ID,
          context: samlify.SamlLib.replaceTagsByValue(template, values),
        }),
      },
    );
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(autoPost(entityEndpoint, { SAMLResponse: context, RelayState: relayState }));
  }

  return provider;
}

/**
 * samlify's template of a response. It adds an AuthnStatement, which says that the user was
 * authenticated, because SAML Profiles §4.1.4.2 demands one.
 */
const TEMPLATE = samlify.SamlLib.defaultLoginResponseTemplate.context.replace(
  '{AuthnStatement}',
  '<saml:AuthnStatement AuthnInstant="{IssueInstant}"><saml:AuthnContext><saml:AuthnContextClassRef>' +
    'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport' +
    '</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>',
);

/** Returns the values that replace the placeholders in {@link TEMPLATE}. */
function responseValues(
  provider: Pick<NodeSamlProvider, 'entityId' | 'user'>,
  { entityMeta }: SamlifyServiceProvider,
  inResponseTo: string,
  options: NodeProviderOptions,
) {
  const acs = entityMeta.getAssertionConsumerService('post');
  const now = new Date();
  const soon = new Date(now.getTime() + 300_000).toISOString();
  const { email, nameId } = provider.user;
  return {
    ID: `_${randomUUID()}`,
    AssertionID: `_${randomUUID()}`,
    Destination: acs,
    Audience: entityMeta.getEntityID(),
    SubjectRecipient: acs,
    AssertionConsumerServiceURL: acs,
    Issuer: provider.entityId,
    IssueInstant: now.toISOString(),
    StatusCode: 'urn:oasis:names:tc:SAML:2.0:status:Success',
    ConditionsNotBefore: now.toISOString(),
    ConditionsNotOnOrAfter: soon,
    SubjectConfirmationDataNotOnOrAfter: soon,
    NameIDFormat: options.nameIdFormat ?? NAME_ID.email,
    NameID: nameId ?? email,
    InResponseTo: inResponseTo,
    attrMail: email,
  };
}

function newEntity(origin: string, options: NodeProviderOptions): SamlifyProvider {
  const { key, cert } = makeSigningCertificate('samlify of the tests');
  return samlify.IdentityProvider({
    entityID: `${origin}/entity`,
    privateKey: key,
    signingCert: cert,
    requestSignatureAlgorithm: ALG.rsaSha256,
    wantAuthnRequestsSigned: options.wantsSignedRequests ?? false,
    nameIDFormat: [options.nameIdFormat ?? NAME_ID.email],
    singleSignOnService: [{ Binding: BINDING.redirect, Location: `${origin}/sso` }],
    singleLogoutService: [{ Binding: BINDING.redirect, Location: `${origin}/logout` }],
    loginResponseTemplate: {
      context: TEMPLATE,
      attributes: [
        {
          name: 'mail',
          nameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic',
          valueXsiType: 'xs:string',
          valueTag: 'mail',
        },
      ],
    },
  });
}

/** Returns the page of the HTTP-POST binding (SAML Bindings §3.5): a form that submits itself. */
function autoPost(action: string, fields: Readonly<Record<string, string>>): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${escapeXml(value)}">`,
  );
  return `<!doctype html><title>Signing in</title><body onload="document.forms[0].submit()">
<form method="post" action="${escapeXml(action)}">${inputs.join('')}</form></body>`;
}

/** Escapes a text for an attribute or an element of XML or HTML. */
export function escapeXml(text: string): string {
  return text.replace(
    /[&<>"]/g,
    (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character] ?? '',
  );
}
