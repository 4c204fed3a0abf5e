import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The issuer of a token and the key that signs it, as the statement that records the token decides
 * them.
 */
export interface TokenIssuer {
  readonly label: string;
  readonly kid: string;
  /** The sealed private key in base64, and the document key that opens it. */
  readonly sealed: string;
  readonly documentKeyId: string;
}

/**
 * Writes the issuer of an organization and the key that signs now, as a jsonb object. It is NULL if
 * the tokens of the organization come from the service's own issuer. Only the rows at the time of
 * the statement decide, so that no replica signs by a withdrawn key. An issuer without a key gives
 * an object without `kid`, and then nothing may be issued.
 *
 * Of the keys whose time has come, the latest signs. If there is none, the next key signs: its time
 * may be a microsecond ahead of the statement if it was made in this moment.
 *
 * @param orgId the organization, as an SQL expression
 */
export function signingKeyOf(orgId: SqlFragment): SqlFragment {
  return fragment`(
    SELECT jsonb_build_object('label', l.label, 'kid', y.kid, 'documentKeyId', y.document_key_id,
                              'sealed', translate(encode(y.sealed, 'base64'), E'\\n', ''))
    FROM organization_issuers l
    LEFT JOIN LATERAL (
      SELECT key.kid, key.document_key_id, key.sealed FROM organization_issuer_keys key
      WHERE key.label = l.label AND key.org_id = l.org_id
        AND (key.published_until IS NULL OR key.published_until > now())
      ORDER BY key.signs_from <= now() DESC, abs(extract(epoch FROM key.signs_from - now()))
      LIMIT 1) y ON true
    WHERE l.org_id = ${orgId} AND l.released_at IS NULL AND l.active_since IS NOT NULL)`;
}
