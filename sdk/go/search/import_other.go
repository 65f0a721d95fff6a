//go:build !wasip1

package search

// The host's functions. Natively there is no host; tests of this package set their own.
var (
	hosted      = false
	hostList    = func(dirsPtr, dirsLen, ret uint32) {}
	hostStat    = func(namesPtr, namesLen, ret uint32) {}
	hostBegin   = func(filesPtr, filesLen, patternPtr, patternLen, context, maxMatches, maxText, maxChars, ret uint32) {}
	hostCollect = func(ret uint32) {}
)
