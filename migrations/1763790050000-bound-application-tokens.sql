-- Tokens with svc:applications are bound to a DPoP key from now on, and last 15 minutes. The others of before end here.
DELETE FROM oauth_artifacts
WHERE model = 'AccessToken' AND (payload ->> 'jkt' IS NULL OR created_at < now() - interval '15 minutes')
  AND 'svc:applications' = ANY (string_to_array(payload ->> 'scope', ' '));
