-- Contents of files before and after a change, by their SHA-256, for each session
-- by itself, so that they can be deleted with its bodies. They are no part of the
-- chain: the bodies of events have the hashes. The oldest are removed to make room.
CREATE TABLE images (
  session TEXT    NOT NULL,
  sha256  BLOB    NOT NULL CHECK (length(sha256) = 32), -- of the content
  seq     INTEGER NOT NULL REFERENCES events (seq),     -- the last event that speaks of it
  size    INTEGER NOT NULL,                             -- of the content, in bytes
  stored  INTEGER NOT NULL,                             -- of what follows
  packed  BLOB    NOT NULL,                             -- deflated, unless that has size bytes
  PRIMARY KEY (session, sha256)
) STRICT;

-- What is oldest, and how much there is, without touching the contents.
CREATE INDEX images_age ON images (seq, stored);
