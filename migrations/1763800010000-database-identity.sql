-- The start of PostgreSQL that the service has confirmed: no row in a database that no start of this version has met. Another start time
-- (a restart, a promoted standby, a restored backup) stops every issuance until a transaction has confirmed it.
CREATE TABLE database_identity (
  only_row          boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  started_at        timestamptz NOT NULL, -- pg_postmaster_start_time()
  system_identifier bigint,               -- null: the role may not read it
  database_oid      oid         NOT NULL,
  timeline          text,                 -- the first 8 hexadecimal digits of the name of a WAL file; null: the role may not read it
  confirmed_at      timestamptz NOT NULL,
  reconciled_at     timestamptz           -- the last time that everything on record was ended, because commits were lost
);

-- Fails the statement that meets an unconfirmed server. VOLATILE, so that the planner never calls it.
CREATE FUNCTION refuse_unconfirmed_server() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RAISE EXCEPTION 'this start of PostgreSQL is not confirmed' USING ERRCODE = 'SVC01';
END
$$;

-- The processes of the service, each of which remembers what it committed. A process that stops deletes its row.
CREATE TABLE replicas (
  id      uuid        PRIMARY KEY,
  seen_at timestamptz NOT NULL
);

-- What each process found on a server that is not confirmed yet: whether something that it had committed is missing.
CREATE TABLE replica_reports (
  replica_id     uuid        NOT NULL,
  started_at     timestamptz NOT NULL, -- pg_postmaster_start_time() of that server
  is_witness     boolean     NOT NULL, -- the process ran before the change
  is_lost        boolean     NOT NULL,
  lacks_heartbeat boolean      NOT NULL DEFAULT false, -- the last word of the process is missing, so that commits are
  highest_serial bigint,               -- the highest serial of a certificate that the process issued
  reported_at    timestamptz NOT NULL,
  PRIMARY KEY (replica_id, started_at)
);

-- Serials that are revoked without a record of a certificate, because commits may have been lost.
CREATE TABLE ssh_revoked_ranges (
  first_serial  bigint      PRIMARY KEY CHECK (first_serial > 0),
  last_serial   bigint      NOT NULL CHECK (last_serial >= first_serial),
  recorded_at   timestamptz NOT NULL,
  carried_until timestamptz NOT NULL -- every certificate of the range has expired an hour before
);
