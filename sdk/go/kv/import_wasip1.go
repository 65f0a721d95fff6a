package kv

//go:wasmimport stockade:tool/kv@0.1.0 get
func hostGet(keyPtr, keyLen, ret uint32)

//go:wasmimport stockade:tool/kv@0.1.0 set
func hostSet(keyPtr, keyLen, valuePtr, valueLen, hasTTL uint32, ttlMillis uint64, ret uint32)

//go:wasmimport stockade:tool/kv@0.1.0 delete
func hostDelete(keyPtr, keyLen, ret uint32)

//go:wasmimport stockade:tool/kv@0.1.0 keys
func hostKeys(prefixPtr, prefixLen, limit, ret uint32)
