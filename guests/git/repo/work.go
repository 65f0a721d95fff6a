package repo

// Work is counted so that a call ends, with what it has found by then, well before its
// time and its fuel do: by what was read and made, and not by the clock, so that it is
// the same each time. A unit is about a thousand instructions of the module.

// MaxWork is how much work a call may do: about half of what it has the time for on a
// slow machine. Tests have it be less.
var MaxWork = 10_000_000

// What things cost.
const (
	workFind   = 15  // a look-up in a pack's index
	workObject = 65  // to inflate, beside its bytes
	workLoose  = 250 // a file of its own, likewise
	workCached = 5   // an object that is still known
	workGraph  = 8   // a commit in the commit-graph
	workTree   = 4   // a step into a tree that is known

	// So many bytes cost one unit.
	inflatedPerUnit  = 16
	loosePerUnit     = 6
	copiedPerUnit    = 400 // of what a delta makes
	treeBytesPerUnit = 100 // of a tree that is gone through
)

// errSpent ends what takes too much work.
var errSpent = TooLarge("this takes more work than one call may do; name a path, a smaller range or a later revision, or run git itself by bash")

// IsSpent reports whether an error says that a call has done as much work as it may.
func IsSpent(err error) bool { return err == errSpent }

// Spend counts work.
func (r *Repo) Spend(units int) { r.spent += max(units, 0) }

// Spent is how much work was done.
func (r *Repo) Spent() int { return r.spent }

// AllowMore lets a call go on that has done what it may, for so much work: to write what it
// has found.
func (r *Repo) AllowMore(more int) { r.workLimit = r.spent + more }

// Check reports whether to go on: the call may have to end, or have done enough.
func (r *Repo) Check() error {
	if r.spent > r.workLimit {
		return errSpent
	}
	if r.cancelled == nil {
		return nil
	}
	return r.cancelled()
}
