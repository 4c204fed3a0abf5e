-- When the log last named a use of the token from an address that the token does not allow.
ALTER TABLE api_tokens ADD COLUMN refusal_noted_at timestamptz;
