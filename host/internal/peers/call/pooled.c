//go:build bench

#include "pooled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wasmtime.h"

struct pooled {
  wasm_engine_t *engine;
  wasmtime_module_t *module;
  wasmtime_linker_t *linker;
  wasmtime_instance_pre_t *pre;
};

// failed takes the result of a wasmtime function, and reports whether it is an
// error.
static bool failed(const char *what, wasmtime_error_t *error, wasm_trap_t *trap, failure *f) {
  if (error == NULL && trap == NULL) return false;
  wasm_byte_vec_t text;
  if (error != NULL) {
    wasmtime_error_message(error, &text);
    wasmtime_error_delete(error);
  } else {
    wasm_trap_message(trap, &text);
    wasm_trap_delete(trap);
  }
  snprintf(f->text, sizeof f->text, "%s: %.*s", what, (int)text.size, text.data);
  wasm_byte_vec_delete(&text);
  return true;
}

pooled *pooled_new(const uint8_t *code, size_t size, uint64_t max_memory, failure *f) {
  wasmtime_pooling_allocation_config_t *pool = wasmtime_pooling_allocation_config_new();
  wasmtime_pooling_allocation_config_total_core_instances_set(pool, 4);
  wasmtime_pooling_allocation_config_total_memories_set(pool, 4);
  wasmtime_pooling_allocation_config_total_tables_set(pool, 4);
  wasmtime_pooling_allocation_config_table_elements_set(pool, 1 << 16);
  wasmtime_pooling_allocation_config_max_core_instance_size_set(pool, 4 << 20);
  wasmtime_pooling_allocation_config_max_memory_size_set(pool, max_memory);
  wasm_config_t *config = wasm_config_new();
  wasmtime_config_consume_fuel_set(config, true);
  wasmtime_pooling_allocation_strategy_set(config, pool);
  wasmtime_pooling_allocation_config_delete(pool);
  pooled *p = calloc(1, sizeof *p);
  p->engine = wasm_engine_new_with_config(config);
  p->linker = wasmtime_linker_new(p->engine);
  if (!failed("compile", wasmtime_module_new(p->engine, code, size, &p->module), NULL, f))
    failed("define WASI", wasmtime_linker_define_wasi(p->linker), NULL, f);
  return p;
}

static wasm_trap_t *refuse(void *env, wasmtime_caller_t *caller, wasmtime_val_raw_t *values, size_t n) {
  static const char text[] = "this host function is not there";
  return wasmtime_trap_new(text, sizeof text - 1);
}

static void value_types(string types, wasm_valtype_vec_t *out) {
  wasm_valtype_t *list[64];
  for (size_t i = 0; i < types.size && i < 64; i++) list[i] = wasm_valtype_new(0x7f - (uint8_t)types.data[i]);
  wasm_valtype_vec_new(out, types.size, list);
}

void pooled_import(pooled *p, string module, string name, string params, string results, failure *f) {
  if (params.size > 64 || results.size > 64) {
    snprintf(f->text, sizeof f->text, "an import has too many parameters");
    return;
  }
  wasm_valtype_vec_t in, out;
  value_types(params, &in);
  value_types(results, &out);
  wasm_functype_t *type = wasm_functype_new(&in, &out);
  failed("define an import", wasmtime_linker_define_func_unchecked(p->linker, module.data, module.size, name.data, name.size,
      type, refuse, NULL, NULL), NULL, f);
  wasm_functype_delete(type);
}

void pooled_ready(pooled *p, failure *f) {
  failed("prepare", wasmtime_linker_instantiate_pre(p->linker, p->module, &p->pre), NULL, f);
}

typedef struct {
  wasmtime_context_t *context;
  wasmtime_instance_t instance;
  wasmtime_func_t realloc;
  wasmtime_memory_t memory;
  failure *f;
} guest;

static bool export(guest *g, const char *name, uint8_t kind, wasmtime_extern_t *out) {
  if (wasmtime_instance_export_get(g->context, &g->instance, name, strlen(name), out) && out->kind == kind) return true;
  snprintf(g->f->text, sizeof g->f->text, "%s is not exported", name);
  return false;
}

static bool call(guest *g, const char *what, const wasmtime_func_t *func, wasmtime_val_raw_t *values, size_t n) {
  wasm_trap_t *trap = NULL;
  wasmtime_error_t *error = wasmtime_func_call_unchecked(g->context, func, values, n, &trap);
  return !failed(what, error, trap, g->f);
}

// lower copies a string into the guest and writes its address and length.
static bool lower(guest *g, string s, wasmtime_val_raw_t *out) {
  wasmtime_val_raw_t v[4] = {{.i32 = 0}, {.i32 = 0}, {.i32 = 1}, {.i32 = (int32_t)s.size}};
  if (!call(g, "allocate", &g->realloc, v, 4)) return false;
  uint32_t at = (uint32_t)v[0].i32;
  size_t size = wasmtime_memory_data_size(g->context, &g->memory);
  if (at > size || s.size > size - at) {
    snprintf(g->f->text, sizeof g->f->text, "the guest allocates outside of its memory");
    return false;
  }
  memcpy(wasmtime_memory_data(g->context, &g->memory) + at, s.data, s.size);
  out[0].i32 = (int32_t)at;
  out[1].i32 = (int32_t)s.size;
  return true;
}

void pooled_begin(pooled *p, const char *dir, uint64_t fuel, uint64_t millis, string name, string args, pooled_call *c, failure *f) {
  wasmtime_store_t *store = wasmtime_store_new(p->engine, NULL, NULL);
  c->store = store;
  guest g = {.context = wasmtime_store_context(store), .f = f};
  wasi_config_t *wasi = wasi_config_new();
  if (!wasi_config_preopen_dir(wasi, dir, "/", 1, 1)) {
    snprintf(f->text, sizeof f->text, "cannot open %s", dir);
    return;
  }
  if (failed("set WASI", wasmtime_context_set_wasi(g.context, wasi), NULL, f)) return;
  if (failed("set fuel", wasmtime_context_set_fuel(g.context, fuel), NULL, f)) return;
  wasm_trap_t *trap = NULL;
  wasmtime_error_t *error = wasmtime_instance_pre_instantiate(p->pre, g.context, &g.instance, &trap);
  if (failed("instantiate", error, trap, f)) return;
  wasmtime_extern_t run, e;
  if (!export(&g, "cabi_export_realloc", 0, &e)) return;
  g.realloc = e.of.func;
  if (!export(&g, "memory", 3, &e)) return;
  g.memory = e.of.memory;
  if (!export(&g, "stockade:tool/tools@0.1.0#call", 0, &run)) return;
  string id = {"call-1", 6}, cwd = {"/", 1};
  wasmtime_val_raw_t v[13] = {[4] = {.i32 = 1}, [5] = {.i64 = (int64_t)millis}}; // no locale
  if (!lower(&g, id, v) || !lower(&g, cwd, v + 2) || !lower(&g, name, v + 9) || !lower(&g, args, v + 11)) return;
  if (!call(&g, "call", &run.of.func, v, 13)) return;
  c->result = (uint32_t)v[0].i32;
  c->memory = wasmtime_memory_data(g.context, &g.memory);
  c->size = wasmtime_memory_data_size(g.context, &g.memory);
}

void pooled_end(pooled_call *c) { wasmtime_store_delete(c->store); }

void pooled_delete(pooled *p) {
  if (p->pre != NULL) wasmtime_instance_pre_delete(p->pre);
  if (p->module != NULL) wasmtime_module_delete(p->module);
  wasmtime_linker_delete(p->linker);
  wasm_engine_delete(p->engine);
  free(p);
}
