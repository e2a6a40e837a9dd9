-- Finding events by stream, type, correlation and cause; and cells, small values beside the log.

-- (stream, event type) as one integer: few of them, so that an index over it is short and grows at few places.
CREATE TABLE kinds (
    kind       INTEGER PRIMARY KEY,
    stream_id  TEXT NOT NULL,
    event_type TEXT NOT NULL,
    UNIQUE (stream_id, event_type)
) STRICT;

INSERT INTO kinds (stream_id, event_type)
SELECT a.stream_id, e.event_type
FROM events AS e JOIN aggregates AS a USING (aggregate)
GROUP BY a.stream_id, e.event_type ORDER BY min(e.position);

ALTER TABLE events ADD COLUMN kind INTEGER REFERENCES kinds (kind);
ALTER TABLE events ADD COLUMN correlation_id BLOB; -- 16 bytes, as in the metadata

-- `correlation_of` and `causation_of` are the reader of metadata itself, so that a query finds what a scan would.
UPDATE events SET
    kind = (SELECT k.kind FROM aggregates AS a JOIN kinds AS k ON k.stream_id = a.stream_id
            WHERE a.aggregate = events.aggregate AND k.event_type = events.event_type),
    correlation_id = correlation_of(metadata);

-- 16 bytes, as in the metadata. The name of the check is what a program of before reads that still has the log open: it
-- writes no kinds, and must end.
ALTER TABLE events ADD COLUMN causation_id BLOB
    CONSTRAINT "the log was brought to a newer form, end this older program" CHECK (kind IS NOT NULL);
UPDATE events SET causation_id = causation_of(metadata) WHERE causation_of(metadata) IS NOT NULL;

CREATE INDEX events_by_kind ON events (kind);
CREATE INDEX events_by_correlation ON events (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX events_by_causation ON events (causation_id) WHERE causation_id IS NOT NULL;

-- Leases, checkpoints, snapshots: whatever may be deleted at any time at the cost of repeated work.
CREATE TABLE cells (
    space      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    version    INTEGER NOT NULL, -- greater after each change
    value      TEXT    NOT NULL,
    held_until INTEGER,          -- microseconds since 1970, UTC
    PRIMARY KEY (space, key)
) STRICT;
