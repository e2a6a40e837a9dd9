-- The log. Events are the only truth; aggregates, kinds and tags exist to find them, and cells may be deleted.
-- It is made in the schema that the search path names. Only who holds the append lock writes here, which is why no
-- table refers to another: each reference would cost a lock and a look for every event.

CREATE TABLE log (
    one        BIGINT PRIMARY KEY CHECK (one = 1),
    id         UUID   NOT NULL,     -- the identity of this log, also after a copy
    format     BIGINT NOT NULL,
    created_at BIGINT NOT NULL      -- microseconds since 1970, UTC
);

-- One row that is locked FOR UPDATE by whoever appends, and never changed.
CREATE TABLE append_lock (
    one BIGINT PRIMARY KEY CHECK (one = 1)
);

INSERT INTO append_lock (one) VALUES (1);

-- (stream, aggregate) as one integer: a unique index over the two texts costs three times as much.
CREATE TABLE aggregates (
    aggregate    BIGINT PRIMARY KEY,
    stream_id    TEXT COLLATE "C" NOT NULL,
    aggregate_id TEXT COLLATE "C" NOT NULL,
    UNIQUE (stream_id, aggregate_id)
);

-- (stream, event type) as one integer: few of them.
CREATE TABLE kinds (
    kind       BIGINT PRIMARY KEY,
    stream_id  TEXT COLLATE "C" NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    UNIQUE (stream_id, event_type)
);

CREATE TABLE events (
    position       BIGINT PRIMARY KEY,              -- 1, 2, 3 ... assigned under the append lock
    event_id       UUID   NOT NULL UNIQUE,
    aggregate      BIGINT NOT NULL,
    kind           BIGINT NOT NULL,
    sequence       BIGINT NOT NULL,                 -- 1, 2, 3 ... in the aggregate
    created_at     BIGINT NOT NULL,                 -- microseconds since 1970, UTC; never runs backwards
    append_start   BIGINT NOT NULL,                 -- the first position of the same append
    correlation_id UUID,                            -- as in the metadata
    causation_id   UUID,                            -- as in the metadata
    event_type     TEXT COLLATE "C" NOT NULL,
    event_version  TEXT COLLATE "C" NOT NULL,
    tags           TEXT COLLATE "C" NOT NULL,       -- a sorted JSON array; the table tags is its index
    metadata       TEXT COLLATE "C" NOT NULL,
    data           TEXT COLLATE "C" NOT NULL,       -- the writer's JSON, byte for byte
    UNIQUE (aggregate, sequence)
) WITH (
    -- Rows are only added: freeze them early and in small steps, and know their number.
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0
);

CREATE INDEX events_by_kind ON events (kind, position);
CREATE INDEX events_by_correlation ON events (correlation_id, position) WHERE correlation_id IS NOT NULL;
CREATE INDEX events_by_causation ON events (causation_id, position) WHERE causation_id IS NOT NULL;

CREATE TABLE tags (
    tag      TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (tag, position)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0
);

-- Leases, checkpoints, snapshots: whatever may be deleted at any time at the cost of repeated work.
CREATE TABLE cells (
    space      TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,                     -- greater after each change
    held_until BIGINT,                              -- microseconds since 1970, UTC
    value      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space, key)
) WITH (
    -- Rows are changed in place, over and over.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 1000
);

-- The last sequence of an aggregate up to a position; 0 when it has none. Positions grow with sequences.
CREATE FUNCTION last_sequence(of_aggregate BIGINT, up_to BIGINT) RETURNS BIGINT LANGUAGE plpgsql STABLE AS $$
DECLARE
    low BIGINT := 0;
    high BIGINT;
    middle BIGINT;
    found BIGINT;
BEGIN
    SELECT sequence, position INTO high, found FROM events WHERE aggregate = of_aggregate ORDER BY sequence DESC LIMIT 1;
    IF high IS NULL THEN
        RETURN 0;
    ELSIF found <= up_to THEN
        RETURN high;
    END IF;
    WHILE low < high LOOP
        middle := low + (high - low + 1) / 2;
        SELECT position INTO found FROM events WHERE aggregate = of_aggregate AND sequence = middle;
        IF found <= up_to THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- The last position in (low, high] whose event was made before a moment, or low. Time never runs backwards in a log.
CREATE FUNCTION last_before(moment BIGINT, low BIGINT, high BIGINT) RETURNS BIGINT LANGUAGE plpgsql STABLE AS $$
DECLARE
    middle BIGINT;
    found BIGINT;
BEGIN
    WHILE low < high LOOP
        middle := low + (high - low + 1) / 2;
        SELECT created_at INTO found FROM events WHERE position = middle;
        IF found < moment THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- JSON may be more than jsonb takes, such as \u0000 in captured output. Then this is null, and all other rows can be read.
CREATE FUNCTION as_jsonb(json TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN json::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- For people, and for their tools: the texts, and the same as jsonb and as a time with its zone.
CREATE VIEW recorded_events AS
SELECT e.position, e.event_id, a.stream_id, a.aggregate_id, e.sequence, e.event_type, e.event_version,
       e.data, e.metadata, e.tags, e.created_at, e.append_start, e.correlation_id, e.causation_id,
       as_jsonb(e.data) AS data_json, as_jsonb(e.metadata) AS metadata_json,
       timestamptz 'epoch' + e.created_at * interval '1 microsecond' AS created
FROM events AS e JOIN aggregates AS a USING (aggregate);
