package search

// hosted reports that there is a host.
const hosted = true

//go:wasmimport stockade:tool/search@0.1.0 list
func hostList(dirsPtr, dirsLen, ret uint32)

//go:wasmimport stockade:tool/search@0.1.0 stat
func hostStat(namesPtr, namesLen, ret uint32)

//go:wasmimport stockade:tool/search@0.1.0 begin
func hostBegin(filesPtr, filesLen, patternPtr, patternLen, context, maxMatches, maxText, maxChars, ret uint32)

//go:wasmimport stockade:tool/search@0.1.0 collect
func hostCollect(ret uint32)
