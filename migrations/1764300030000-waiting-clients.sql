-- The earliest waiting notice of each client, in the order of the clients; no row if no notice is due. It reads one entry of an index for
-- each client. A plan that PostgreSQL made while the queue was empty sorted all notices for each client instead: 5,000 clients that hang
-- stopped the sender for up to a minute. So the function allows no sort.
CREATE FUNCTION waiting_clients(of_self_registered boolean)
RETURNS TABLE (client_id text, tenant_id uuid, user_id uuid, self_registered boolean, next_attempt_at timestamptz)
LANGUAGE plpgsql STABLE SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM logout_notices d
    WHERE d.self_registered = of_self_registered AND d.dead_at IS NULL AND d.next_attempt_at <= now())
  THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH RECURSIVE waiting AS (
      (SELECT n.client_id, n.tenant_id, n.user_id, n.self_registered, n.next_attempt_at FROM logout_notices n
       WHERE n.self_registered = of_self_registered AND n.dead_at IS NULL
       ORDER BY n.client_id, n.next_attempt_at, n.id LIMIT 1)
      UNION ALL
      SELECT x.client_id, x.tenant_id, x.user_id, x.self_registered, x.next_attempt_at
      FROM waiting w CROSS JOIN LATERAL (
        SELECT n.client_id, n.tenant_id, n.user_id, n.self_registered, n.next_attempt_at FROM logout_notices n
        WHERE n.self_registered = of_self_registered AND n.dead_at IS NULL AND n.client_id > w.client_id
        ORDER BY n.client_id, n.next_attempt_at, n.id LIMIT 1) x
    )
    SELECT * FROM waiting;
END $$;
