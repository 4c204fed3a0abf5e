-- The parts of a name as the identity provider of a sign-in gave them. What SCIM says of a user it keeps among their attributes.
ALTER TABLE users
  ADD COLUMN given_name  text,
  ADD COLUMN family_name text;
