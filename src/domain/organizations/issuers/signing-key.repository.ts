import { fragment, type SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The issuer of a token and the key that signs it, as chosen by the statement that records the
 * token.
 */
export interface TokenIssuer {
  readonly label: string;
  readonly kid: string;
  /** The encrypted private key in base64, and the id of the document key that decrypts it. */
  readonly sealed: string;
  readonly documentKeyId: string;
}

/**
 * Returns the SQL of the issuer of an organization and its signing key, as a jsonb object. The SQL
 * gives NULL if the tokens of the organization come from the service's own issuer. Only the rows at
 * the time of the statement decide, so that no replica signs with a withdrawn key. If an issuer has
 * no key, the object has no `kid`, and nothing may be issued.
 *
 * Among the keys whose start is not in the future, the one with the latest start signs. If there is
 * none, the next key signs. The start of a key that was just made may be a microsecond later than
 * the statement.
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
