-- Tokens with svc:admin are bound to a DPoP key from now on, and last 15 minutes. The unbound ones of before end here.
DELETE FROM oauth_artifacts
WHERE model = 'AccessToken' AND payload ->> 'jkt' IS NULL
  AND 'svc:admin' = ANY (string_to_array(payload ->> 'scope', ' '));
