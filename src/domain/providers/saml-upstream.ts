import { hash } from 'node:crypto';
import { parseAssertion, readAssertion, type AssertedSubject } from './saml/assertion.js';
import { authnRequestUrl } from './saml/authn-request.js';
import { MetadataFault, type IdpMetadata } from './saml/metadata/idp-metadata.js';
import { collectIdentity, spendAssertion } from './saml/received-assertions.repository.js';
import { keptName, REQUEST_TTL, type RequestIds } from './saml/request-ids.js';
import { assertEnvelope, failed, type SamlResponse } from './saml/saml-response.js';
import { isSigned, UnknownSigningKey, verifiedBytes } from './saml/signed-assertion.js';
import type { SpKeys } from './saml/sp-keys/sp-keys.js';
import { spMetadata } from './saml/metadata/sp-metadata.js';
import { attributeOf, type XmlElement } from './saml/xml-document.js';
import { invalidState } from '#domain/access/single-use/single-use-states.service.js';
import type { Clock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import type { SamlProviderConfig } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { identityOf } from './saml-identity.js';
import { SamlMetadata } from './saml/metadata/provider-metadata.js';
import { NO_TENANTS } from './tenancy.js';
import type { UpstreamIdentity } from './upstream-identity.js';
import type { Arrival, Departure, Remembered, UpstreamProvider } from './upstream-provider.js';

export { parseSamlResponse } from './saml/saml-response.js';

/** The parts that all SAML providers of this service share. */
export interface SamlParts {
  /**
   * The URL of this service to which browsers post SAML responses (the assertion consumer service).
   */
  readonly acsUrl: string;
  readonly http: UpstreamHttp;
  readonly clock: Clock;
  readonly requestIds: RequestIds;
  readonly spKeys: SpKeys;
  readonly manager: EntityManager;
}

/**
 * The result for a SAML response. `accepted`: the identity is stored, and the browser that began
 * the sign-in collects it by `handle`, a random secret. `refused`: `error` is the reason why the
 * user cannot sign in.
 */
export type ReceivedResponse =
  | { readonly kind: 'accepted'; readonly handle: string; readonly requestId: string }
  | {
      readonly kind: 'refused';
      readonly provider: string;
      readonly error: DomainError;
    };

/**
 * The seconds for which a used assertion is remembered, so that it cannot be used again. After that
 * time every replica refuses the assertion without this memory, because the request that the
 * assertion answers has expired.
 */
const REMEMBERED_FOR = REQUEST_TTL + 300;

/**
 * A SAML 2.0 identity provider. Users sign in by web browser single sign-on (SAML Profiles §4.1).
 * Only this service can begin a sign-in, not the provider.
 */
export class SamlUpstream implements UpstreamProvider {
  readonly slug: string;
  readonly name: string;
  readonly issuer: string;
  readonly tenancy = NO_TENANTS;
  readonly domains: readonly string[] | undefined;
  readonly origin: string;

  private constructor(
    private readonly settings: SamlProviderConfig,
    private readonly parts: SamlParts,
    private readonly metadata: SamlMetadata,
  ) {
    this.slug = settings.slug;
    this.name = settings.name;
    this.issuer = metadata.entityId;
    this.domains = settings.domains;
    this.origin = metadata.origin;
  }

  /**
   * Fetches the metadata of the provider and makes the provider from it.
   *
   * @throws ConfigProblems if the provider cannot be used as configured
   */
  static async connect(settings: SamlProviderConfig, parts: SamlParts): Promise<SamlUpstream> {
    try {
      return new SamlUpstream(settings, parts, await SamlMetadata.open(settings, parts));
    } catch (error) {
      if (!(error instanceof MetadataFault)) throw error;
      const variable = providerVariable(settings.slug, 'METADATA_URL');
      throw new ConfigProblems([`${variable}: the metadata ${error.message}`]);
    }
  }

  /** The entity id (the name in SAML) under which the provider knows this service. */
  get spEntityId(): string {
    return this.settings.spEntityId;
  }

  remember(): Remembered {
    return { requestId: this.parts.requestIds.make(this.slug) };
  }

  keptUnder({ requestId = '' }: Remembered): string {
    return keptName(requestId);
  }

  async depart({ remembered }: Departure): Promise<URL> {
    const { wantsSignedRequests, ssoUrl } = await this.metadata.valid();
    return authnRequestUrl({
      id: remembered['requestId'] ?? '',
      ssoUrl,
      spEntityId: this.settings.spEntityId,
      acsUrl: this.parts.acsUrl,
      signingKey: wantsSignedRequests ? this.parts.spKeys.signingKey() : undefined,
    });
  }

  /**
   * Returns true if a SAML response answers a recent request that this service sent to this
   * provider.
   */
  isAnsweredBy({ inResponseTo }: SamlResponse): boolean {
    return this.parts.requestIds.isRecent(this.slug, inResponseTo);
  }

  /**
   * Verifies a SAML response, marks its assertion as used, and stores the identity for the browser
   * that began the sign-in. If no key of the provider signed the response, nothing is stored, so
   * that other parties cannot fill the table.
   *
   * @throws DomainError sign_in_failed, or upstream_unavailable if the metadata has expired
   */
  async receive(response: SamlResponse): Promise<ReceivedResponse> {
    const { issuer: entityId } = this;
    const requestId = response.inResponseTo;
    assertEnvelope(response, { acsUrl: this.parts.acsUrl, issuer: entityId, requestId });
    const assertion = await this.#verified(response);
    const assertionId = attributeOf(assertion, 'ID') ?? '';
    const identity = attempt(() =>
      identityOf(this.#subjectOf(assertion, requestId), this.settings, entityId),
    );
    const handle = systemRandom.token();
    const isFirst = await spendAssertion(
      this.parts.manager,
      {
        issuer: entityId,
        assertionId,
        requestId,
        collectable: identity instanceof DomainError ? null : { handle: hashOf(handle), identity },
      },
      new Date(this.parts.clock.milliseconds() + REMEMBERED_FOR * 1000),
    );
    if (!isFirst) throw failed('Its assertion was used before. Start again.');
    return identity instanceof DomainError
      ? { kind: 'refused', provider: this.slug, error: identity }
      : { kind: 'accepted', handle, requestId };
  }

  /**
   * Returns the identity that an earlier SAML response stored for this sign-in.
   *
   * @throws DomainError invalid_state if none is stored
   */
  async arrive({ parameters, remembered }: Arrival): Promise<UpstreamIdentity> {
    const identity = await collectIdentity(this.parts.manager, {
      handle: hashOf(parameters.get('response') ?? ''),
      requestId: remembered['requestId'] ?? '',
      now: this.parts.clock.now(),
    });
    if (identity === undefined || identity === null) throw invalidState();
    return identity as UpstreamIdentity;
  }

  refresh(): Promise<void> {
    return this.metadata.refresh();
  }

  refreshIfDue(): Promise<void> {
    return this.metadata.refreshIfDue();
  }

  /**
   * Verifies the signatures of a SAML response and returns its assertion. If an unknown key signed,
   * the metadata is read again, because the provider may have replaced its key.
   *
   * @throws DomainError sign_in_failed, or upstream_unavailable if the metadata has expired
   */
  async #verified(response: SamlResponse): Promise<XmlElement> {
    const known = await this.metadata.fresh();
    try {
      return verifiedAssertion(response, known.keys);
    } catch (error) {
      if (!(error instanceof UnknownSigningKey)) throw error;
      const renewed = await this.metadata.withOtherKeys(known);
      if (!renewed) throw error;
      return verifiedAssertion(response, renewed.keys);
    }
  }

  /**
   * Checks a verified assertion against the request that it answers, and reads its subject, which
   * names the user.
   */
  #subjectOf(assertion: XmlElement, requestId: string): AssertedSubject {
    return readAssertion(assertion, {
      issuer: this.issuer,
      audience: this.settings.spEntityId,
      acsUrl: this.parts.acsUrl,
      requestId,
      now: this.parts.clock.milliseconds(),
    });
  }

  /** Returns the metadata of this service for the provider. */
  serviceMetadata(): string {
    return spMetadata({
      entityId: this.settings.spEntityId,
      acsUrl: this.parts.acsUrl,
      signsRequests: this.metadata.wantsSignedRequests,
      needsAddress: this.settings.emailAttribute === undefined,
      certificates: this.parts.spKeys.certificates(),
    });
  }
}

/**
 * Returns the assertion of a SAML response, parsed from exactly the bytes that its signature
 * covers.
 *
 * @throws DomainError sign_in_failed if the response or its assertion is signed by none of the keys
 */
function verifiedAssertion(
  { document, response, assertion }: SamlResponse,
  keys: IdpMetadata['keys'],
): XmlElement {
  // A signature of the whole response is optional. If there is one and it is wrong, the response
  // was changed and is refused.
  if (isSigned(response)) verifiedBytes(document, response, keys);
  return parseAssertion(verifiedBytes(document, assertion, keys));
}

/**
 * Returns the result of `read`, or the DomainError that it throws. The error is not thrown yet,
 * because a refused assertion must also be marked as used.
 */
function attempt<T>(read: () => T): T | DomainError {
  try {
    return read();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}

function hashOf(handle: string): Buffer {
  return hash('sha256', handle, 'buffer');
}
