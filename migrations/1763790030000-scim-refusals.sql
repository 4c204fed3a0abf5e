-- The writes of identity providers that were refused, or applied only in part: one row for each SCIM token, resource and reason.
-- The audit log gets one event an hour of each row, so that a loop does not fill it. A row is deleted 30 days after the last refusal.
CREATE TABLE scim_refusals (
  token_id      uuid        NOT NULL REFERENCES scim_tokens (id) ON DELETE CASCADE,
  resource_type text        NOT NULL,
  resource_id   text        NOT NULL, -- empty: a resource that does not exist
  reason        text        NOT NULL,
  method        text        NOT NULL, -- of the last refusal, as is the detail
  detail        text        NOT NULL,
  total         bigint      NOT NULL,
  pending       bigint      NOT NULL DEFAULT 0, -- since the last event
  counted       bigint      NOT NULL,           -- by the last event
  event_id      uuid        NOT NULL,
  recorded_at   timestamptz NOT NULL DEFAULT now(),
  first_at      timestamptz NOT NULL DEFAULT now(),
  last_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (token_id, resource_type, resource_id, reason)
);
CREATE INDEX scim_refusals_last_at ON scim_refusals (last_at);
CREATE INDEX scim_refusals_of_token ON scim_refusals (token_id, last_at DESC);
