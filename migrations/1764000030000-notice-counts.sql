-- How many notices each client took, and how many of them became dead letters, by day. The statement that settles a notice counts it.
-- No foreign keys: a notice that is settled waits for no change of its client.
CREATE TABLE notice_counts (
  client_id       text    NOT NULL,
  kind            text    NOT NULL,
  day             date    NOT NULL DEFAULT current_date,
  self_registered boolean NOT NULL,
  sent            bigint  NOT NULL DEFAULT 0,
  failed          bigint  NOT NULL DEFAULT 0,
  PRIMARY KEY (client_id, kind, day)
);
CREATE INDEX notice_counts_day ON notice_counts (day);
