import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { errors, type Client, type TokenEndpointGrantContext } from 'oidc-provider';
import { nativeOrigin } from '#domain/authenticators/ceremony/native-assertion.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { KeyAuthentication } from '#domain/key-authentication/key-authentication.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { readable } from '#platform/http/errors/oauth-json.js';
import { originOf } from '#platform/http/request/client-origin.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { requestOf } from '../request/request-context.js';
import { asksForConsent } from '../storage/grant-loader.service.js';
import { Holders } from '../request/resource-owners.service.js';
import { Fido2Challenges } from './fido2-challenges.service.js';

/** An AuthenticationResponseJSON is a few hundred bytes. */
const LONGEST_ASSERTION = 16_384;

/** What a token request of the FIDO2 grant brings. */
export interface Presented {
  /** base64url of an AuthenticationResponseJSON. */
  readonly assertion: string;
  readonly state: string;
  /** The DPoP key that the request proves. */
  readonly jkt: string | undefined;
}

/** Logging in with a security key through a client instead of a browser: into a session of that client's own. */
@Injectable()
export class Fido2LogIn {
  constructor(
    private readonly manager: EntityManager,
    private readonly challenges: Fido2Challenges,
    private readonly keyAuthentication: KeyAuthentication,
    private readonly sessions: Sessions,
    private readonly holders: Holders,
  ) {}

  /**
   * @returns who logged in: this request is about them from here on
   * @throws InvalidGrant for a state or an assertion that is not good, or where this client may be issued nothing of theirs
   */
  async logIn(ctx: TokenEndpointGrantContext, presented: Presented): Promise<ResourceOwner> {
    const { client } = ctx.oidc;
    const session = await asInvalidGrant(this.#open(ctx, client, presented));
    const holder = await this.holders.ofSession(ctx, session.id);
    if (holder && !asksForConsent(client, holder)) return holder;
    await this.sessions.end(this.manager, session.id);
    throw invalidGrant(
      holder
        ? 'this client is of another organization, and nobody can be asked here'
        : 'nothing may be issued to this account',
    );
  }

  async #open(
    ctx: TokenEndpointGrantContext,
    client: Client & OwnMetadata,
    { assertion, state, jkt }: Presented,
  ): Promise<OpenedSession> {
    const issued = await this.challenges.redeem(client.clientId, state);
    if (issued.jkt !== undefined && issued.jkt !== jkt) {
      throw refused('The challenge was made for another key than this request proves.');
    }
    const login = {
      credential: readAssertion(assertion),
      challenge: issued.challenge,
      session: undefined,
      clientId: client.clientId,
      ...(client.applicationType === 'native' && { nativeOrigin: nativeOrigin(client.clientId) }),
    };
    const session = await this.keyAuthentication.logIn(login, originOf(requestOf(ctx)));
    if (!session) throw new Error('a login outside a session opens one');
    return session;
  }
}

/** @throws DomainError assertion_rejected for what is no JSON in base64url */
function readAssertion(text: string): unknown {
  try {
    if (text.length > LONGEST_ASSERTION) throw new Error('too long');
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    throw refused('The assertion must be the base64url of an AuthenticationResponseJSON.');
  }
}

/** The library logs a detail and says nothing; whoever has just touched their key is told what is wrong. */
function invalidGrant(detail: string): errors.InvalidGrant {
  return Object.assign(new errors.InvalidGrant(detail), { error_description: readable(detail) });
}

/** A refusal of ours as the token endpoint tells it (RFC 6749 §5.2); what is our own fault stays one. */
async function asInvalidGrant<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (!(error instanceof DomainError) || error.status >= 500) throw error;
    throw invalidGrant(error.detail);
  }
}

function refused(detail: string): DomainError {
  return new DomainError('assertion_rejected', detail);
}
