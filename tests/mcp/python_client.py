"""The official Python SDK calls a server over standard streams, by the newest revision and by `initialize`."""

import asyncio
import sys

from mcp import Client, StdioServerParameters

SCENE = [
    ("join", {}, "joined"),
    ("reserve_paths", {"paths": ["a"]}, "granted"),
    ("reserve_paths", {"paths": ["../.."]}, "invalid"),
    ("reserve_paths", {}, "invalid"),
    ("list_leases", {}, "ok"),
    ("create_tasks", {"tasks": [{"key": "a", "title": "x"}]}, "created"),
    ("next_task", {"id": "backlog/99"}, "denied"),
    ("read_inbox", {}, "ok"),
    ("wait_for_events", {"timeout_seconds": 0}, "timed_out"),
    ("ask_person", {"text": "?"}, "open"),
    ("get_status", {"view": "agents"}, "ok"),
    ("leave", {}, "left"),
]


async def play(binary: str, folder: str, mode: str) -> None:
    server = StdioServerParameters(command=binary, args=["mcp"], cwd=folder, env={"AGENT_ID": f"python-{mode}"})
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == 20, tools
        for tool, arguments, status in SCENE:
            result = await client.call_tool(tool, arguments)
            assert result.structured_content["status"] == status, (tool, result)
        print(f"python SDK, {client.protocol_version}: {len(SCENE)} calls")


for mode in ["auto", "legacy"]:
    asyncio.run(play(sys.argv[1], sys.argv[2], mode))
