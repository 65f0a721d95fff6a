-- The chain. A row is never changed and never removed; what may be removed is
-- in bodies. The triggers guard against our own mistakes only: whoever can
-- write to the file can drop them, and then the hashes tell.
CREATE TABLE events (
  seq          INTEGER PRIMARY KEY CHECK (seq > 0),
  session      TEXT    NOT NULL CHECK (session <> ''),
  time         INTEGER NOT NULL, -- nanoseconds since 1970, UTC
  type         TEXT    NOT NULL CHECK (type <> ''),
  turn         INTEGER NOT NULL,
  step         INTEGER NOT NULL,
  call         TEXT    NOT NULL, -- '' when the event belongs to no call
  digest       BLOB    NOT NULL CHECK (length(digest) = 32),
  prev         BLOB    NOT NULL CHECK (length(prev) = 32),
  session_prev BLOB    NOT NULL CHECK (length(session_prev) = 32),
  hash         BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- One session in order.
CREATE INDEX events_session ON events (session, seq);
-- Listing, and whether a call has a result, without touching the rows.
CREATE INDEX events_type ON events (session, type, call, seq);
-- Every intended call of the store.
CREATE INDEX events_intended ON events (seq) WHERE type = 'call.intended';

-- Bodies and their salts, which can be deleted without breaking the chain.
CREATE TABLE bodies (
  seq  INTEGER PRIMARY KEY REFERENCES events (seq),
  salt BLOB NOT NULL CHECK (length(salt) = 16),
  body BLOB NOT NULL
) STRICT;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT raise(ABORT, 'events are never changed'); END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are never removed'); END;

-- Also stops INSERT OR REPLACE, which does not fire the trigger above.
CREATE TRIGGER events_in_order BEFORE INSERT ON events
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM events)
BEGIN SELECT raise(ABORT, 'events are appended one after the other'); END;

CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies
BEGIN SELECT raise(ABORT, 'bodies are never changed'); END;

CREATE TRIGGER bodies_no_replace BEFORE INSERT ON bodies
WHEN EXISTS (SELECT 1 FROM bodies WHERE seq = NEW.seq)
BEGIN SELECT raise(ABORT, 'bodies are never changed'); END;
