// A tool in C: the whole of it. wit-bindgen makes tool_module.h and
// tool_module.c from wit/. An instance serves one call, so nothing is freed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_module.h"

typedef tool_module_string_t string;
typedef exports_stockade_tool_tools_error_t error;

#define JSON(...) #__VA_ARGS__

static const char manifest[] = JSON({
  "abi": "stockade:tool@0.1.0",
  "name": "greet",
  "version": "0.1.0",
  "tools": [
    {
      "name": "greet",
      "description": "Greet somebody.",
      "parameters": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Who to greet."}},
        "required": ["name"],
        "additionalProperties": false
      }
    }
  ]
});

void exports_stockade_tool_tools_describe(string *ret) { tool_module_string_dup(ret, manifest); }

static string text(const char *format, string s) {
  string out = {malloc(strlen(format) + s.len + 1), 0};
  if (!out.ptr) abort();
  out.len = sprintf((char *)out.ptr, format, (int)s.len, (const char *)s.ptr);
  return out;
}

static bool fails(error *err, uint8_t tag, const char *why) {
  err->tag = tag;
  tool_module_string_dup(&err->val.failed, why);
  return false;
}

// Returns the string that begins at *at or later, as JSON between its quotes.
static string next(const char **at, const char *end) {
  while (*at < end && **at != '"') ++*at;
  const char *from = ++*at;
  for (; *at < end && **at != '"'; ++*at)
    if (**at == '\\') ++*at;
  string out = {(uint8_t *)from, *at - from};
  ++*at;
  return out;
}

bool exports_stockade_tool_tools_call(exports_stockade_tool_tools_call_context_t *ctx, string *name, string *args,
                                      exports_stockade_tool_tools_output_t *ret, error *err) {
  if (name->len != 5 || memcmp(name->ptr, "greet", 5))
    return fails(err, STOCKADE_TOOL_TYPES_ERROR_UNKNOWN_TOOL, "there is only greet");
  // By the schema the arguments are {"name": "..."} and nothing else. A tool
  // with more of them wants a JSON library.
  const char *at = (const char *)args->ptr, *end = at + args->len;
  next(&at, end);
  string who = next(&at, end);
  if (who.len == 0)
    return fails(err, STOCKADE_TOOL_TYPES_ERROR_INVALID_INPUT, "the name is empty; say who to greet");
  string message = text("greeting %.*s", who);
  stockade_tool_log_log(STOCKADE_TOOL_LOG_LEVEL_INFO, &message);
  ret->content.len = 0;
  ret->structured.is_some = true;
  ret->structured.val = text("{\"output\":\"Hello, %.*s!\"}", who);
  return true;
}
