package repo

import (
	"fmt"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// The codes of errors.
const (
	NotARepository = "NOT_A_REPOSITORY"
	Unknown        = "UNKNOWN_REVISION"
	Corrupt        = "CORRUPT_REPOSITORY"
	TooLarge       = "TOO_LARGE"
	Unsupported    = "UNSUPPORTED"
)

func notRepository(format string, args ...any) error {
	return tool.NotFound(NotARepository+": "+format, args...)
}

func unknown(format string, args ...any) error { return tool.NotFound(Unknown+": "+format, args...) }

func corrupt(format string, args ...any) error { return tool.Parse(Corrupt+": "+format, args...) }

func tooLarge(format string, args ...any) error { return tool.Failed(TooLarge+": "+format, args...) }

func unsupported(format string, args ...any) error {
	return tool.Failed(Unsupported+": "+format, args...)
}

// missingError says that an object is not there.
type missingError struct{ id ID }

func (e *missingError) Error() string { return fmt.Sprintf("the object %s is missing", e.id) }

// missing says why an object may not be there.
func (r *Repo) missing(id ID) error {
	err := &missingError{id}
	switch {
	case r.promised:
		return unsupported("%w: the repository is a partial clone, and the object is only at its remote; git itself, run by bash with network: true, fetches it", err)
	case len(r.lost) > 0:
		return corrupt("%w; the repository borrows objects from %s, which is not among the granted directories; grant it with --mount", err, r.lost[0])
	}
	return corrupt("%w; git fsck, run by bash, tells more", err)
}

func notFound(format string, args ...any) error { return tool.NotFound("NOT_FOUND: "+format, args...) }
