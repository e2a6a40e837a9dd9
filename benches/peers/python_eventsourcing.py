"""Python eventsourcing on SQLite, one run: WORKLOAD SECONDS FOLDER in, one line of JSON out.

It calls the recorder, the library's face to the database, with state that is JSON already; so it does less than an
application of the library does.
"""

import json
import sys
import time
from uuid import UUID, uuid4

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

N_EVENTS = {"one-writer": 1, "one-aggregate": 100}


UNIT = "microseconds"
REST = len('{"n":,"unit":"","note":""}') + len(UNIT)
BESIDE = {
    "metadata": {"correlation_id": str(UUID(int=7)), "causation_id": str(UUID(int=8)), "extra": {"host": "bench"}},
    "tags": ["project:bench"],
}


def state(n):
    """256 bytes of data as JSON, and the rest of what a writer to the log has, in the one field there is."""
    data = {"n": n, "unit": UNIT, "note": "x" * (256 - REST - len(str(n)))}
    return json.dumps({"data": data, **BESIDE}, separators=(",", ":")).encode()


def main(workload, seconds, folder):
    store = SQLiteDatastore(f"file:{folder}/events.db")
    recorder = SQLiteApplicationRecorder(store)
    recorder.create_table()
    with store.transaction(commit=False) as cursor:
        cursor.execute("PRAGMA synchronous")
        synchronous = cursor.fetchone()[0]
        if synchronous != 2:
            sys.exit(f"synchronous is {synchronous}, not FULL")
    n_events, aggregate, n, latencies = N_EVENTS[workload], uuid4(), 0, []
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        began = time.perf_counter()
        recorder.insert_events(
            [StoredEvent(aggregate, n + i + 1, "bench:Measured", state(n + i)) for i in range(n_events)]
        )
        latencies.append(time.perf_counter() - began)
        n += n_events
    took = time.perf_counter() - started
    latencies.sort()
    at = lambda percent: latencies[len(latencies) * percent // 100] * 1e6
    print(json.dumps({"events_per_s": n / took, "p50_us": at(50), "p99_us": at(99)}))


main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
