-- The place of an audit row, by which programs read the log in order: the epoch, the transaction, the id. Rows of before have the epoch 0
-- and the transaction 0. PostgreSQL keeps both defaults beside the table and writes no row.
ALTER TABLE audit_events
  ADD COLUMN epoch bigint NOT NULL DEFAULT 0,
  ADD COLUMN xid   xid8   NOT NULL DEFAULT '0';
ALTER TABLE audit_events ALTER COLUMN xid SET DEFAULT pg_current_xact_id();

-- The epochs that have ended, each with the last place that the database had of it. A reader beyond it has read rows that were lost.
CREATE TABLE audit_epochs (
  epoch    bigint      PRIMARY KEY,
  last_xid xid8        NOT NULL,
  last_id  uuid        NOT NULL,
  ended_at timestamptz NOT NULL
);

ALTER TABLE database_identity
  ADD COLUMN epoch      bigint NOT NULL DEFAULT 0, -- of the audit rows that are written now
  ADD COLUMN xids_since bigint NOT NULL DEFAULT 0; -- the first epoch whose transactions are of this cluster: those of a restored dump are not

-- The epoch after another one. It is the microsecond in which PostgreSQL started, if that is later, so that two copies of a database never
-- begin the same epoch.
CREATE FUNCTION audit_epoch_after(before bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT greatest(before + 1, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint)
$$;

-- The epoch of a row that is written now. What is written before a start of PostgreSQL is confirmed has the epoch that the confirmation
-- begins.
CREATE FUNCTION audit_epoch() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT CASE WHEN d.started_at = pg_postmaster_start_time() THEN d.epoch ELSE audit_epoch_after(d.epoch) END
    FROM database_identity d), 0)
$$;
-- For the statements of an earlier version, which name no epoch.
ALTER TABLE audit_events ALTER COLUMN epoch SET DEFAULT audit_epoch();

-- The epoch of a row on a server that is not confirmed: only the connections that confirm it may write. VOLATILE, so that the planner
-- never calls it.
CREATE FUNCTION audit_epoch_of_unconfirmed() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF current_setting('svc.unconfirmed', true) = 'on' OR NOT EXISTS (SELECT FROM database_identity) THEN
    RETURN audit_epoch();
  END IF;
  RAISE EXCEPTION 'this start of PostgreSQL is not confirmed' USING ERRCODE = 'SVC01';
END
$$;

-- The organizations that have audit rows, the removed ones too. It reads one entry of an index for each.
CREATE FUNCTION audited_organizations() RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
  WITH RECURSIVE found AS (
    (SELECT e.org_id FROM audit_events e WHERE e.org_id IS NOT NULL ORDER BY e.org_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.org_id FROM audit_events e WHERE e.org_id > f.org_id ORDER BY e.org_id LIMIT 1)
    FROM found f WHERE f.org_id IS NOT NULL
  )
  SELECT f.org_id FROM found f WHERE f.org_id IS NOT NULL
$$;

-- The last place of an epoch: no row if the epoch has no audit row.
CREATE FUNCTION last_audit_place(of_epoch bigint) RETURNS TABLE (xid xid8, id uuid) LANGUAGE sql STABLE AS $$
  SELECT l.xid, l.id FROM (
    (SELECT e.xid, e.id FROM audit_events e WHERE e.org_id IS NULL AND e.epoch = of_epoch
     ORDER BY e.epoch DESC, e.xid DESC, e.id DESC LIMIT 1)
    UNION ALL
    (SELECT p.xid, p.id FROM audited_organizations() o (org_id) CROSS JOIN LATERAL (
       SELECT e.xid, e.id FROM audit_events e WHERE e.org_id = o.org_id AND e.epoch = of_epoch
       ORDER BY e.epoch DESC, e.xid DESC, e.id DESC LIMIT 1) p)
  ) l ORDER BY l.xid DESC, l.id DESC LIMIT 1
$$;

-- The first epoch after another one that has an audit row; null if there is none.
CREATE FUNCTION next_audit_epoch(before bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT min(n.epoch) FROM (
    (SELECT e.epoch FROM audit_events e WHERE e.org_id IS NULL AND e.epoch > before ORDER BY e.epoch LIMIT 1)
    UNION ALL
    (SELECT p.epoch FROM audited_organizations() o (org_id) CROSS JOIN LATERAL (
       SELECT e.epoch FROM audit_events e WHERE e.org_id = o.org_id AND e.epoch > before ORDER BY e.epoch LIMIT 1) p)
  ) n
$$;

-- Ends the epoch in the transaction that confirms a server on which rows may be missing, or whose rows are from another cluster. It is a
-- trigger, so that a replica of an earlier version, which may confirm a server during an upgrade, ends the epoch too.
CREATE FUNCTION end_audit_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  last         record;
  ended        bigint := OLD.epoch;
  foreign_rows boolean;
BEGIN
  SELECT l.xid, l.id INTO last FROM last_audit_place(OLD.epoch) l;
  -- A committed row of this cluster has a lower transaction than the next one.
  foreign_rows := coalesce(last.xid >= pg_snapshot_xmax(pg_current_snapshot())
    AND last.xid IS DISTINCT FROM pg_current_xact_id_if_assigned(), false);
  IF NEW.timeline IS NOT DISTINCT FROM OLD.timeline AND NEW.database_oid = OLD.database_oid
    AND NEW.system_identifier IS NOT DISTINCT FROM OLD.system_identifier
    AND NEW.reconciled_at IS NOT DISTINCT FROM OLD.reconciled_at
    AND coalesce(current_setting('svc.audit_epoch', true), '') <> 'ends'
    AND NOT foreign_rows
    AND next_audit_epoch(OLD.epoch) IS NULL
  THEN
    RETURN NEW;
  END IF;
  NEW.epoch := audit_epoch_after(OLD.epoch);
  IF foreign_rows THEN
    NEW.xids_since := NEW.epoch;
  END IF;
  WHILE ended < NEW.epoch LOOP
    INSERT INTO audit_epochs (epoch, last_xid, last_id, ended_at)
    SELECT ended, coalesce(l.xid, '0'), coalesce(l.id, '00000000-0000-0000-0000-000000000000'), clock_timestamp()
    FROM (VALUES (ended)) v (epoch) LEFT JOIN last_audit_place(v.epoch) l ON true
    ON CONFLICT (epoch) DO NOTHING;
    ended := coalesce(next_audit_epoch(ended), NEW.epoch);
  END LOOP;
  RETURN NEW;
END
$$;
CREATE TRIGGER database_identity_epoch BEFORE UPDATE ON database_identity FOR EACH ROW
  WHEN (NEW.started_at <> 'epoch' AND NEW.confirmed_at IS DISTINCT FROM OLD.confirmed_at)
  EXECUTE FUNCTION end_audit_epoch();
