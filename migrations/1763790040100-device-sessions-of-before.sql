-- batches of sessions by id where client_id = 'svc-cli'
-- The sessions that device codes opened before: a token, or an approved code, tells them from logins by FIDO2.
UPDATE sessions s
   SET of_device = true, expires_at = least(s.expires_at, now() + interval '1 hour')
 WHERE s.id BETWEEN current_setting('migration.first')::uuid AND current_setting('migration.last')::uuid
   AND s.client_id = 'svc-cli' AND NOT s.of_device
   AND EXISTS (SELECT FROM oauth_grants g JOIN oauth_artifacts a ON a.grant_id = g.id
               WHERE g.session_id = s.id AND g.client_id = 'svc-cli'
                 AND (a.model = 'DeviceCode' OR (a.model = 'AccessToken' AND a.payload ->> 'gty' = 'device_code')));
