"""Checks the bodies of requests with the types of the vendors' own libraries.

    check.py DIRECTORY

Each file is PROVIDER-*.json. A body may have no field that the types do not have, at no
depth, and has to have those that they require: the libraries themselves check neither, so
this walks their types. Prints what is wrong, and how many bodies were checked.
"""

import collections.abc
import json
import pathlib
import re
import sys
import types
import typing

import typing_extensions
from pydantic import BaseModel


# What is documented and the libraries do not have: reasoning that goes back to a server of
# others than OpenAI (https://api-docs.deepseek.com/guides/thinking_mode,
# https://docs.litellm.ai/docs/reasoning_content), and of Ollama two fields
# (https://github.com/ollama/ollama/blob/main/api/types.go) and most of JSON Schema.
ALSO = re.compile(
    r"(openai\S* body\.messages\[\d+\]\.(reasoning_content|thinking_blocks)"
    r"|ollama\S* body\.(truncate|shift|tools\[\d+\]\.function\.parameters\.\S+)): nothing of this name"
)


def problems(value, kind, at="body"):
    """What is wrong with a value that should be of a type."""
    origin, args = typing_extensions.get_origin(kind), typing_extensions.get_args(kind)
    if origin in (typing_extensions.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return problems(value, args[0], at)
    if origin in (typing.Union, types.UnionType):
        tried = [problems(value, a, at) for a in args]
        # The one that was meant has the right role and type, and goes deepest.
        return min(tried, key=lambda found: (len(found) > 0, sum("is not one of" in f for f in found), -max((len(f.split(":")[0]) for f in found), default=0)))
    if origin is typing_extensions.Literal:
        return [] if any(value == a and type(value) is type(a) for a in args) else [f"{at}: {value!r:.60} is not one of {args}"]
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return of_fields(value, hints, {name for name in hints if is_required(kind, name, hints[name])}, at)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {f.alias or name: f for name, f in kind.model_fields.items()}
        return of_fields(value, {name: f.annotation for name, f in fields.items()}, {name for name, f in fields.items() if f.is_required()}, at)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{at}: not an object"]
        return [p for name, v in value.items() for p in problems(v, args[1], f"{at}.{name}")]
    if isinstance(origin, type) and (issubclass(origin, collections.abc.Iterable) or origin.__name__ == "SequenceNotStr"):
        if not isinstance(value, list):
            return [f"{at}: not an array"]
        return [p for i, v in enumerate(value) for p in problems(v, args[0], f"{at}[{i}]")]
    if isinstance(kind, type) and issubclass(kind, str):  # also one of an enumeration
        good = isinstance(value, str) and (kind is str or not hasattr(kind, "__members__") or value in [m.value for m in kind])
    elif kind is float:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif kind in (int, bool, dict):
        good = type(value) is kind
    elif kind is bytes:
        good = isinstance(value, str)  # in base64
    elif kind in (None, type(None)):
        good = value is None
    else:
        good = kind in (object, typing.Any)
    return [] if good else [f"{at}: {value!r:.60} is not of {kind}"]


def is_required(kind, name, hint):
    """Whether a dictionary has to have a key: the annotations are text, of which Python's own __required_keys__ knows nothing."""
    origin = typing_extensions.get_origin(hint)
    if origin in (typing_extensions.Required, typing_extensions.NotRequired):
        return origin is typing_extensions.Required
    for base in types.get_original_bases(kind) if hasattr(types, "get_original_bases") else getattr(kind, "__orig_bases__", ()):
        if typing_extensions.is_typeddict(base) and name in typing_extensions.get_type_hints(base):
            return is_required(base, name, hint)
    return kind.__total__


def of_fields(value, known, required, at):
    if not isinstance(value, dict):
        return [f"{at}: not an object"]
    found = [f"{at}.{name}: missing" for name in required - value.keys()]
    for name, v in value.items():
        found += problems(v, known[name], f"{at}.{name}") if name in known else [f"{at}.{name}: nothing of this name is known"]
    return found


def body_of(provider):
    """The type of the body that a provider sends."""
    match provider:
        case "openai":
            from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as body
        case "responses":
            from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as body
        case "anthropic":
            from anthropic.types.message_create_params import MessageCreateParamsStreaming as body
        case "ollama":
            from ollama._types import ChatRequest as body
        case "google":
            from google.genai import types as google

            body = typing_extensions.TypedDict("Body", {
                "contents": typing_extensions.Required[list[google.Content]], "systemInstruction": google.Content, "tools": list[google.Tool],
                "toolConfig": google.ToolConfig, "generationConfig": google.GenerationConfig,
            }, total=False)
        case _:
            sys.exit(f"nothing is known of {provider}")
    return body


if __name__ == "__main__":
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    found = [f"{f.name}: {p}" for f in files for p in problems(json.loads(f.read_text()), body_of(f.name.split("-")[0]))]
    found = [p for p in found if not ALSO.match(p)]
    print("\n".join(found or [f"{len(files)} bodies are as the vendors' types have them"]))
    sys.exit(bool(found))
