-- batches of oauth_artifacts by id where model = 'AccessToken'
-- The tokens of device codes for the administration of organizations and applications end here. Codes that wait are narrowed when they
-- are redeemed.
DELETE FROM oauth_artifacts
 WHERE id BETWEEN current_setting('migration.first')::bytea AND current_setting('migration.last')::bytea
   AND model = 'AccessToken' AND client_id = 'svc-cli' AND payload ->> 'gty' = 'device_code'
   AND string_to_array(payload ->> 'scope', ' ') && ARRAY['svc:admin', 'svc:applications'];
