package repo

import (
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Codes of errors, as the tool declares them.
const (
	codeNotRepository = "NOT_A_REPOSITORY"
	codeUnknown       = "UNKNOWN_REVISION"
	codeCorrupt       = "CORRUPT_REPOSITORY"
	codeTooLarge      = "TOO_LARGE"
	codeUnsupported   = "UNSUPPORTED"
)

func notRepository(format string, args ...any) error {
	return tool.Coded(codeNotRepository, tool.NotFound(format, args...))
}

func unknownRevision(format string, args ...any) error {
	return tool.Coded(codeUnknown, tool.NotFound(format, args...))
}

// Corrupt returns an error of a damaged repository, with a hint at git fsck.
func Corrupt(format string, args ...any) error {
	return corrupt(format+"; git fsck, run by bash, tells more", args...)
}

// corrupt is Corrupt without the hint, for errors with a hint of their own.
func corrupt(format string, args ...any) error {
	return tool.Coded(codeCorrupt, tool.Parse(format, args...))
}

// TooLarge returns an error of something beyond a limit.
func TooLarge(format string, args ...any) error {
	return tool.Coded(codeTooLarge, tool.Failed(format, args...))
}

// IsTooLarge reports whether an error is one of [TooLarge]; that of [IsSpent] is one, too.
func IsTooLarge(err error) bool { return tool.CodeOf(err) == codeTooLarge }

// Unsupported returns an error for a request that only git itself can fulfil, or nobody can.
func Unsupported(format string, args ...any) error {
	return tool.Coded(codeUnsupported, tool.Failed(format, args...))
}

// missing returns the error for an object that was not found, with the likely reason.
func (r *Repo) missing(id ID) error {
	err := fmt.Errorf("the object %s is missing", id)
	switch {
	case r.partialClone:
		return Unsupported("%w: the repository is a partial clone, and the object is only at its remote; git itself, run by bash with network: true, fetches it", err)
	case len(r.lostAlternates) > 0:
		return corrupt("%w; the repository borrows objects from %s, which is not among the granted directories; grant it with --mount", err, r.lostAlternates[0])
	}
	return Corrupt("%w", err)
}
