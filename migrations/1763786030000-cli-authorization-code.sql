-- The command line logs in with an authorization code on a loopback redirect: any port of 127.0.0.1 (RFC 8252 §7.3), which the
-- library allows for a native client. Existing grant types stay, also those that another migration adds.
UPDATE oauth_clients
   SET metadata = metadata
       || jsonb_build_object(
            'grant_types', (metadata -> 'grant_types') || '["authorization_code"]'::jsonb,
            'response_types', '["code"]'::jsonb,
            'redirect_uris', '["http://127.0.0.1/callback"]'::jsonb),
       updated_at = now()
 WHERE id = 'svc-cli' AND NOT (metadata -> 'grant_types') ? 'authorization_code';
