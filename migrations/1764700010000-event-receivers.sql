-- The receivers to which the service sends the audit log of an organization, in the order of the feed. A receiver has a cursor into the
-- log: no row of a queue is written for an event, so that what is recorded costs nothing more.
CREATE TABLE event_receivers (
  id               uuid        PRIMARY KEY,
  org_id           uuid        NOT NULL, -- no foreign key: the table of organizations is not locked for it
  kind             text        NOT NULL CHECK (kind IN ('webhook', 'otlp')),
  name             text        NOT NULL,
  url              text        NOT NULL,
  types            text[],               -- as the admin named them: types, kinds and groups; NULL: every event
  header_name      text,
  header_sealed    text,                 -- the value of the header, sealed under the root secret
  secret_sealed    text,                 -- signs webhooks, sealed under the root secret
  old_secret_sealed text,                -- signs beside it after a rotation, sealed in the same way
  old_secret_until  timestamptz,
  status           text        NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'paused')),
  created_by       uuid        NOT NULL, -- no foreign key: the row outlives the admin who made it
  address_by       uuid        NOT NULL, -- the admin who last set the address or the header, or resumed it; without access it is paused
  created_by_email text,
  created_at       timestamptz NOT NULL DEFAULT now(),
  tested_at        timestamptz,
  -- The place of the last event that was taken, or became a dead letter.
  epoch            bigint      NOT NULL,
  xid              xid8        NOT NULL,
  event_id         uuid        NOT NULL,
  batch            int         NOT NULL DEFAULT 1,           -- the most events of the next request
  -- One replica at a time sends to a receiver. A try settles only its own lease.
  lease            int         NOT NULL DEFAULT 0,
  leased_until     timestamptz NOT NULL DEFAULT '-infinity',
  -- The tries of the events after the place.
  tries            int         NOT NULL DEFAULT 0,
  refusals         int         NOT NULL DEFAULT 0,
  next_attempt_at  timestamptz NOT NULL DEFAULT '-infinity',
  give_up_at       timestamptz,                              -- a day after the first try
  last_result      text,
  failing_since    timestamptz,                              -- the first failure since the last event was taken
  last_tried_at    timestamptz,
  last_taken_at    timestamptz,
  rejected_at      timestamptz,                              -- when the log last told of a partial success
  CHECK ((kind = 'webhook') = (secret_sealed IS NOT NULL)),
  CHECK ((header_name IS NULL) = (header_sealed IS NULL))
);
CREATE INDEX event_receivers_org ON event_receivers (org_id, id);
CREATE INDEX event_receivers_address_by ON event_receivers (address_by) WHERE status = 'enabled';

-- Events that a receiver did not take within a day: dead letters, and those that an admin sends again.
CREATE TABLE undelivered_events (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  receiver_id     uuid        NOT NULL REFERENCES event_receivers (id) ON DELETE CASCADE,
  event_id        uuid        NOT NULL, -- the audit event, which retention may delete before
  type            text        NOT NULL,
  event_at        timestamptz NOT NULL,
  dead_at         timestamptz,          -- NULL: it waits to be sent again
  tries           int         NOT NULL DEFAULT 0,
  refusals        int         NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT '-infinity',
  give_up_at      timestamptz,
  last_result     text,
  UNIQUE (receiver_id, event_id)
);
CREATE INDEX undelivered_events_due ON undelivered_events (receiver_id, next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX undelivered_events_dead ON undelivered_events (dead_at) WHERE dead_at IS NOT NULL;

-- What happened to an account that its user, or the admins of the organization, must hear of. The transaction of the change writes it, and
-- the user removes it when it was read.
CREATE TABLE account_notices (
  user_id    uuid        NOT NULL, -- no foreign key: the rows of other admins are not locked for it; the clean-up deletes what is left
  id         uuid        NOT NULL,
  audit_id   uuid        NOT NULL,
  type       text        NOT NULL,
  actor_id   uuid,
  subject_id uuid,
  actor      text,                 -- the addresses at the time
  subject    text,
  name       text,                 -- of the key, the token or the receiver
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, id)
);
CREATE INDEX account_notices_age ON account_notices (created_at);
