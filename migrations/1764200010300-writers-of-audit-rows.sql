-- Waits for the transactions that write audit rows, and keeps new ones waiting until the end of the transaction, which ends the epoch: a
-- statement that began before would write a row of the ended epoch after the first ones of the next. No statement of the service runs for
-- 20 s. A prepared transaction may keep its lock for ever. It has its place already, and the feed waits for it.
CREATE FUNCTION hold_audit_writers() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  PERFORM set_config('lock_timeout', '20s', true);
  LOCK TABLE audit_events IN SHARE ROW EXCLUSIVE MODE;
  PERFORM set_config('lock_timeout', before, true);
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;
