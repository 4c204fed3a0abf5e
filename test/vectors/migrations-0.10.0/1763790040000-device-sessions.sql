-- A session that an approved device code opened. Its touch was made in a browser, perhaps for a code that a stranger sent: it meets
-- no demand for a touch.
ALTER TABLE sessions ADD COLUMN of_device boolean NOT NULL DEFAULT false;
CREATE INDEX sessions_of_device ON sessions (user_id) WHERE of_device;

-- Whether the people of an organization may approve device codes.
ALTER TABLE organizations ADD COLUMN device_grant boolean NOT NULL DEFAULT true;

-- The sessions that device codes opened before: a token, or an approved code, tells them from logins by FIDO2.
UPDATE sessions s
   SET of_device = true, expires_at = least(s.expires_at, now() + interval '1 hour')
 WHERE s.client_id = 'svc-cli'
   AND EXISTS (SELECT FROM oauth_grants g JOIN oauth_artifacts a ON a.grant_id = g.id
               WHERE g.session_id = s.id AND g.client_id = 'svc-cli'
                 AND (a.model = 'DeviceCode' OR (a.model = 'AccessToken' AND a.payload ->> 'gty' = 'device_code')));

-- Their tokens for the administration of organizations and applications end here. Codes that wait are narrowed when they are redeemed.
DELETE FROM oauth_artifacts
 WHERE model = 'AccessToken' AND client_id = 'svc-cli' AND payload ->> 'gty' = 'device_code'
   AND string_to_array(payload ->> 'scope', ' ') && ARRAY['svc:admin', 'svc:applications'];
