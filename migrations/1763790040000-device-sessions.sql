-- A session that an approved device code opened. Its touch was made in a browser, perhaps for a code that a stranger sent: it meets
-- no demand for a touch.
ALTER TABLE sessions ADD COLUMN of_device boolean NOT NULL DEFAULT false;

-- Whether the people of an organization may approve device codes.
ALTER TABLE organizations ADD COLUMN device_grant boolean NOT NULL DEFAULT true;
