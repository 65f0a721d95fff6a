package repo

import (
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// The codes of errors.
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

// Corrupt is an error of a repository that is not as git makes one.
func Corrupt(format string, args ...any) error {
	return corrupt(format+"; git fsck, run by bash, tells more", args...)
}

// corrupt is Corrupt for an error that says what to do next.
func corrupt(format string, args ...any) error {
	return tool.Coded(codeCorrupt, tool.Parse(format, args...))
}

// TooLarge is an error of something beyond a limit.
func TooLarge(format string, args ...any) error {
	return tool.Coded(codeTooLarge, tool.Failed(format, args...))
}

// IsTooLarge reports whether an error is one of [TooLarge].
func IsTooLarge(err error) bool { return tool.CodeOf(err) == codeTooLarge }

// Unsupported is an error of a repository that only git itself can read.
func Unsupported(format string, args ...any) error {
	return tool.Coded(codeUnsupported, tool.Failed(format, args...))
}

// missing says why an object may not be there.
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
