-- The log. Events are the only truth; aggregates, kinds and tags exist to find them, and cells may be deleted.

CREATE TABLE log (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    id         TEXT    NOT NULL,    -- a UUID: the identity of this log, also after a copy
    format     INTEGER NOT NULL,
    created_at INTEGER NOT NULL     -- microseconds since 1970, UTC
) STRICT;

-- (stream, aggregate) as one integer: a unique index over the two texts costs three times as much.
CREATE TABLE aggregates (
    aggregate    INTEGER PRIMARY KEY,
    stream_id    TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    UNIQUE (stream_id, aggregate_id)
) STRICT;

-- (stream, event type) as one integer: few of them, so that an index over it is short and grows at few places.
CREATE TABLE kinds (
    kind       INTEGER PRIMARY KEY,
    stream_id  TEXT NOT NULL,
    event_type TEXT NOT NULL,
    UNIQUE (stream_id, event_type)
) STRICT;

CREATE TABLE events (
    position       INTEGER PRIMARY KEY,                       -- 1, 2, 3 ... assigned under the append lock
    event_id       BLOB    NOT NULL UNIQUE,                   -- 16 bytes
    aggregate      INTEGER NOT NULL REFERENCES aggregates (aggregate),
    sequence       INTEGER NOT NULL,                          -- 1, 2, 3 ... in the aggregate
    event_type     TEXT    NOT NULL,
    event_version  TEXT    NOT NULL,
    data           TEXT    NOT NULL,                          -- the writer's JSON, byte for byte
    metadata       TEXT    NOT NULL,
    tags           TEXT    NOT NULL,                          -- a sorted JSON array; the table tags is its index
    created_at     INTEGER NOT NULL,                          -- microseconds since 1970, UTC; never runs backwards
    append_start   INTEGER NOT NULL,                          -- the first position of the same append
    kind           INTEGER NOT NULL REFERENCES kinds (kind),
    correlation_id BLOB,                                      -- 16 bytes, as in the metadata
    causation_id   BLOB,                                      -- 16 bytes, as in the metadata
    UNIQUE (aggregate, sequence)
) STRICT;

CREATE INDEX events_by_kind ON events (kind);
CREATE INDEX events_by_correlation ON events (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX events_by_causation ON events (causation_id) WHERE causation_id IS NOT NULL;

CREATE TABLE tags (
    tag      TEXT    NOT NULL,
    position INTEGER NOT NULL REFERENCES events (position),
    PRIMARY KEY (tag, position)
) STRICT, WITHOUT ROWID;

-- Leases, checkpoints, snapshots: whatever may be deleted at any time at the cost of repeated work.
CREATE TABLE cells (
    space      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    version    INTEGER NOT NULL, -- greater after each change
    value      TEXT    NOT NULL,
    held_until INTEGER,          -- microseconds since 1970, UTC
    PRIMARY KEY (space, key)
) STRICT;

CREATE VIEW recorded_events AS
SELECT e.position, e.event_id, a.stream_id, a.aggregate_id, e.sequence, e.event_type, e.event_version,
       e.data, e.metadata, e.tags, e.created_at, e.append_start
FROM events AS e JOIN aggregates AS a USING (aggregate);

-- "crlg": how a file is told from another program's.
PRAGMA application_id = 1668443239;
