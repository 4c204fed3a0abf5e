-- The answer is the same as before. PostgreSQL plans the query of a function in SQL again for each statement that calls it, which took
-- longer than the look-up of a session. The plan of a function in PL/pgSQL is made once for a connection.
CREATE OR REPLACE FUNCTION is_own_address(org_id uuid, email text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT o.is_own FROM address_ownership($1, $2) o);
END
$$;
