import { Injectable } from '@nestjs/common';
import { errors, type Account, type KoaContextWithOIDC } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { accountClaims, epochSeconds } from '../protocol/claims.js';
import { Holders } from '../request/resource-owners.service.js';

type LibrarySession = NonNullable<KoaContextWithOIDC['oidc']['session']>;

/**
 * Between the session of a browser, which alone says who somebody is, and the library's own, which it builds its flow on:
 * the one follows the other in every request, and never stands alone.
 */
@Injectable()
export class SessionBridge {
  constructor(private readonly holders: Holders) {}

  /**
   * Makes the library's session what the browser's is: awaited in every authorization request before any prompt is
   * considered. Where there is no session of a browser (a pushed request, a device) there is nothing to do.
   */
  async follow(ctx: KoaContextWithOIDC): Promise<void> {
    const { session } = ctx.oidc;
    if (!session) return;
    const holder = await this.holders.ofBrowser(ctx);
    if (session.accountId !== holder?.userId) forgetAccount(session);
    if (!holder || isSameLogin(session, holder)) return;
    session.loginAccount(loginOf(holder));
  }

  /**
   * The account of a subject: of the grant that a code or token hangs on, or else of the browser that asks.
   *
   * @returns undefined for a code or token whose person may not be issued anything any more
   * @throws LoginRequired when the browser's session has ended, or is another person's by now
   */
  async findAccount(
    ctx: KoaContextWithOIDC,
    subject: string,
    source?: object,
  ): Promise<Account | undefined> {
    const grantId = source && 'grantId' in source ? source.grantId : undefined;
    if (typeof grantId === 'string') {
      const holder = await this.holders.ofGrant(ctx, grantId);
      return holder?.userId === subject ? account(holder) : undefined;
    }
    const holder = await this.holders.ofBrowser(ctx);
    if (holder?.userId !== subject) throw new errors.LoginRequired('the session has ended');
    return account(holder);
  }
}

/** A login as the library takes it: the moment is that of the assertion. */
export function loginOf(holder: ResourceOwner) {
  return {
    accountId: holder.userId,
    loginTs: epochSeconds(holder.authTime),
    amr: [...holder.amr],
    ...(holder.acr === null ? {} : { acr: holder.acr }),
  };
}

function account(holder: ResourceOwner): Account {
  return { accountId: holder.userId, claims: () => accountClaims(holder) };
}

function isSameLogin(session: LibrarySession, holder: ResourceOwner): boolean {
  return (
    session.accountId === holder.userId &&
    session.loginTs === epochSeconds(holder.authTime) &&
    session.acr === (holder.acr ?? undefined) &&
    session.amr?.join() === holder.amr.join()
  );
}

/** Takes an account off the library's session, and what clients had of it. */
export function forgetAccount(session: LibrarySession): void {
  if (session.accountId === undefined) return;
  for (const name of ['accountId', 'loginTs', 'acr', 'amr', 'authorizations'] as const) {
    delete session[name];
  }
  Object.assign(session, { touched: true }); // so that it is written
}
