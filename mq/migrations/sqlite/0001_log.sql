-- The log. Events are the only truth; aggregates and tags exist to find them.

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

CREATE TABLE events (
    position      INTEGER PRIMARY KEY,                        -- 1, 2, 3 ... assigned under the append lock
    event_id      BLOB    NOT NULL UNIQUE,                    -- 16 bytes
    aggregate     INTEGER NOT NULL REFERENCES aggregates (aggregate),
    sequence      INTEGER NOT NULL,                           -- 1, 2, 3 ... in the aggregate
    event_type    TEXT    NOT NULL,
    event_version TEXT    NOT NULL,
    data          TEXT    NOT NULL,                           -- the writer's JSON, byte for byte
    metadata      TEXT    NOT NULL,
    tags          TEXT    NOT NULL,                           -- a sorted JSON array; the table tags is its index
    created_at    INTEGER NOT NULL,                           -- microseconds since 1970, UTC; never runs backwards
    append_start  INTEGER NOT NULL,                           -- the first position of the same append
    UNIQUE (aggregate, sequence)
) STRICT;

CREATE TABLE tags (
    tag      TEXT    NOT NULL,
    position INTEGER NOT NULL REFERENCES events (position),
    PRIMARY KEY (tag, position)
) STRICT, WITHOUT ROWID;

CREATE VIEW recorded_events AS
SELECT e.position, e.event_id, a.stream_id, a.aggregate_id, e.sequence, e.event_type, e.event_version,
       e.data, e.metadata, e.tags, e.created_at, e.append_start
FROM events AS e JOIN aggregates AS a USING (aggregate);

-- "crlg": how a file is told from another program's.
PRAGMA application_id = 1668443239;
