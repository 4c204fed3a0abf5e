import {
  newestNotice,
  type UnreadNotice,
} from '#domain/audit/notices/account-notices.repository.js';
import type { ConfirmingSql } from '#domain/access/issuance/issuance-statement.repository.js';
import { keyOfSpend, type Spend } from '#domain/oauth/grants/spent-ids.repository.js';
import { byteaText, fragment } from '#platform/database/statements/sql.js';

/**
 * A kind of token: the own token of a browser session, or an OAuth access token of a grant in the
 * session.
 */
export type LookedUpToken = 'own' | 'access';

/** A token that the statement of a request must find again, with its session. */
export interface TokenCheck {
  readonly kind: LookedUpToken;
  /** The hash of the token. */
  readonly hash: Buffer;
  /**
   * The id of the DPoP proof of the request, which the statement must spend; undefined for a token
   * that is bound to no key.
   */
  readonly proof: Spend | undefined;
}

/** The facts that a statement returns about the token that it checked. */
export interface CheckedToken {
  /** True if the statement has spent the DPoP proof of the request. */
  readonly is_spent?: boolean;
  /** The newest notice about the account that the user has not read; null if there is none. */
  readonly notice?: UnreadNotice | null;
}

/** The SQL of the valid OAuth access tokens `t`, each with its grant `g`. */
export const LIVE_ACCESS_TOKEN = fragment`
    FROM oauth_artifacts t JOIN oauth_grants g ON g.id = t.grant_id AND g.client_id = t.client_id
    WHERE t.model = 'AccessToken' AND t.consumed_at IS NULL AND t.expires_at > now() AND g.expires_at > now()`;

/**
 * Returns the parts of an issuing statement that find the token of a request again. The own token
 * of a session is a column of the session. An access token must be valid, and its DPoP proof must
 * not have been used before. The proof is spent in the same statement. If two requests of a
 * statement have the same proof, it is spent for the first of them. The rows of the access token
 * and its grant are locked, so that the statement also notices an end that was committed while it
 * waited for the row of a rate limit.
 */
export const CHECKED_BY: Readonly<Record<LookedUpToken, ConfirmingSql>> = {
  own: {
    columns: { token: 'bytea' },
    session: fragment`s.token_hash = k.token AND s.client_id IS NULL`,
  },
  access: {
    columns: { token: 'bytea', proof: 'bytea', proof_ends: 'timestamptz' },
    session: fragment`true`,
    spent: fragment`
      first_proofs AS MATERIALIZED (
        SELECT DISTINCT ON (proof) proof, proof_ends, n FROM asked WHERE proof IS NOT NULL ORDER BY proof, n
      ), won_proofs AS (
        INSERT INTO oauth_replays (key, expires_at) SELECT proof, proof_ends FROM first_proofs ORDER BY proof
        ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE oauth_replays.expires_at < now()
        RETURNING key
      ), spent AS MATERIALIZED (SELECT f.n FROM first_proofs f JOIN won_proofs w ON w.key = f.proof)`,
    goneIf: fragment`NOT EXISTS (
        SELECT ${LIVE_ACCESS_TOKEN} AND t.id = k.token AND g.session_id = s.id OFFSET 0 FOR SHARE OF t, g SKIP LOCKED)
      OR k.proof IS NOT NULL AND k.n NOT IN (SELECT n FROM spent)`,
    returned: fragment`i.n IN (SELECT n FROM spent) AS is_spent, ${newestNotice(fragment`i.user_id`)} AS notice`,
  },
};

/** Returns the columns by which a request names its token to {@link CHECKED_BY}. */
export function columnsOfCheck({ hash, proof }: TokenCheck): object {
  return {
    token: byteaText(hash),
    proof: proof && `\\x${keyOfSpend(proof)}`,
    proof_ends: proof?.expiresAt,
  };
}
