"""Talks to stockade model serve, which plays client.jsonl, with a client of others.

    client.py openai|litellm BASE_URL KEY

Each chunk is checked with OpenAI's own type of it, see check.py, and what they say together
with what the script says.
"""

import json
import sys

from check import problems

library, base_url, key = sys.argv[1:]
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Looks.", "parameters": {"type": "object", "properties": {}}}}
    for name in ("glob", "file_read")
]
if library == "openai":
    import openai

    client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0)
    create, failure = client.chat.completions.create, openai.RateLimitError
    model = client.models.list().data[0].id
    try:
        openai.OpenAI(base_url=base_url, api_key="sk-another", max_retries=0).models.list()
        sys.exit("another key is taken")
    except openai.AuthenticationError:
        pass
else:
    import litellm

    def create(**request):
        return litellm.completion(api_base=base_url, api_key=key, num_retries=0, **request)

    failure, model = litellm.RateLimitError, "openai/offline"


def ask(messages):
    """What the chunks of an answer say together."""
    text, calls, finish, usage = "", {}, None, None
    for chunk in create(model=model, messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}):
        if library == "openai":
            from openai.types.chat import ChatCompletionChunk

            found = problems(chunk.to_dict(mode="json"), ChatCompletionChunk)
            assert not found, found
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for piece in choice.delta.tool_calls or []:
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.id or ""
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
    return text, list(calls.values()), finish, usage


text, _, finish, usage = ask([{"role": "user", "content": "Say hello."}])
assert text == 'Grüße, 世界 <&> and "more".' and finish == "stop", (text, finish)
assert (usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens) == (1100, 70, 1000), usage

question = {"role": "user", "content": "Which C files are there?"}
text, calls, finish, _ = ask([question])
assert text == "I look." and finish == "tool_calls", (text, finish)
assert [(c["id"], c["name"]) for c in calls] == [("call_a", "glob"), ("call_b", "file_read")], calls
assert [json.loads(c["arguments"]) for c in calls] == [{"pattern": "**/*.c", "path": "src"}, {"path": "README.md", "limit": 3}], calls

results = [{"role": "tool", "tool_call_id": c["id"], "content": r} for c, r in zip(calls, ["src/a.c, src/b.c", "a program that counts"])]
said = {"role": "assistant", "content": text, "tool_calls": [
    {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls
]}
assert ask([question, said, *results])[0] == "Two files, and it counts."

picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}}
assert ask([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}])[0] == "A red dot."
assert ask([{"role": "user", "content": "Stop early."}])[2] == "length"
try:
    ask([{"role": "user", "content": "Hurry."}])
    sys.exit("no error has come of 429")
except failure as err:
    assert "slow down" in str(err), err
