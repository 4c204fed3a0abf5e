-- The acts that a process did again, because the database had lost their commits. The audit row of an act is missing then, and this row
-- lets one process alone do it again.
CREATE TABLE redone_acts (
  audit_id  uuid        PRIMARY KEY, -- of the lost audit row
  redone_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX redone_acts_time ON redone_acts (redone_at);

-- The users who have logged in with their identity provider and their key since everything on record was ended. No foreign key: the
-- table of users is not locked for it, and no id of a user is used again.
CREATE TABLE logins_since_reconciliation (
  user_id       uuid        PRIMARY KEY,
  reconciled_at timestamptz NOT NULL -- of database_identity: a row of an earlier reconciliation says nothing
);

-- SCIM tokens and secrets of applications that were made or ended in the hour before commits were lost. An admin compares them with
-- what should be valid, and confirms each.
CREATE TABLE secrets_to_confirm (
  id           uuid        PRIMARY KEY,
  org_id       uuid        NOT NULL, -- no foreign key: the table of organizations is not locked for it
  secret       text        NOT NULL CHECK (secret IN ('scim_token', 'client_secret')),
  secret_id    uuid        NOT NULL,
  client_id    text,                 -- the application of a client secret
  name         text        NOT NULL,
  act          text        NOT NULL CHECK (act IN ('made', 'ended')),
  is_lost      boolean     NOT NULL, -- the database had lost the act
  happened_at  timestamptz NOT NULL,
  listed_at    timestamptz NOT NULL DEFAULT now(),
  confirmed_at timestamptz,
  confirmed_by uuid                  -- the admin, who may be removed
);
CREATE UNIQUE INDEX secrets_to_confirm_act ON secrets_to_confirm (secret, secret_id, act);
CREATE INDEX secrets_to_confirm_open ON secrets_to_confirm (org_id, happened_at DESC, id) WHERE confirmed_at IS NULL;
