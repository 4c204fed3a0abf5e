import { Controller, Get, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { z } from 'zod';
import {
  isRevocable,
  type CredentialKind,
  type OwnCredential,
} from '#domain/account/own-credential.js';
import { OwnAccess } from '#domain/account/own-access.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { deviceOfEvent } from '#platform/text/device-name.js';
import { moment } from '../shell/moment.js';
import { showToUser } from '../shell/show-page.js';
import { PAGE_QUERY, pagingOf, rangeOf } from './account-page.js';

const KINDS: Readonly<Record<CredentialKind, string>> = {
  ssh: 'SSH certificate',
  aws: 'AWS token',
  github: 'GitHub token',
  kubernetes: 'Kubernetes token',
  oidc: 'Token of an application',
};

/** Serves `/account/credentials`: the credentials that were issued in the name of the user. */
@Controller('account/credentials')
@Route(PAGE_ROUTE)
export class CredentialsPageController {
  constructor(
    private readonly access: OwnAccess,
    private readonly clock: Clock,
    private readonly views: Views,
  ) {}

  @Get()
  @Route({ summary: 'Shows the credentials that were issued in the name of the user' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: PAGE_QUERY }) query: z.output<typeof PAGE_QUERY>,
    @Res() response: Response,
  ): Promise<void> {
    await showToUser(this.views, { caller, response }, 'own-credentials', async (session) => {
      const range = rangeOf(query);
      const { items, next } = await this.access.credentials(session.user.id, range);
      const now = this.clock.now();
      return {
        credentials: items.map((credential) => shown(credential, now)),
        paging: pagingOf('/account/credentials', range, next),
      };
    });
  }
}

/** Returns a credential with the texts that the template shows, such as its title and its times. */
function shown(credential: OwnCredential, now: Date) {
  const { kind, validUntil, revokedAt, serial, principals, target, clientName, userAgent } =
    credential;
  const facts = kind === 'oidc' ? [clientName ?? credential.clientId, target] : [target];
  const about = kind === 'ssh' ? [`Serial ${serial}`, `for ${principals.join(', ')}`] : facts;
  return {
    ...credential,
    title: KINDS[kind],
    device: deviceOfEvent(userAgent),
    about: about.filter((fact) => fact !== null).join(', '),
    issued: moment(credential.issuedAt),
    until: validUntil && moment(validUntil),
    state: stateOf(revokedAt, validUntil, now),
    mayRevoke: isRevocable(credential, now),
  };
}

function stateOf(revokedAt: Date | null, validUntil: Date | null, now: Date): string | undefined {
  if (revokedAt) return 'Revoked';
  if (!validUntil) return undefined;
  return validUntil > now ? 'Valid' : 'Expired';
}
