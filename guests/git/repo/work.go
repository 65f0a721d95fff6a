package repo

// Work is counted so that a call ends well before its time and its fuel run out. It is counted
// by the data that is read and produced, and not by the clock, so that it is the same each time.
// A unit is about a thousand instructions of the module.

// MaxWork limits the work of a call, in units: it takes about half of the call's time on a slow
// machine. A call that exceeds it ends, with its findings so far if it can show them, or else
// with an error, see [IsSpent]. Tests lower it.
var MaxWork = 10_000_000

// Costs in units of work.
const (
	workFind   = 15  // search in the index of a pack
	workObject = 65  // inflating an object, in addition to its bytes
	workLoose  = 250 // opening a file, in addition to its bytes
	workCached = 5   // use of a cached object
	workGraph  = 8   // reading a commit of the commit-graph
	workTree   = 4   // look-up of one name of a path in a tree, in addition to the bytes of the tree

	// Bytes per unit of work.
	inflatedPerUnit  = 16  // inflated bytes of a pack
	loosePerUnit     = 6   // inflated bytes of a loose object
	copiedPerUnit    = 400 // bytes of the object that a delta makes
	treeBytesPerUnit = 100 // bytes of a tree that is searched
)

// errSpent is returned when a call has reached its limit for work.
var errSpent = TooLarge("this takes more work than one call may do; name a path, a smaller range or a later revision, or run git itself by bash")

// IsSpent reports whether err means that a call has reached its limit for work. It does not
// look into a wrapped error.
func IsSpent(err error) bool { return err == errSpent }

// Spend counts units of work.
func (r *Repo) Spend(units int) { r.spent += max(units, 0) }

// Spent returns the units of work so far.
func (r *Repo) Spent() int { return r.spent }

// AllowMore allows this many units of work from now on, in place of what was left, for example
// so that a call at its limit can write its findings.
func (r *Repo) AllowMore(more int) { r.workLimit = r.spent + more }

// Check returns an error if the call must end, or has reached its limit for work.
func (r *Repo) Check() error {
	if r.spent > r.workLimit {
		return errSpent
	}
	if r.cancelled == nil {
		return nil
	}
	return r.cancelled()
}
